package provider

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// BenchmarkReadDataSource measures what each further data source on a state
// costs, on our side of the plugin protocol; also with many more kinds of
// sources, which should not matter.
func BenchmarkReadDataSource(b *testing.B) {
	c := builtinKinds()
	b.Run("sources=all", func(b *testing.B) { benchmarkReadDataSource(b, c) })
	b.Run("sources=twice", func(b *testing.B) { benchmarkReadDataSource(b, twice(c)) })
}

// twice returns kinds with each source a second time, under another name.
func twice(c kinds) kinds {
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

func benchmarkReadDataSource(b *testing.B, c kinds) {
	server, block := ready(b, c)
	b.Run("validate", func(b *testing.B) {
		for b.Loop() {
			validateData(b, server, "statecrypt_remote_state", block)
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			readData(b, server, "statecrypt_remote_state", block)
		}
	})
}

// A data source does not pay for the sources that it does not use.
func TestReadsDoNotPayForOtherSources(t *testing.T) {
	allocations := func(c kinds) float64 {
		server, block := ready(t, c)
		return testing.AllocsPerRun(20, func() {
			validateData(t, server, "statecrypt_remote_state", block)
			readData(t, server, "statecrypt_remote_state", block)
		})
	}
	c := builtinKinds()
	if once, more := allocations(c), allocations(twice(c)); more > 1.5*once {
		t.Errorf("%v allocations, and %v with twice as many sources", once, more)
	}
}

// ready returns a configured server, and a data source on a state that is open
// already.
func ready(tb testing.TB, c kinds) (*Server, tfprotov6.DynamicValue) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "terraform.tfstate")
	if err := os.WriteFile(path, []byte(`{"version":4,"outputs":{"vpc_id":{"value":"vpc-1","type":"string"}}}`), 0o600); err != nil {
		tb.Fatal(err)
	}
	server := newServer("test", c)
	provider := server.block.sends(tb, map[string]cty.Value{"default": one(map[string]cty.Value{"method": text1("unencrypted")})})
	if _, diags := configureProvider(tb, server, "", provider); len(diags) > 0 {
		tb.Fatal(diags)
	}
	block := server.dataSources["statecrypt_remote_state"].sends(tb, map[string]cty.Value{"file": at(path)})
	if _, diags := readData(tb, server, "statecrypt_remote_state", block); len(diags) > 0 {
		tb.Fatal(diags)
	}
	return server, block
}

// BenchmarkGetProviderSchema measures the part of the start that grows with the
// schema.
func BenchmarkGetProviderSchema(b *testing.B) {
	c := builtinKinds()
	b.Run("sources=all", func(b *testing.B) { benchmarkGetProviderSchema(b, c) })
	b.Run("sources=twice", func(b *testing.B) { benchmarkGetProviderSchema(b, twice(c)) })
}

func benchmarkGetProviderSchema(b *testing.B, c kinds) {
	for b.Loop() {
		if _, err := newServer("test", c).GetProviderSchema(b.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
			b.Fatal(err)
		}
	}
}
