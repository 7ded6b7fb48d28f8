package provider

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

// What Terraform is told that a block is, and what is decoded, are the same.
func TestReadingsHaveTheTypesOfTheirSchemas(t *testing.T) {
	t.Parallel()
	p := newStatecrypt("test", builtinCatalog())
	for _, r := range p.dataSources {
		var s datasource.SchemaResponse
		(&dataSource{reading: r}).Schema(t.Context(), datasource.SchemaRequest{}, &s)
		if got := s.Schema.Type().TerraformType(t.Context()); !got.Equal(fromCtyType(r.typ)) {
			t.Errorf("data source %s: the schema has %s, and %#v is decoded", r.name, got, r.typ)
		}
	}
	for _, r := range p.ephemeralResources {
		var s ephemeral.SchemaResponse
		(&ephemeralResource{reading: r}).Schema(t.Context(), ephemeral.SchemaRequest{}, &s)
		if got := s.Schema.Type().TerraformType(t.Context()); !got.Equal(fromCtyType(r.typ)) {
			t.Errorf("ephemeral resource %s: the schema has %s, and %#v is decoded", r.name, got, r.typ)
		}
	}
}

// A call makes a server validate or read a block.
type call func(t testing.TB, s tfprotov6.ProviderServer, name string, block tfprotov6.DynamicValue) (*tfprotov6.DynamicValue, []*tfprotov6.Diagnostic)

func validateData(t testing.TB, s tfprotov6.ProviderServer, name string, block tfprotov6.DynamicValue) (*tfprotov6.DynamicValue, []*tfprotov6.Diagnostic) {
	t.Helper()
	resp, err := s.ValidateDataResourceConfig(t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{TypeName: name, Config: &block})
	if err != nil {
		t.Fatal(err)
	}
	return nil, resp.Diagnostics
}

func readData(t testing.TB, s tfprotov6.ProviderServer, name string, block tfprotov6.DynamicValue) (*tfprotov6.DynamicValue, []*tfprotov6.Diagnostic) {
	t.Helper()
	resp, err := s.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: name, Config: &block})
	if err != nil {
		t.Fatal(err)
	}
	return resp.State, resp.Diagnostics
}

func validateEphemeral(t testing.TB, s tfprotov6.ProviderServer, name string, block tfprotov6.DynamicValue) (*tfprotov6.DynamicValue, []*tfprotov6.Diagnostic) {
	t.Helper()
	resp, err := s.ValidateEphemeralResourceConfig(t.Context(), &tfprotov6.ValidateEphemeralResourceConfigRequest{TypeName: name, Config: &block})
	if err != nil {
		t.Fatal(err)
	}
	return nil, resp.Diagnostics
}

func openEphemeral(t testing.TB, s tfprotov6.ProviderServer, name string, block tfprotov6.DynamicValue) (*tfprotov6.DynamicValue, []*tfprotov6.Diagnostic) {
	t.Helper()
	resp, err := s.OpenEphemeralResource(t.Context(), &tfprotov6.OpenEphemeralResourceRequest{TypeName: name, Config: &block})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Result, resp.Diagnostics
}

// The server gives the same answers as the framework, and needs it only where
// something is wrong with the arguments.
func TestServerAnswersAsTheFramework(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"state": plainState + `"a":{"value":"1","type":"string"},"s":{"value":[1,null],"type":["tuple",["number","dynamic"]],"sensitive":true}}}`, "resources": resourceState, "broken": "{"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	remoteState, resource := "statecrypt_remote_state", "statecrypt_resource"
	file := func(name string) cty.Value { return at(filepath.Join(dir, name)) }
	type arguments = map[string]cty.Value
	for name, tt := range map[string]struct {
		name      string
		arguments arguments
		wrong     bool // which is the framework's to report
	}{
		"outputs":               {remoteState, arguments{"file": file("state")}, false},
		"one output":            {remoteState, arguments{"file": file("state"), "only": cty.ListVal([]cty.Value{text1("a")}), "minimum_serial": cty.NumberIntVal(1)}, false},
		"defaults":              {remoteState, arguments{"file": file("none"), "on_missing": text1("defaults"), "defaults": cty.ObjectVal(arguments{"z": cty.EmptyTupleVal}), "sensitive_defaults": cty.ObjectVal(arguments{"y": cty.True})}, false},
		"fallbacks":             {remoteState, arguments{"file": file("state"), "method": text1("unencrypted"), "fallback": cty.TupleVal([]cty.Value{cty.ObjectVal(arguments{"method": text1("unencrypted")}), cty.ObjectVal(arguments{"method": text1("unencrypted")})})}, false},
		"sensitive outputs":     {remoteState, arguments{"file": file("state"), "store_sensitive": cty.True}, false},
		"unknown path":          {remoteState, arguments{"file": one(arguments{"path": cty.UnknownVal(cty.String)})}, false},
		"unknown arguments":     {remoteState, arguments{"file": file("state"), "method": cty.UnknownVal(cty.String), "defaults": cty.DynamicVal}, false},
		"unknown block":         {remoteState, arguments{"file": cty.UnknownVal(cty.DynamicPseudoType)}, false},
		"no state":              {remoteState, arguments{"file": file("none")}, false},
		"broken state":          {remoteState, arguments{"file": file("broken")}, false},
		"no such output":        {remoteState, arguments{"file": file("state"), "only": cty.ListVal([]cty.Value{text1("b")})}, false},
		"resource":              {resource, arguments{"file": file("resources"), "address": text1("aws_db.main")}, false},
		"no such resource":      {resource, arguments{"file": file("resources"), "address": text1("aws_db.none")}, false},
		"no source":             {remoteState, nil, true},
		"two sources":           {remoteState, arguments{"file": file("state"), "http": one(arguments{"address": text1("https://x.example")})}, true},
		"a source twice":        {remoteState, arguments{"file": cty.TupleVal([]cty.Value{cty.ObjectVal(arguments{"path": text1("a")}), cty.ObjectVal(arguments{"path": text1("b")})})}, true},
		"no path":               {remoteState, arguments{"file": one(arguments{"path": cty.NullVal(cty.String)})}, true},
		"no fallback":           {remoteState, arguments{"file": file("state"), "method": text1("unencrypted"), "fallback": one(arguments{"method": cty.NullVal(cty.String)})}, true},
		"read-only attribute":   {remoteState, arguments{"file": file("state"), "lineage": text1("l")}, true},
		"wrong method":          {remoteState, arguments{"file": file("state"), "method": text1("m")}, true},
		"wrong attribute":       {remoteState, arguments{"file": file("state"), "max_size": cty.NumberIntVal(0)}, true},
		"resource, no address":  {resource, arguments{"file": file("resources")}, true},
		"resource, bad address": {resource, arguments{"file": file("resources"), "address": text1("a")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct, framework := NewServer("test"), providerserver.NewProtocol6(New("test")())()
			schemas, err := framework.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
			if err != nil {
				t.Fatal(err)
			}
			provider := wire(t, object(t, schemas.Provider.ValueType(), arguments{"default": one(arguments{"method": text1("unencrypted")}), "allow_resource_reads": cty.True}))
			for _, s := range []tfprotov6.ProviderServer{direct, framework} {
				if resp, err := s.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: &provider}); err != nil || len(resp.Diagnostics) > 0 {
					t.Fatal(err, resp)
				}
			}
			if !tt.wrong {
				direct.ProviderServer = nil // so that a call of the framework panics
			}
			same := func(what string, c call, typ tftypes.Type) {
				v := object(t, typ, tt.arguments)
				if strings.HasPrefix(what, "read") && !v.IsFullyKnown() {
					return // a CLI does not ask for it
				}
				block := wire(t, v)
				got, gotDiags := c(t, direct, tt.name, block)
				want, wantDiags := c(t, framework, tt.name, block)
				if !reflect.DeepEqual(gotDiags, wantDiags) {
					t.Errorf("%s: got the diagnostics %v, want %v", what, gotDiags, wantDiags)
				}
				if want == nil {
					return
				}
				gotValue, err1 := got.Unmarshal(typ)
				wantValue, err2 := want.Unmarshal(typ)
				if err1 != nil || err2 != nil || !gotValue.Equal(wantValue) {
					t.Errorf("%s: got %s, %v, want %s, %v", what, gotValue, err1, wantValue, err2)
				}
			}
			data, ephemeral := schemas.DataSourceSchemas[tt.name].ValueType(), schemas.EphemeralResourceSchemas[tt.name].ValueType()
			same("validate", validateData, data)
			same("read", readData, data)
			same("validate ephemeral", validateEphemeral, ephemeral)
			same("read ephemeral", openEphemeral, ephemeral)
		})
	}
}
