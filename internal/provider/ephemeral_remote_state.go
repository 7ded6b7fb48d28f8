package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/zclconf/go-cty/cty"
)

// remoteStateEphemeral is ephemeral "statecrypt_remote_state": what the data
// source of the same name gives, and nothing of it stored.
type remoteStateEphemeral struct {
	catalog  catalog
	provider *configured
}

var (
	_ ephemeral.EphemeralResourceWithConfigure      = (*remoteStateEphemeral)(nil)
	_ ephemeral.EphemeralResourceWithValidateConfig = (*remoteStateEphemeral)(nil)
)

func (e *remoteStateEphemeral) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = "statecrypt_remote_state"
}

func (e *remoteStateEphemeral) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	attrs, blocks := schemaOf[schema.Attribute, schema.Block](append(e.catalog.remoteStateFields(),
		secret(computed("sensitive_outputs", cty.DynamicPseudoType, "An object of the outputs that are marked as sensitive.")),
	))
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads the outputs of a state that is kept in git, behind HTTP or in a file, decrypting it if need be. Neither the plan nor the state stores anything of it. It never writes, locks or lists.",
		Attributes:          attrs,
		Blocks:              blocks,
	}
}

func (e *remoteStateEphemeral) Configure(_ context.Context, req ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	e.provider, _ = req.ProviderData.(*configured)
}

func (e *remoteStateEphemeral) ValidateConfig(_ context.Context, req ephemeral.ValidateConfigRequest, resp *ephemeral.ValidateConfigResponse) {
	resp.Diagnostics.Append(e.catalog.validateRemoteState(req.Config.Raw)...)
}

func (e *remoteStateEphemeral) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	result, diags := e.catalog.readRemoteState(ctx, e.provider, req.Config.Raw)
	resp.Diagnostics.Append(diags...)
	if !diags.HasError() {
		resp.Result.Raw = result
	}
}
