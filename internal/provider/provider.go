// Package provider implements the Terraform provider on top of the packages that do the actual work. Apart
// from main, no other package uses Terraform's plugin protocol.
//
// These terms have the same meaning in all files:
//
//   - kinds: the kinds of key providers, methods and sources that users can configure.
//   - reading: a data source or an ephemeral resource, such as statecrypt_remote_state.
//   - field: an argument, a block or a read-only attribute in a schema.
//   - arguments: the values in a reading's block while they are being checked.
//   - request: the checked values of a reading, ready for a read.
//   - configured: the checked settings of a provider block, and the reads that share its work.
//   - problem: a mistake in a block, with its path; findings are the problems in one block.
//   - step: the part of a read that failed, for the headline of an error.
package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dataschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	ephemeralschema "github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// The types in this file implement the plugin framework's provider interfaces, for names and schemas only.
// [Server] handles all calls that do work, so those calls never get here.

const (
	bypassed       = "The provider was bypassed"
	bypassedDetail = "The plugin framework was called instead of the provider's own server. " +
		"This is a bug in the provider; please report it."
)

const providerDoc = "Reads the outputs and the resources of remote state that is encrypted, and derives keys."

type frameworkProvider struct {
	schemas
	version string
}

func (p *frameworkProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "statecrypt"
	resp.Version = p.version
}

func (p *frameworkProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	attrs, blocks := schemaOf[schema.Attribute, schema.Block](p.block.fields)
	resp.Schema = schema.Schema{
		MarkdownDescription: providerDoc,
		Attributes:          attrs,
		Blocks:              blocks,
	}
}

func (p *frameworkProvider) Configure(_ context.Context, _ provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	resp.Diagnostics.AddError(bypassed, bypassedDetail)
}

func (p *frameworkProvider) Resources(context.Context) []func() resource.Resource { return nil }

func (p *frameworkProvider) DataSources(context.Context) []func() datasource.DataSource {
	var out []func() datasource.DataSource
	for _, r := range p.dataSources {
		out = append(out, func() datasource.DataSource { return frameworkDataSource{r} })
	}
	return out
}

func (p *frameworkProvider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	var out []func() ephemeral.EphemeralResource
	for _, r := range p.ephemeralResources {
		out = append(out, func() ephemeral.EphemeralResource { return frameworkEphemeral{r} })
	}
	return out
}

type frameworkDataSource struct{ reading }

func (d frameworkDataSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = d.name
}

func (d frameworkDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attrs, blocks := schemaOf[dataschema.Attribute, dataschema.Block](d.fields)
	resp.Schema = dataschema.Schema{MarkdownDescription: d.doc, Attributes: attrs, Blocks: blocks}
}

func (d frameworkDataSource) Read(_ context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	resp.Diagnostics.AddError(bypassed, bypassedDetail)
}

type frameworkEphemeral struct{ reading }

func (e frameworkEphemeral) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = e.name
}

func (e frameworkEphemeral) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	attrs, blocks := schemaOf[ephemeralschema.Attribute, ephemeralschema.Block](e.fields)
	resp.Schema = ephemeralschema.Schema{MarkdownDescription: e.doc, Attributes: attrs, Blocks: blocks}
}

func (e frameworkEphemeral) Open(_ context.Context, _ ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	resp.Diagnostics.AddError(bypassed, bypassedDetail)
}
