package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/zclconf/go-cty/cty"
)

// resourceData is data "statecrypt_resource".
type resourceData struct {
	catalog  catalog
	provider *configured
}

var (
	_ datasource.DataSourceWithConfigure      = (*resourceData)(nil)
	_ datasource.DataSourceWithValidateConfig = (*resourceData)(nil)
)

func (d *resourceData) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "statecrypt_resource"
}

func (d *resourceData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attrs, blocks := schemaOf[schema.Attribute, schema.Block](append(d.catalog.resourceFields(),
		argument("store_sensitive", cty.Bool, "Whether `sensitive_attributes` is filled. Everything that a data source gives is stored in plain text in the state of the configuration that reads. Defaults to `false`; the ephemeral resource of the same name gives sensitive attributes without storing them."),
		secret(computed("sensitive_attributes", cty.DynamicPseudoType, "The attributes that the state marks as sensitive, in the shape of `attributes`: objects have only these, and tuples have null for what is not sensitive. Null unless `store_sensitive = true`.")),
	))
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads one resource from a state, decrypting it if need be. The sources and methods are those of `statecrypt_remote_state`. It never writes, locks or lists.",
		Attributes:          attrs,
		Blocks:              blocks,
	}
}

func (d *resourceData) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.provider, _ = req.ProviderData.(*configured)
}

func (d *resourceData) ValidateConfig(_ context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	resp.Diagnostics.Append(d.catalog.validateResource(req.Config.Raw)...)
}

func (d *resourceData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	result, diags := d.catalog.readResource(ctx, d.provider, req.Config.Raw)
	resp.Diagnostics.Append(diags...)
	if !diags.HasError() {
		resp.State.Raw = result
	}
}
