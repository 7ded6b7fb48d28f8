package provider

import (
	"os"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// BenchmarkReadDataSource measures what each further data source on a state
// costs, on our side of the plugin protocol; also with many more kinds of
// sources, which should not matter.
func BenchmarkReadDataSource(b *testing.B) {
	c := builtinCatalog()
	b.Run("sources=all", func(b *testing.B) { benchmarkReadDataSource(b, c) })
	b.Run("sources=twice", func(b *testing.B) { benchmarkReadDataSource(b, twice(c)) })
}

// twice is a catalog with each source a second time, under another name.
func twice(c catalog) catalog {
	c.sources = slices.Clone(c.sources)
	for _, kind := range c.sources {
		kind.Name += "_again"
		if kind.Credentials.Name != "" {
			kind.Credentials.Name += "_again"
		}
		c.sources = append(c.sources, kind)
	}
	return c
}

func benchmarkReadDataSource(b *testing.B, c catalog) {
	path := b.TempDir() + "/terraform.tfstate"
	if err := os.WriteFile(path, []byte(`{"version":4,"outputs":{"vpc_id":{"value":"vpc-1","type":"string"}}}`), 0o600); err != nil {
		b.Fatal(err)
	}
	server := newServer(newStatecrypt("test", c))
	schema, err := server.GetProviderSchema(b.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		b.Fatal(err)
	}
	config := func(s *tfprotov6.Schema, set map[string]cty.Value) *tfprotov6.DynamicValue {
		typ := s.ValueType()
		v, err := tfprotov6.NewDynamicValue(typ, object(b, typ, set))
		if err != nil {
			b.Fatal(err)
		}
		return &v
	}
	single := func(name string, v cty.Value) cty.Value {
		return cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{name: v})})
	}
	if resp, err := server.ConfigureProvider(b.Context(), &tfprotov6.ConfigureProviderRequest{
		Config: config(schema.Provider, map[string]cty.Value{"default": single("method", cty.StringVal("unencrypted"))}),
	}); err != nil || len(resp.Diagnostics) > 0 {
		b.Fatal(err, resp.Diagnostics)
	}
	request := config(schema.DataSourceSchemas["statecrypt_remote_state"], map[string]cty.Value{"file": single("path", cty.StringVal(path))})
	b.Run("validate", func(b *testing.B) {
		for b.Loop() {
			if _, err := server.ValidateDataResourceConfig(b.Context(), &tfprotov6.ValidateDataResourceConfigRequest{TypeName: "statecrypt_remote_state", Config: request}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			resp, err := server.ReadDataSource(b.Context(), &tfprotov6.ReadDataSourceRequest{
				TypeName: "statecrypt_remote_state", Config: request,
			})
			if err != nil || resp.State == nil {
				b.Fatal(err, resp)
			}
		}
	})
}

// BenchmarkGetProviderSchema measures the part of the start that grows with the
// schema.
func BenchmarkGetProviderSchema(b *testing.B) {
	c := builtinCatalog()
	b.Run("sources=all", func(b *testing.B) { benchmarkGetProviderSchema(b, c) })
	b.Run("sources=twice", func(b *testing.B) { benchmarkGetProviderSchema(b, twice(c)) })
}

func benchmarkGetProviderSchema(b *testing.B, c catalog) {
	for b.Loop() {
		if _, err := newServer(newStatecrypt("test", c)).GetProviderSchema(b.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
			b.Fatal(err)
		}
	}
}
