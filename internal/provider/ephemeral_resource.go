package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/zclconf/go-cty/cty"
)

// resourceEphemeral is ephemeral "statecrypt_resource": what the data
// source of the same name gives, and nothing of it stored.
type resourceEphemeral struct {
	catalog  catalog
	provider *configured
}

var (
	_ ephemeral.EphemeralResourceWithConfigure      = (*resourceEphemeral)(nil)
	_ ephemeral.EphemeralResourceWithValidateConfig = (*resourceEphemeral)(nil)
)

func (e *resourceEphemeral) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = "statecrypt_resource"
}

func (e *resourceEphemeral) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	attrs, blocks := schemaOf[schema.Attribute, schema.Block](append(e.catalog.resourceFields(),
		secret(computed("sensitive_attributes", cty.DynamicPseudoType, "The attributes that the state marks as sensitive, in the shape of `attributes`: objects have only these, and tuples have null for what is not sensitive.")),
	))
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads one resource from a state, decrypting it if need be. The sources and methods are those of `statecrypt_remote_state`. Neither the plan nor the state stores anything of it. It never writes, locks or lists.",
		Attributes:          attrs,
		Blocks:              blocks,
	}
}

func (e *resourceEphemeral) Configure(_ context.Context, req ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	e.provider, _ = req.ProviderData.(*configured)
}

func (e *resourceEphemeral) ValidateConfig(_ context.Context, req ephemeral.ValidateConfigRequest, resp *ephemeral.ValidateConfigResponse) {
	resp.Diagnostics.Append(e.catalog.validateResource(req.Config.Raw)...)
}

func (e *resourceEphemeral) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	result, diags := e.catalog.readResource(ctx, e.provider, req.Config.Raw)
	resp.Diagnostics.Append(diags...)
	if !diags.HasError() {
		resp.Result.Raw = result
	}
}
