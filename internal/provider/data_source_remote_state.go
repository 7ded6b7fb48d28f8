package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/zclconf/go-cty/cty"
)

// remoteStateData is data "statecrypt_remote_state".
type remoteStateData struct {
	catalog  catalog
	provider *configured
}

var (
	_ datasource.DataSourceWithConfigure      = (*remoteStateData)(nil)
	_ datasource.DataSourceWithValidateConfig = (*remoteStateData)(nil)
)

func (d *remoteStateData) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "statecrypt_remote_state"
}

func (d *remoteStateData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attrs, blocks := schemaOf[schema.Attribute, schema.Block](append(d.catalog.remoteStateFields(),
		argument("store_sensitive", cty.Bool, "Whether `sensitive_outputs` is filled. Everything that a data source gives is stored in plain text in the state of the configuration that reads. Defaults to `false`; the ephemeral resource of the same name gives sensitive outputs without storing them."),
		secret(computed("sensitive_outputs", cty.DynamicPseudoType, "An object of the outputs that are marked as sensitive; null unless `store_sensitive = true`.")),
	))
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads the outputs of a state that is kept in git, behind HTTP or in a file, decrypting it if need be. It never writes, locks or lists.",
		Attributes:          attrs,
		Blocks:              blocks,
	}
}

func (d *remoteStateData) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.provider, _ = req.ProviderData.(*configured)
}

func (d *remoteStateData) ValidateConfig(_ context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	resp.Diagnostics.Append(d.catalog.validateRemoteState(req.Config.Raw)...)
}

func (d *remoteStateData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	result, diags := d.catalog.readRemoteState(ctx, d.provider, req.Config.Raw)
	resp.Diagnostics.Append(diags...)
	if !diags.HasError() {
		resp.State.Raw = result
	}
}
