package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
)

// ephemeralResource is a reading as an ephemeral resource of the framework:
// nothing of what it gives is stored.
type ephemeralResource struct {
	reading  reading
	provider *configured
}

var (
	_ ephemeral.EphemeralResourceWithConfigure      = (*ephemeralResource)(nil)
	_ ephemeral.EphemeralResourceWithValidateConfig = (*ephemeralResource)(nil)
)

func (e *ephemeralResource) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = e.reading.name
}

func (e *ephemeralResource) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	attrs, blocks := schemaOf[schema.Attribute, schema.Block](e.reading.fields)
	resp.Schema = schema.Schema{MarkdownDescription: e.reading.doc, Attributes: attrs, Blocks: blocks}
}

func (e *ephemeralResource) Configure(_ context.Context, req ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	e.provider, _ = req.ProviderData.(*configured)
}

func (e *ephemeralResource) ValidateConfig(_ context.Context, req ephemeral.ValidateConfigRequest, resp *ephemeral.ValidateConfigResponse) {
	resp.Diagnostics.Append(e.reading.validate(req.Config.Raw)...)
}

func (e *ephemeralResource) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	result, diags := e.reading.read(ctx, e.provider, req.Config.Raw)
	resp.Diagnostics.Append(diags...)
	if !diags.HasError() {
		resp.Result.Raw = result
	}
}
