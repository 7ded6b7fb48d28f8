// Command stub is a provider that returns the outputs of the benchmarks without reading anything. The remaining cost is
// the cost of passing outputs to Terraform.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func main() {
	if err := providerserver.Serve(context.Background(), func() provider.Provider { return stub{} }, providerserver.ServeOpts{
		Address: "registry.terraform.io/statecrypt/stub",
	}); err != nil {
		log.Fatal(err)
	}
}

type stub struct{}

func (stub) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "stub"
}
func (stub) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse)          {}
func (stub) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}
func (stub) Resources(context.Context) []func() resource.Resource                              { return nil }
func (stub) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{func() datasource.DataSource { return outputs{} }}
}

type outputs struct{}

func (outputs) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "stub_remote_state"
}

func (outputs) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"many":    schema.Int64Attribute{Optional: true},
		"large":   schema.Int64Attribute{Optional: true},
		"outputs": schema.DynamicAttribute{Computed: true},
	}}
}

func (outputs) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var raw map[string]tftypes.Value
	if err := req.Config.Raw.As(&raw); err != nil {
		resp.Diagnostics.AddError("Config", err.Error())
		return
	}
	var config struct{ Many, Large *int64 }
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("many"), &config.Many)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("large"), &config.Large)...)
	if resp.Diagnostics.HasError() {
		return
	}
	switch {
	case config.Many != nil:
		raw["outputs"] = many(int(*config.Many))
	case config.Large != nil:
		raw["outputs"] = large(int(*config.Large))
	}
	resp.State.Raw = tftypes.NewValue(req.Config.Raw.Type(), raw)
}

func text(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }
func number(n int) tftypes.Value  { return tftypes.NewValue(tftypes.Number, n) }

func object(attributes map[string]tftypes.Value) tftypes.Value {
	types := make(map[string]tftypes.Type, len(attributes))
	for name, v := range attributes {
		types[name] = v.Type()
	}
	return tftypes.NewValue(tftypes.Object{AttributeTypes: types}, attributes)
}

func many(n int) tftypes.Value {
	all := make(map[string]tftypes.Value, n)
	for i := range n {
		all[fmt.Sprintf("o%d", i)] = object(map[string]tftypes.Value{
			"id":    text(fmt.Sprintf("i-%d", i)),
			"ports": tftypes.NewValue(tftypes.List{ElementType: tftypes.Number}, []tftypes.Value{number(80), number(443)}),
			"tags":  tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{"a": text("b")}),
		})
	}
	return object(all)
}

func large(size int) tftypes.Value {
	var all []tftypes.Value
	for i, written := 0, 0; written < size; i++ {
		id, name := fmt.Sprintf("i-%017d", i), fmt.Sprintf("web-%d", i)
		arn := "arn:aws:ec2:eu-west-1:123456789012:instance/" + id
		all = append(all, object(map[string]tftypes.Value{
			"id": text(id), "name": text(name), "arn": text(arn), "zone": text("eu-west-1a"), "weight": number(i),
		}))
		written += len(id) + len(name) + len(arn) + len(fmt.Sprint(i)) + len(`{"id":"","name":"","arn":"","zone":"eu-west-1a","weight":},`)
	}
	return object(map[string]tftypes.Value{"large": tftypes.NewValue(tftypes.List{ElementType: all[0].Type()}, all)})
}
