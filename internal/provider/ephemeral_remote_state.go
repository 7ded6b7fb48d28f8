package provider

import (
	"context"
	"os"

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
	attrs, blocks := ephemeralFields(append(e.catalog.remoteStateFields(),
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
	_, problems := e.catalog.request(req.Config.Raw, os.LookupEnv)
	resp.Diagnostics.Append(diagnostics(problems)...)
}

func (e *remoteStateEphemeral) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	request, problems := e.catalog.request(req.Config.Raw, e.provider.env)
	if resp.Diagnostics.Append(diagnostics(problems)...); resp.Diagnostics.HasError() {
		return
	}
	state, err := e.provider.read(ctx, request)
	if err != nil {
		resp.Diagnostics.Append(readDiagnostics(err)...)
		return
	}
	resp.Diagnostics.Append(warningDiagnostics(state.warnings)...)
	if resp.Result.Raw, err = withResults(req.Config.Raw, state.attributes); err != nil {
		resp.Diagnostics.AddError("Cannot return the outputs", err.Error())
	}
}
