package provider

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// memory is a source whose files are held by the test.
type memory struct {
	files   map[string][]byte // :: path → file
	fetches atomic.Int64
}

func (m *memory) kind() source.Kind {
	return source.Kind{
		Table: attr.Table{Name: "memory", Doc: "Memory.", Attrs: []attr.Attr{{Name: "path", Type: cty.String, Required: true, Doc: "A path."}}},
		Begin: func(source.Settings) source.Open {
			return func(r source.Request) (source.Source, error) { return memoryFile{m, r.String("path")}, nil }
		},
	}
}

type memoryFile struct {
	memory *memory
	path   string
}

func (f memoryFile) String() string { return "memory " + f.path }

func (f memoryFile) Fetch(context.Context) (*source.Snapshot, error) {
	f.memory.fetches.Add(1)
	if f.path == "denied" {
		return nil, errors.New("access denied")
	}
	data, ok := f.memory.files[f.path]
	if !ok {
		return nil, &source.MissingError{Detail: "nothing is at this path", CredentialsSent: true}
	}
	return &source.Snapshot{Data: bytes.Clone(data), Revision: "r1"}, nil
}

func newCatalog(m *memory) kinds {
	return patient(kinds{registry: builtin.Registry(), sources: []source.Kind{m.kind()}})
}

// object makes the value that Terraform sends for a block of this type: what is
// not set is null, or no block at all.
func object(t testing.TB, typ cty.Type, set map[string]cty.Value) cty.Value {
	t.Helper()
	values := map[string]cty.Value{}
	for name, at := range typ.AttributeTypes() {
		v, isSet := set[name]
		isBlock := at.IsListType() && at.ElementType().IsObjectType()
		switch {
		case isSet && !v.IsKnown():
			values[name] = cty.UnknownVal(at)
		case isSet && isBlock && v.LengthInt() > 0:
			var blocks []cty.Value
			for _, b := range v.AsValueSlice() {
				blocks = append(blocks, object(t, at.ElementType(), b.AsValueMap()))
			}
			values[name] = cty.ListVal(blocks)
		case isBlock:
			values[name] = cty.ListValEmpty(at.ElementType())
		case isSet:
			values[name] = v
		default:
			values[name] = cty.NullVal(at)
		}
	}
	return cty.ObjectVal(values)
}

// wire is the value as the plugin protocol has it.
func wire(t testing.TB, v cty.Value, typ cty.Type) tfprotov6.DynamicValue {
	t.Helper()
	data, err := msgpack.Marshal(v, typ)
	if err != nil {
		t.Fatal(err)
	}
	return tfprotov6.DynamicValue{MsgPack: data}
}

// sends is the block that Terraform sends with these arguments.
func (c codec) sends(t testing.TB, set map[string]cty.Value) tfprotov6.DynamicValue {
	t.Helper()
	return wire(t, object(t, c.typ(), set), c.typ())
}

func one(members map[string]cty.Value) cty.Value {
	return cty.TupleVal([]cty.Value{cty.ObjectVal(members)})
}

func at(p string) cty.Value { return one(map[string]cty.Value{"path": cty.StringVal(p)}) }

func configureWith(t *testing.T, c kinds, env attr.LookupEnv, set map[string]cty.Value) *configured {
	t.Helper()
	out, problems := c.configure(object(t, typeOf(c.providerFields()), set), env)
	for _, problem := range problems {
		t.Fatal(problem.err)
	}
	return out
}

func requestFor(t *testing.T, c kinds, set map[string]cty.Value) (remoteStateRequest, error) {
	t.Helper()
	r, problems := c.remoteStateRequest(object(t, c.remoteState(dataSource, c.stateFields()).typ(), set), nil)
	if len(problems) > 0 {
		return remoteStateRequest{}, problems[0].err
	}
	return r.(remoteStateRequest), nil
}

const plainState = `{"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"l-1","resources":[],"outputs":{
	"open":{"value":"o","type":"string"},
	"null":{"value":null,"type":"string"},
	"hidden":{"value":"s3cret","type":"string","sensitive":true},
	"old":{"value":1,"type":"number","deprecated":"use \u001b[31mopen"}}}`

func plainMemory() *memory { return &memory{files: map[string][]byte{"plain": []byte(plainState)}} }

func text1(s string) cty.Value { return cty.StringVal(s) }

func TestRead(t *testing.T) {
	t.Parallel()
	defaults := func(name string) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{name: text1("default")})
	}
	names := func(n ...string) cty.Value {
		var out []cty.Value
		for _, s := range n {
			out = append(out, text1(s))
		}
		return cty.ListVal(out)
	}
	golden := openMistakes(t, "outputs")
	for name, c := range map[string]struct {
		set  map[string]cty.Value
		want map[string]cty.Value // read-only attributes, or a part of the error under "error"
		warn string
	}{
		"everything": {nil, map[string]cty.Value{
			"outputs": cty.ObjectVal(map[string]cty.Value{"open": text1("o"), "null": cty.NullVal(cty.String),
				"old": cty.NumberIntVal(1)}),
			"sensitive_outputs":      cty.NullVal(cty.DynamicPseudoType),
			"sensitive_output_names": names("hidden"),
			"exists":                 cty.True, "serial": cty.NumberIntVal(7), "lineage": text1("l-1"), "terraform_version": text1("1.9.0"),
			"encrypted": cty.False, "decrypted_with": cty.NullVal(cty.String), "used_fallback": cty.False, "revision": text1("r1"),
		}, ""},
		"stored": {map[string]cty.Value{"store_sensitive": cty.True}, map[string]cty.Value{
			"sensitive_outputs": cty.ObjectVal(map[string]cty.Value{"hidden": text1("s3cret")}),
		}, ""},
		"deprecated": {nil, nil, `"old": "use \u001b[31mopen"`},
		"only": {map[string]cty.Value{"only": names("open", "open")}, map[string]cty.Value{
			"outputs":                cty.ObjectVal(map[string]cty.Value{"open": text1("o")}),
			"sensitive_output_names": cty.ListValEmpty(cty.String),
		}, ""},
		"only nothing": {map[string]cty.Value{"only": cty.ListValEmpty(cty.String)}, map[string]cty.Value{"outputs": cty.EmptyObjectVal},
			""},
		"only an unknown one": {map[string]cty.Value{"only": names("opn")},
			refused, ""},
		"default for one that is there": {map[string]cty.Value{"defaults": defaults("open"), "only": names("open")}, map[string]cty.Value{
			"outputs": cty.ObjectVal(map[string]cty.Value{"open": text1("o")}),
		}, ""},
		"default for null": {map[string]cty.Value{"defaults": defaults("null"), "only": names("null")}, map[string]cty.Value{
			"outputs": cty.ObjectVal(map[string]cty.Value{"null": cty.NullVal(cty.String)}),
		}, ""},
		"only a sensitive one": {map[string]cty.Value{"only": names("open", "hidden")},
			refused, ""},
		"only a sensitive one, stored": {map[string]cty.Value{"only": names("hidden"), "store_sensitive": cty.True}, map[string]cty.Value{
			"outputs": cty.EmptyObjectVal, "sensitive_outputs": cty.ObjectVal(map[string]cty.Value{"hidden": text1("s3cret")}),
		}, ""},
		"only a sensitive default": {map[string]cty.Value{"sensitive_defaults": defaults("new"), "only": names("new")},
			refused, ""},
		"default for a sensitive one": {map[string]cty.Value{"defaults": defaults("hidden")}, map[string]cty.Value{
			"outputs": cty.ObjectVal(map[string]cty.Value{"open": text1("o"), "null": cty.NullVal(cty.String), "old": cty.NumberIntVal(1)}),
		}, ""},
		"default for one that is not there": {map[string]cty.Value{"defaults": defaults("new"), "only": names("new")}, map[string]cty.Value{
			"outputs": cty.ObjectVal(map[string]cty.Value{"new": text1("default")}),
		}, ""},
		"sensitive default for an open one": {map[string]cty.Value{"sensitive_defaults": defaults("open"), "store_sensitive": cty.True,
			"only": names("open")}, map[string]cty.Value{
			"outputs": cty.ObjectVal(map[string]cty.Value{"open": text1("o")}), "sensitive_outputs": cty.EmptyObjectVal,
		}, ""},
		"both defaults": {map[string]cty.Value{"defaults": defaults("x"), "sensitive_defaults": defaults("x")},
			refused, ""},
		"defaults are no object": {map[string]cty.Value{"defaults": text1("x")},
			refused, ""},
		"right lineage":      {map[string]cty.Value{"expected_lineage": text1("l-1")}, nil, ""},
		"wrong lineage":      {map[string]cty.Value{"expected_lineage": text1("l-2")}, refused, ""},
		"empty lineage":      {map[string]cty.Value{"expected_lineage": text1("")}, refused, ""},
		"serial reached":     {map[string]cty.Value{"minimum_serial": cty.NumberIntVal(7)}, nil, ""},
		"serial not reached": {map[string]cty.Value{"minimum_serial": cty.NumberIntVal(8)}, refused, ""},
		"serial is a fraction": {map[string]cty.Value{"minimum_serial": cty.NumberFloatVal(6.5)},
			refused, ""},
		"missing": {map[string]cty.Value{"memory": at("gone"), "defaults": defaults("x")},
			refused, ""},
		"missing with defaults": {map[string]cty.Value{"memory": at("gone"), "on_missing": text1("defaults"), "defaults": defaults("x")},
			map[string]cty.Value{
				"outputs": defaults("x"), "exists": cty.False, "serial": cty.NullVal(cty.Number), "encrypted": cty.NullVal(cty.Bool),
			}, "redentials"},
		"missing under a lineage": {map[string]cty.Value{"memory": at("gone"), "on_missing": text1("defaults"),
			"expected_lineage": text1("l-1")}, refused, ""},
		"missing under a serial": {map[string]cty.Value{"memory": at("gone"), "on_missing": text1("defaults"), "minimum_serial": cty.Zero},
			refused, ""},
		"missing only": {map[string]cty.Value{"memory": at("gone"), "on_missing": text1("defaults"), "only": names("x")},
			refused, ""},
		"denied is not missing": {map[string]cty.Value{"memory": at("denied"), "on_missing": text1("defaults")},
			refused, ""},
		"encrypted is not missing": {map[string]cty.Value{"memory": at("encrypted"), "on_missing": text1("defaults")},
			refused, ""},
		"on_missing is misspelt": {map[string]cty.Value{"on_missing": text1("default")},
			refused, ""},
		"default workspace": {map[string]cty.Value{"workspace": text1("default")}, nil, ""},
		"other workspace":   {map[string]cty.Value{"workspace": text1("w")}, refused, ""},
		"fallback without method": {map[string]cty.Value{"method": cty.NullVal(cty.String),
			"fallback": one(map[string]cty.Value{"method": text1("unencrypted")})},
			refused, ""},
		"no method": {map[string]cty.Value{"method": cty.NullVal(cty.String)},
			refused, ""},
		"name without text": {map[string]cty.Value{"method": cty.NullVal(cty.String), "name": text1("x")},
			refused, ""},
		"name and method": {map[string]cty.Value{"name": text1("x")}, refused, ""},
		"no source": {map[string]cty.Value{"memory": cty.EmptyTupleVal},
			refused, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := plainMemory()
			m.files["encrypted"] = conformance.Get("pbkdf2_defaults").State()
			set := map[string]cty.Value{"memory": at("plain"), "method": text1("unencrypted")}
			maps.Copy(set, c.set)
			cat := newCatalog(m)
			result, err := read(t, configureWith(t, cat, nil, nil), cat, set)
			if _, ok := c.want["error"]; ok {
				wantRefused(t, golden, name, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for attr, want := range c.want {
				if got := result.attribute(attr, want); !got.RawEquals(want) {
					t.Errorf("%s: got %#v, want %#v", attr, got, want)
				}
			}
			var warnings strings.Builder
			for _, w := range warningDiagnostics(result.warnings) {
				warnings.WriteString(w.Detail)
			}
			if !strings.Contains(warnings.String(), c.warn) || strings.Contains(warnings.String(), "s3cret") {
				t.Errorf("got the warnings %q, want %q", warnings.String(), c.warn)
			}
		})
	}
}

// attribute is what a read-only attribute becomes: null, if it is absent.
func (r *result) attribute(name string, like cty.Value) cty.Value {
	if v, ok := r.attributes[name]; ok {
		return v
	}
	return cty.NullVal(like.Type())
}

func read(t *testing.T, c *configured, cat kinds, set map[string]cty.Value) (*result, error) {
	t.Helper()
	r, err := requestFor(t, cat, set)
	if err != nil {
		return nil, err
	}
	return r.read(t.Context(), c)
}

func TestReadsShareOneFetch(t *testing.T) {
	t.Parallel()
	m := plainMemory()
	cat := newCatalog(m)
	c := configureWith(t, cat, nil, nil)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			set := map[string]cty.Value{"memory": at("plain"), "method": text1("unencrypted"), "store_sensitive": cty.BoolVal(i%2 == 0)}
			if _, err := read(t, c, cat, set); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := m.fetches.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
	// Another provider configuration shares nothing with the first.
	if _, err := read(t, configureWith(t, cat, nil, nil), cat, map[string]cty.Value{"memory": at("plain"),
		"method": text1("unencrypted")}); err != nil || m.fetches.Load() != 2 {
		t.Errorf("%d fetches, %v", m.fetches.Load(), err)
	}
}

// A state that a strict reader refused must not come out of the memory of a
// lenient one, nor the other way round.
func TestMethodsAreNotShared(t *testing.T) {
	t.Parallel()
	m := plainMemory()
	cat := newCatalog(m)
	c := configureWith(t, cat, nil, nil)
	for range 2 {
		if _, err := read(t, c, cat, map[string]cty.Value{"memory": at("plain"), "method": text1("unencrypted")}); err != nil {
			t.Error(err)
		}
		if _, err := read(t, c, cat, map[string]cty.Value{"memory": at("plain")}); err == nil {
			t.Error("a plaintext state came out where no method allows it")
		}
	}
}

const textFor = `key_provider "pbkdf2" "k" { passphrase = "correct-horse-battery-staple" }
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
method "unencrypted" "u" {}
`

// Promise: One place for settings
func TestSettingsStandInOnePlace(t *testing.T) {
	t.Parallel()
	file := conformance.Get("pbkdf2_defaults").State()
	keyProvider := one(map[string]cty.Value{"pbkdf2": one(map[string]cty.Value{"name": text1("k"),
		"passphrase": text1("correct-horse-battery-staple")})})
	method := one(map[string]cty.Value{"aes_gcm": one(map[string]cty.Value{"name": text1("m"), "keys": text1("key_provider.pbkdf2.k")})})
	defaultTo := func(address string) cty.Value { return one(map[string]cty.Value{"method": text1(address)}) }
	env := func(text string) attr.LookupEnv {
		return func(name string) (string, bool) { return text, name == "TF_ENCRYPTION" }
	}
	golden := openMistakes(t, "one place")
	for name, c := range map[string]struct {
		provider map[string]cty.Value
		env      attr.LookupEnv
		source   map[string]cty.Value
		fails    bool // as in the golden
	}{
		"blocks": {map[string]cty.Value{"key_provider": keyProvider, "method": method,
			"default": defaultTo("method.aes_gcm.m")}, nil, nil, false},
		"blocks leave the environment": {map[string]cty.Value{"key_provider": keyProvider, "method": method,
			"default": defaultTo("method.aes_gcm.m")}, env("broken {"), nil, false},
		"text":        {map[string]cty.Value{"encryption": text1(textFor + "state { method = method.aes_gcm.m }")}, nil, nil, false},
		"environment": {nil, env(textFor + "state { method = method.aes_gcm.m }"), nil, false},
		"no environment wanted": {map[string]cty.Value{"use_environment": cty.False}, env(textFor + "state { method = method.aes_gcm.m }"),
			nil, true},
		"environment over text": {map[string]cty.Value{"encryption": text1(textFor)}, env("state { method = method.aes_gcm.m }"), nil, false},
		"remote default before state": {map[string]cty.Value{"encryption": text1(textFor +
			"state { method = method.unencrypted.u }\nremote_state_data_sources {\ndefault {\nmethod = method.aes_gcm.m\n}\n}")}, nil, nil, false},
		"named": {map[string]cty.Value{"encryption": text1(textFor +
			"remote_state_data_sources {\nremote_state_data_source \"x\" {\nmethod = method.aes_gcm.m\n}\n}")}, nil,
			map[string]cty.Value{"name": text1("x")}, false},
		"named, and not there": {map[string]cty.Value{"encryption": text1(textFor + "state { method = method.aes_gcm.m }")}, nil,
			map[string]cty.Value{"name": text1("y")}, true},
		"own method": {map[string]cty.Value{"encryption": text1(textFor)}, nil,
			map[string]cty.Value{"method": text1("method.aes_gcm.m")}, false},
		"own method inherits nothing": {map[string]cty.Value{"encryption": text1(textFor +
			"state {\nmethod = method.unencrypted.u\nfallback {\nmethod = method.aes_gcm.m\n}\n}")}, nil,
			map[string]cty.Value{"method": text1("method.unencrypted.u")}, true},
		"variable": {map[string]cty.Value{"encryption": text1(strings.ReplaceAll(textFor, `"correct-horse-battery-staple"`,
			"var.p") + "state { method = method.aes_gcm.m }"),
			"encryption_variables": cty.MapVal(map[string]cty.Value{"p": text1("correct-horse-battery-staple")})}, nil, nil, false},
		"unknown variable": {map[string]cty.Value{"encryption": text1(strings.ReplaceAll(textFor, `"correct-horse-battery-staple"`,
			"var.p") + "state { method = method.aes_gcm.m }"), "encryption_variables": cty.UnknownVal(cty.Map(cty.String))}, nil, nil, true},
		"unknown text": {map[string]cty.Value{"encryption": cty.UnknownVal(cty.String)}, nil, nil, true},
		"enforced": {map[string]cty.Value{"enforced": cty.True, "encryption": text1(textFor)}, nil,
			map[string]cty.Value{"method": text1("method.aes_gcm.m"), "fallback": one(map[string]cty.Value{"method": text1("unencrypted")})}, true},
		"enforced in the text": {map[string]cty.Value{"encryption": text1(textFor + "state {\nmethod = method.aes_gcm.m\nenforced = true\n}")},
			nil, map[string]cty.Value{"method": text1("unencrypted")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cat := newCatalog(&memory{files: map[string][]byte{"s": file}})
			set := map[string]cty.Value{"memory": at("s")}
			maps.Copy(set, c.source)
			result, err := read(t, configureWith(t, cat, c.env, c.provider), cat, set)
			switch {
			case c.fails:
				wantRefused(t, golden, name, err)
			case err != nil:
				t.Error(err)
			case !result.attributes["decrypted_with"].RawEquals(text1("method.aes_gcm.m")):
				t.Errorf("got %#v", result.attributes)
			}
		})
	}
}

// Terraform itself would fail with a message about its protocol.
func TestOutputsTooLargeForTheProtocol(t *testing.T) {
	t.Parallel()
	state, err := tfstate.Parse([]byte(plainState))
	if err != nil {
		t.Fatal(err)
	}
	all := (remoteStateRequest{keepSensitive: true}).given(state, []string{"hidden", "open"})
	if err := checkSize(state, all, 20); err == nil || !strings.Contains(err.Error(), "only") {
		t.Errorf("got %v", err)
	}
	if err := checkSize(state, (remoteStateRequest{}).given(state, []string{"hidden", "open"}), 20); err != nil {
		t.Error(err)
	}
}
