package provider

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// A call makes a server validate, configure or read a block.
type call func(t testing.TB, s tfprotov6.ProviderServer, name string, block tfprotov6.DynamicValue) (*tfprotov6.DynamicValue,
	[]*tfprotov6.Diagnostic)

func validateProvider(t testing.TB, s tfprotov6.ProviderServer, _ string, block tfprotov6.DynamicValue) (*tfprotov6.DynamicValue,
	[]*tfprotov6.Diagnostic) {
	t.Helper()
	resp, err := s.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{Config: &block})
	if err != nil {
		t.Fatal(err)
	}
	return resp.PreparedConfig, resp.Diagnostics
}

func configureProvider(t testing.TB, s tfprotov6.ProviderServer, _ string, block tfprotov6.DynamicValue) (*tfprotov6.DynamicValue,
	[]*tfprotov6.Diagnostic) {
	t.Helper()
	resp, err := s.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: &block})
	if err != nil {
		t.Fatal(err)
	}
	return nil, resp.Diagnostics
}

func validateData(t testing.TB, s tfprotov6.ProviderServer, name string, block tfprotov6.DynamicValue) (*tfprotov6.DynamicValue,
	[]*tfprotov6.Diagnostic) {
	t.Helper()
	resp, err := s.ValidateDataResourceConfig(t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{TypeName: name, Config: &block})
	if err != nil {
		t.Fatal(err)
	}
	return nil, resp.Diagnostics
}

func readData(t testing.TB, s tfprotov6.ProviderServer, name string, block tfprotov6.DynamicValue) (*tfprotov6.DynamicValue,
	[]*tfprotov6.Diagnostic) {
	t.Helper()
	resp, err := s.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: name, Config: &block})
	if err != nil {
		t.Fatal(err)
	}
	return resp.State, resp.Diagnostics
}

func validateEphemeral(t testing.TB, s tfprotov6.ProviderServer, name string, block tfprotov6.DynamicValue) (*tfprotov6.DynamicValue,
	[]*tfprotov6.Diagnostic) {
	t.Helper()
	resp, err := s.ValidateEphemeralResourceConfig(t.Context(),
		&tfprotov6.ValidateEphemeralResourceConfigRequest{TypeName: name, Config: &block})
	if err != nil {
		t.Fatal(err)
	}
	return nil, resp.Diagnostics
}

func openEphemeral(t testing.TB, s tfprotov6.ProviderServer, name string, block tfprotov6.DynamicValue) (*tfprotov6.DynamicValue,
	[]*tfprotov6.Diagnostic) {
	t.Helper()
	resp, err := s.OpenEphemeralResource(t.Context(), &tfprotov6.OpenEphemeralResourceRequest{TypeName: name, Config: &block})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Result, resp.Diagnostics
}

// everything is each block that users write, and the calls that CLIs make for
// it: first one that checks it, then one that uses it.
func everything(s *Server) []written {
	out := []written{{name: "provider", codec: s.block, validate: validateProvider, use: configureProvider}}
	for name, r := range s.dataSources {
		out = append(out, written{name: "data", typeName: name, codec: r.codec, validate: validateData, use: readData})
	}
	for name, r := range s.ephemeralResources {
		out = append(out, written{name: "ephemeral", typeName: name, codec: r.codec, validate: validateEphemeral, use: openEphemeral})
	}
	return out
}

func find(t *testing.T, s *Server, block string) written {
	t.Helper()
	for _, w := range everything(s) {
		if strings.TrimSpace(w.name+" "+w.typeName) == block {
			return w
		}
	}
	t.Fatalf("there is no %s", block)
	return written{}
}

type written struct {
	name, typeName string
	codec          codec
	validate, use  call
}

// What Terraform is told that a block is, and what is decoded, are the same.
func TestCodecsHaveTheTypesOfTheirSchemas(t *testing.T) {
	t.Parallel()
	s := NewServer("test")
	schemas, err := s.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range everything(s) {
		declared := map[string]*tfprotov6.Schema{
			"provider": schemas.Provider, "data": schemas.DataSourceSchemas[w.typeName], "ephemeral": schemas.EphemeralResourceSchemas[w.typeName],
		}[w.name]
		text, err := json.Marshal(declared.ValueType())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ctyjson.UnmarshalType(text); err != nil || !got.Equals(w.codec.typ()) {
			t.Errorf("%s %s: the schema has %#v, %v, and %#v is decoded", w.name, w.typeName, got, err, w.codec.typ())
		}
	}
}

// The schemas that Terraform receives are those of the framework, which reports what does not conform to them.
func TestSchemasAreThoseOfTheFramework(t *testing.T) {
	t.Parallel()
	s := NewServer("test")
	var texts []string
	for _, server := range []tfprotov6.ProviderServer{s, s.ProviderServer} {
		schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
		if err != nil || len(schemas.Diagnostics) > 0 {
			t.Fatal(err, schemas.Diagnostics)
		}
		text, err := json.MarshalIndent(schemas, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, strings.ReplaceAll(string(text), ": null", ": {}"))
	}
	if texts[0] != texts[1] {
		t.Errorf("%s\nThe framework's:\n%s", texts[0], texts[1])
	}
}

// What conforms to a schema for us, and what does for the framework, are the
// same; and what does not conform is never accepted without a word.
func TestConformsAsTheFramework(t *testing.T) {
	t.Parallel()
	type arguments = map[string]cty.Value
	twice := func(block arguments) cty.Value {
		return cty.TupleVal([]cty.Value{cty.ObjectVal(block), cty.ObjectVal(block)})
	}
	unset := cty.NullVal(cty.String)
	file := one(arguments{"path": text1("x")})
	derived := func(more arguments) arguments {
		out := arguments{"key_provider": text1("key_provider.pbkdf2.k"), "info": text1("i")}
		for name, v := range more {
			out[name] = v
		}
		return out
	}
	s := NewServer("test")
	for name, tt := range map[string]struct {
		block     string // of everything
		arguments arguments
		conforms  bool
	}{
		"nothing":      {block: "provider", arguments: nil, conforms: true},
		"default":      {block: "provider", arguments: arguments{"default": one(arguments{"method": text1("m")})}, conforms: true},
		"no method":    {block: "provider", arguments: arguments{"default": one(nil)}, conforms: true},
		"two defaults": {block: "provider", arguments: arguments{"default": twice(nil)}},
		"no fallback":  {block: "provider", arguments: arguments{"default": one(arguments{"fallback": one(arguments{"method": unset})})}},
		"an unknown fallback": {block: "provider", conforms: true, arguments: arguments{"default": one(
			arguments{"fallback": one(arguments{"method": cty.UnknownVal(cty.String)})})}},
		"unknown fallbacks": {block: "provider", arguments: arguments{"default": one(arguments{"fallback": cty.DynamicVal})},
			conforms: true},
		"key providers": {block: "provider", conforms: true, arguments: arguments{"key_provider": one(
			arguments{"pbkdf2": twice(arguments{"name": text1("k")})})}},
		"key provider without name": {block: "provider", conforms: true, arguments: arguments{"key_provider": one(
			arguments{"static": one(arguments{"name": unset})})}},
		"unknown key providers": {block: "provider", arguments: arguments{"key_provider": cty.DynamicVal}, conforms: true},
		"unknown text": {block: "provider", arguments: arguments{"encryption": cty.UnknownVal(cty.String),
			"enforced": cty.UnknownVal(cty.Bool)}, conforms: true},
		"credentials": {block: "provider", arguments: arguments{"credentials": twice(arguments{"http": twice(arguments{"url": text1("u")})})},
			conforms: true},
		"file":      {block: "data statecrypt_remote_state", arguments: arguments{"file": file}, conforms: true},
		"no source": {block: "data statecrypt_remote_state", arguments: nil, conforms: true},
		"two sources": {block: "data statecrypt_remote_state",
			arguments: arguments{"file": file, "http": one(arguments{"address": text1("a")})}, conforms: true},
		"a source twice": {block: "data statecrypt_remote_state", arguments: arguments{"file": twice(arguments{"path": text1("x")})}},
		"no path":        {block: "data statecrypt_remote_state", arguments: arguments{"file": one(arguments{"path": unset})}},
		"an unknown path": {block: "data statecrypt_remote_state",
			arguments: arguments{"file": one(arguments{"path": cty.UnknownVal(cty.String)})}, conforms: true},
		"an argument of environment": {block: "data statecrypt_remote_state", arguments: arguments{"http": one(arguments{"address": unset})},
			conforms: true},
		"fallbacks": {block: "data statecrypt_remote_state",
			arguments: arguments{"fallback": twice(arguments{"method": text1("m")})}, conforms: true},
		"a fallback of nothing": {block: "data statecrypt_remote_state", arguments: arguments{"fallback": one(arguments{"method": unset})}},
		"a read-only attribute": {block: "data statecrypt_remote_state", arguments: arguments{"lineage": text1("l")}},
		"an unknown one":        {block: "data statecrypt_remote_state", arguments: arguments{"lineage": cty.UnknownVal(cty.String)}},
		"a dynamic one":         {block: "data statecrypt_remote_state", arguments: arguments{"outputs": cty.EmptyObjectVal}},
		"defaults": {block: "data statecrypt_remote_state",
			arguments: arguments{"defaults": text1("d"), "sensitive_defaults": cty.DynamicVal}, conforms: true},
		"null names": {block: "data statecrypt_remote_state", arguments: arguments{"only": cty.ListVal([]cty.Value{unset})},
			conforms: true},
		"no address":         {block: "data statecrypt_resource", arguments: arguments{"file": file}, conforms: true},
		"a read-only type":   {block: "data statecrypt_resource", arguments: arguments{"type": text1("t")}},
		"ephemeral file":     {block: "ephemeral statecrypt_remote_state", arguments: arguments{"file": file}, conforms: true},
		"ephemeral, no path": {block: "ephemeral statecrypt_remote_state", arguments: arguments{"file": one(arguments{"path": unset})}},
		"ephemeral, twice":   {block: "ephemeral statecrypt_resource", arguments: arguments{"object": twice(nil)}},
		"a derived key":      {block: "ephemeral statecrypt_derived_key", arguments: derived(nil), conforms: true},
		"unknown info": {block: "ephemeral statecrypt_derived_key", arguments: derived(arguments{"info": cty.UnknownVal(cty.String)}),
			conforms: true},
		"no info":           {block: "ephemeral statecrypt_derived_key", arguments: derived(arguments{"info": unset})},
		"a key that is set": {block: "ephemeral statecrypt_derived_key", arguments: derived(arguments{"key_hex": text1("00")})},
	} {
		w := find(t, s, tt.block)
		block := w.codec.sends(t, tt.arguments)
		agree(t, s, w, name, block)
		if _, ok := w.codec.decode(&block); ok != tt.conforms {
			t.Errorf("%s: conforms: %v, want %v", name, ok, tt.conforms)
		}
	}
	for _, w := range everything(s) {
		agree(t, s, w, "null", wire(t, cty.NullVal(w.codec.typ()), w.codec.typ()))
		agree(t, s, w, "another type", wire(t, cty.True, cty.Bool))
		agree(t, s, w, "broken", tfprotov6.DynamicValue{MsgPack: []byte{0xc1}})
		agree(t, s, w, "broken JSON", tfprotov6.DynamicValue{JSON: []byte("{")})
		agree(t, s, w, "null in JSON", tfprotov6.DynamicValue{JSON: []byte("null")})
	}
}

func agree(t *testing.T, s *Server, w written, what string, block tfprotov6.DynamicValue) {
	t.Helper()
	_, framework := w.validate(t, s.ProviderServer, w.typeName, block)
	arguments, ok := w.codec.decode(&block)
	if ok == hasError(framework) {
		t.Errorf("%s %s, %s: conforms: %v, and the framework says %v", w.name, w.typeName, what, ok, framework)
	}
	if ok {
		return
	}
	want := shown(framework)
	if wrong := w.codec.misfits(arguments); wrong != nil { // we know more about it
		want = shown(problemDiagnostics(wrong))
	}
	for what, c := range map[string]call{"validated": w.validate, "used": w.use} {
		if _, diags := c(t, s, w.typeName, block); !reflect.DeepEqual(shown(diags), want) {
			t.Errorf("%s %s, %s: got %v, want %v", w.name, w.typeName, what, shown(diags), want)
		}
	}
}

// shown are the diagnostics in an order of their own: the framework walks maps.
func shown(diags []*tfprotov6.Diagnostic) []string {
	var out []string
	for _, d := range diags {
		out = append(out, d.Attribute.String()+" "+d.Summary+": "+d.Detail)
	}
	slices.Sort(out)
	return out
}

// A message without arguments is refused, and never read as an empty block.
func TestNoArguments(t *testing.T) {
	t.Parallel()
	s := NewServer("test")
	for _, w := range everything(s) {
		for what, c := range map[string]call{"validated": w.validate, "used": w.use} {
			if _, diags := c(t, s, w.typeName, tfprotov6.DynamicValue{}); !hasError(diags) {
				t.Errorf("%s %s was %s without arguments", w.name, w.typeName, what)
			}
		}
	}
}

// A mistake that conforms to the schema is reported at its place.
func TestMistakesHaveTheirPlace(t *testing.T) {
	t.Parallel()
	type arguments = map[string]cty.Value
	s := NewServer("test")
	configureProvider(t, s, "", s.block.sends(t, nil))
	file := one(arguments{"path": text1("x")})
	golden := openMistakes(t, "place")
	for name, tt := range map[string]struct {
		block     string
		arguments arguments
	}{
		"max_size": {"data statecrypt_remote_state", arguments{"file": file, "max_size": cty.Zero}},
		"fallback": {"data statecrypt_remote_state", arguments{"file": file, "method": text1("unencrypted"),
			"fallback": one(arguments{"method": text1("m")})}},
		"no source": {"data statecrypt_remote_state", nil},
		"address":   {"ephemeral statecrypt_resource", arguments{"file": file, "address": text1("a")}},
		"salt": {"ephemeral statecrypt_derived_key", arguments{"key_provider": text1("key_provider.static.k"), "info": text1("i"),
			"salt": text1("?")}},
		"length": {"ephemeral statecrypt_derived_key", arguments{"key_provider": text1("key_provider.static.k"), "info": text1("i"),
			"length": cty.NumberIntVal(65)}},
		"name twice": {"provider", arguments{"key_provider": one(arguments{"static": one(arguments{"name": text1("a b"),
			"key": text1("00")})})}},
	} {
		w := find(t, s, tt.block)
		for what, c := range map[string]call{"validated": w.validate, "used": w.use} {
			_, diags := c(t, s, w.typeName, w.codec.sends(t, tt.arguments))
			golden.Check(t, name+", "+what, strings.Join(shown(diags), "\n"))
		}
	}
}

// A validation does not look at what variables say, which may not be meant to be read: it
// only misses nothing that one says.
func TestValidateReadsNoVariable(t *testing.T) {
	type arguments = map[string]cty.Value
	s := NewServer("test")
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
	t.Setenv("ARM_TIMEOUT_SECONDS", "canary")
	blob := arguments{"azurerm": one(arguments{"storage_account_name": text1("account"), "container_name": text1("states"),
		"key": text1("k")})}
	object := arguments{"s3": one(arguments{"bucket": text1("bucket"), "key": text1("k")})}
	remote := find(t, s, "data statecrypt_remote_state")
	fails := func(c call, set arguments, want string) {
		t.Helper()
		_, diags := c(t, s, remote.typeName, remote.codec.sends(t, set))
		if got := strings.Join(shown(diags), "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, provider := range []arguments{nil, {"use_environment": cty.False}, {"use_environment": cty.UnknownVal(cty.Bool)}} {
		validateProvider(t, s, "", s.block.sends(t, provider))
		fails(remote.validate, blob, "")
	}
	fails(remote.validate, object, "s3: region: this argument is required (or the environment variable AWS_REGION")
	t.Setenv("AWS_REGION", "eu-west-1")
	fails(remote.validate, object, "")
	configureProvider(t, s, "", s.block.sends(t, arguments{"use_environment": cty.False}))
	fails(remote.use, object, "region: this argument is required")
	configureProvider(t, s, "", s.block.sends(t, nil))
	fails(remote.use, blob, "azurerm: timeout_seconds: the environment variable ARM_TIMEOUT_SECONDS: the value must be a number")
}

// Arguments arrive as MessagePack or as JSON. What is given is the arguments and
// the results, as the framework's library of values reads them.
func TestReadOverTheProtocol(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(path, []byte(plainState), 0o600); err != nil {
		t.Fatal(err)
	}
	s := NewServer("test")
	set := map[string]cty.Value{"file": at(path), "method": text1("unencrypted")}
	for _, w := range everything(s) {
		if w.typeName != "statecrypt_remote_state" {
			continue
		}
		block := w.codec.sends(t, set)
		_, diags := w.use(t, NewServer("test"), w.typeName, block)
		if !strings.Contains(strings.Join(shown(diags), ""), errNotConfigured.Error()[1:]) { // without the capital letter
			t.Errorf("before it was configured, a read gives %v", diags)
		}
		configureProvider(t, s, "", s.block.sends(t, nil))
		text, err := ctyjson.Marshal(object(t, w.codec.typ(), set), w.codec.typ())
		if err != nil {
			t.Fatal(err)
		}
		for encoding, block := range map[string]tfprotov6.DynamicValue{"MessagePack": block, "JSON": {JSON: text}} {
			if _, diags := w.validate(t, s, w.typeName, block); len(diags) > 0 {
				t.Errorf("%s: %v", encoding, diags)
			}
			got, diags := w.use(t, s, w.typeName, block)
			if got == nil || hasError(diags) {
				t.Fatalf("%s: %v", encoding, diags)
			}
			value, ok := received(t, w.codec.typ(), got)["outputs"], len(diags) == 1 // deprecated
			var outputs map[string]tftypes.Value
			var open string
			if err := value.As(&outputs); err != nil || outputs["open"].As(&open) != nil || open != "o" || !ok {
				t.Errorf("%s: got %s, %v, %v", encoding, value, err, diags)
			}
		}
	}
}

func received(t *testing.T, typ cty.Type, sent *tfprotov6.DynamicValue) map[string]tftypes.Value {
	t.Helper()
	text, err := ctyjson.MarshalType(typ)
	if err != nil {
		t.Fatal(err)
	}
	to, err := tftypes.ParseJSONType(text) //nolint:staticcheck // it is deprecated for providers, not for tests
	if err != nil {
		t.Fatal(err)
	}
	value, err := sent.Unmarshal(to)
	var members map[string]tftypes.Value
	if err != nil || value.As(&members) != nil {
		t.Fatal(value, err)
	}
	return members
}

// The framework alone reads and configures nothing, and says so.
func TestFrameworkIsNotCalled(t *testing.T) {
	t.Parallel()
	s := NewServer("test")
	for _, w := range everything(s) {
		block := wire(t, cty.ObjectVal(minimal(w.codec.fields)), w.codec.typ())
		if _, diags := w.use(t, s.ProviderServer, w.typeName, block); len(diags) != 1 || diags[0].Summary != bypassed {
			t.Errorf("%s %s: got %v", w.name, w.typeName, diags)
		}
	}
}

// Each field of the messages that Server answers is used, or is ignored for a
// reason: see Server.
func TestFieldsOfTheProtocol(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		message any
		want    string
	}{
		{tfprotov6.ValidateProviderConfigRequest{}, "Config"},
		{tfprotov6.ValidateProviderConfigResponse{}, "PreparedConfig Diagnostics"},
		{tfprotov6.ConfigureProviderRequest{}, "TerraformVersion Config ClientCapabilities"},
		{tfprotov6.ConfigureProviderResponse{}, "Diagnostics"},
		{tfprotov6.ValidateDataResourceConfigRequest{}, "TypeName Config"},
		{tfprotov6.ValidateDataResourceConfigResponse{}, "Diagnostics"},
		{tfprotov6.ReadDataSourceRequest{}, "TypeName Config ProviderMeta ClientCapabilities"},
		{tfprotov6.ReadDataSourceResponse{}, "State Diagnostics Deferred"},
		{tfprotov6.ValidateEphemeralResourceConfigRequest{}, "TypeName Config"},
		{tfprotov6.ValidateEphemeralResourceConfigResponse{}, "Diagnostics"},
		{tfprotov6.OpenEphemeralResourceRequest{}, "TypeName Config ClientCapabilities"},
		{tfprotov6.OpenEphemeralResourceResponse{}, "Result Diagnostics Private RenewAt Deferred"},
	} {
		var got []string
		typ := reflect.TypeOf(tt.message)
		for i := range typ.NumField() {
			got = append(got, typ.Field(i).Name)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s has the fields %v, and had %s: see Server", typ, got, tt.want)
		}
	}
}
