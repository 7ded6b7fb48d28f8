// Package provider is the shell between Terraform and the packages that do the
// work. With main, it is the only place that knows the plugin framework.
package provider

import (
	"context"
	"os"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/all"
)

// New returns the constructor of the provider with everything built in.
func New(version string) func() provider.Provider {
	return func() provider.Provider {
		return newStatecrypt(version, builtinCatalog())
	}
}

func builtinCatalog() catalog {
	return catalog{registry: builtin.Registry(), sources: all.Kinds()}
}

type statecrypt struct {
	version string
	catalog catalog

	dataSources        []reading
	ephemeralResources []reading

	configured atomic.Pointer[configured] // nil before Configure
}

func newStatecrypt(version string, c catalog) *statecrypt {
	return &statecrypt{
		version: version, catalog: c,
		dataSources:        []reading{c.remoteStateData(), c.resourceData()},
		ephemeralResources: []reading{c.remoteStateEphemeral(), c.resourceEphemeral()},
	}
}

var (
	_ provider.ProviderWithValidateConfig     = (*statecrypt)(nil)
	_ provider.ProviderWithEphemeralResources = (*statecrypt)(nil)
)

func (p *statecrypt) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "statecrypt"
	resp.Version = p.version
}

func (p *statecrypt) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	attrs, blocks := schemaOf[schema.Attribute, schema.Block](p.catalog.providerFields())
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads the outputs and the resources of remote state that is encrypted, and derives keys.",
		Attributes:          attrs,
		Blocks:              blocks,
	}
}

// ValidateConfig checks what can be checked without the environment.
func (p *statecrypt) ValidateConfig(_ context.Context, req provider.ValidateConfigRequest, resp *provider.ValidateConfigResponse) {
	_, problems := p.catalog.configure(req.Config.Raw, nil)
	resp.Diagnostics.Append(diagnostics(problems)...)
}

// Configure contacts nothing, and accepts values that are not known yet.
func (p *statecrypt) Configure(_ context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	configured, problems := p.catalog.configure(req.Config.Raw, os.LookupEnv)
	resp.Diagnostics.Append(diagnostics(problems)...)
	p.configured.Store(configured)
	resp.DataSourceData = configured
	resp.EphemeralResourceData = configured
}

func (p *statecrypt) DataSources(context.Context) []func() datasource.DataSource {
	var out []func() datasource.DataSource
	for _, r := range p.dataSources {
		out = append(out, func() datasource.DataSource { return &dataSource{reading: r} })
	}
	return out
}

func (p *statecrypt) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	out := []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return &derivedKeyEphemeral{} }}
	for _, r := range p.ephemeralResources {
		out = append(out, func() ephemeral.EphemeralResource { return &ephemeralResource{reading: r} })
	}
	return out
}

func (p *statecrypt) Resources(context.Context) []func() resource.Resource { return nil }
