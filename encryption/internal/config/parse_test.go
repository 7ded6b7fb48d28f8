package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// options are those of all kinds that need no SDK.
func options(variables cty.Value) config.Options {
	registry := lighttest.Registry()
	o := config.For(registry.KeyProviders, registry.Methods)
	o.Variables = variables
	return o
}

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse(text, "text", options(cty.ObjectVal(map[string]cty.Value{
		"known":   cty.StringVal("a known passphrase"),
		"unknown": cty.UnknownVal(cty.String),
	})))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// golden has the texts of a group of errors, none of which shows what is in a text.
func golden(t *testing.T, group string) *testkit.Golden {
	t.Helper()
	return testkit.OpenGolden(t, "../../testdata/mistakes.txt", "config, "+group, "c4n4ry", "C4N4RY", "CANARY", "hunter2canary",
		"correct horse battery staple")
}

func TestParseBlank(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " \n\t"} {
		if cfg, err := config.Parse(text, "text", config.Options{}); cfg != nil || err != nil {
			t.Errorf("%q: %v, %v", text, cfg, err)
		}
	}
}

// What shells, editors and web pages leave at either end is no part of the settings, and
// positions are those of the text as it was given.
func TestSpacesAround(t *testing.T) {
	t.Parallel()
	for name, around := range map[string][2]string{
		"a carriage return at the end": {"", "\r"},
		"lines of Windows":             {"\r\n", "\r\n\r"},
		"no-break spaces":              {"\u00a0", "\u00a0\u00a0"},
		"form feeds":                   {"\f", "\f\r\n"},
		"other line breaks":            {"\u2028\u0085", "\v\u2029"},
	} {
		for _, text := range []string{`state { method = method.a.b }`, `{"state": {"method": "method.a.b"}}`} {
			text := around[0] + text + around[1]
			cfg, err := config.ParseEnvironment(func(string) (string, bool) { return text, true }, config.Options{})
			if err != nil || cfg.State == nil || cfg.State.Method != "method.a.b" {
				t.Errorf("%s, TF_ENCRYPTION: %+v, %v", name, cfg, err)
			}
			if cfg, err = config.Parse(text, "text", config.Options{}); err != nil || cfg.State == nil {
				t.Errorf("%s, a file: %+v, %v", name, cfg, err)
			}
		}
	}
	for _, text := range []string{"\r\n \n  state {\n  methd = 1\n}\r", "\r\n \n  {\"state\": {\n  \"methd\": 1}}\f"} {
		var failed *attr.Error
		if _, err := config.Parse(text, "text", config.Options{}); !errors.As(err, &failed) || failed.Pos.Line != 4 || failed.Pos.Column != 3 {
			t.Errorf("%q: %v", text, err)
		}
		text = strings.Replace(text, "state", "stte", 1)
		if _, err := config.Parse(text, "text", config.Options{}); !errors.As(err, &failed) || failed.Pos.Line != 3 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Every way to write a reference means the same.
func TestReferences(t *testing.T) {
	t.Parallel()
	const want = "key_provider.pbkdf2.k"
	for _, text := range []string{
		`method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }`,
		`method "aes_gcm" "m" { keys = "key_provider.pbkdf2.k" }`,
		`method "aes_gcm" "m" { keys = "${key_provider.pbkdf2.k}" }`,
		`{"method": {"aes_gcm": {"m": {"keys": "key_provider.pbkdf2.k"}}}}`,
		`{"method": {"aes_gcm": {"m": {"keys": "${key_provider.pbkdf2.k}"}}}}`,
	} {
		s := parse(t, text).Methods["method.aes_gcm.m"].Settings["keys"]
		if s.Err != nil || s.Value.AsString() != want {
			t.Errorf("%s: %#v, %v", text, s.Value, s.Err)
		}
	}
	for _, text := range []string{
		`state { method = method.aes_gcm.m }`,
		`state { method = "method.aes_gcm.m" }`,
		`state { method = "${method.aes_gcm.m}" }`,
		`{"state": {"method": "method.aes_gcm.m"}}`,
		`{"state": {"method": "${method.aes_gcm.m}"}}`,
	} {
		if got := parse(t, text).State.Method; got != "method.aes_gcm.m" {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	native := parse(t, `
state {
  method   = method.a.a
  enforced = true
  fallback {
    method = method.a.b
    fallback { method = method.a.c }
  }
}
plan { method = method.a.d }
remote_state_data_sources {
  default { method = method.a.e }
  remote_state_data_source "sub.x[\"k\"]" { method = method.a.f }
}`)
	json := parse(t, `{
"state": {"method": "method.a.a", "enforced": true, "fallback": {"method": "method.a.b", "fallback": {"method": "method.a.c"}}},
"plan": {"method": "method.a.d"},
"remote_state_data_sources": {"default": {"method": "method.a.e"}, "remote_state_data_source": {"sub.x[\"k\"]": {"method": "method.a.f"}}}
}`)
	for _, cfg := range []*config.Config{native, json} {
		if !slices.Equal(methodsOf(cfg.State), []string{"method.a.a", "method.a.b", "method.a.c"}) || !cfg.State.Enforced {
			t.Errorf("state: %+v", cfg.State)
		}
		if cfg.Plan.Method != "method.a.d" || cfg.RemoteDefault.Method != "method.a.e" || cfg.Remote[`sub.x["k"]`].Method != "method.a.f" {
			t.Errorf("got %+v", cfg)
		}
	}
}

// A key that the text holds itself belongs to whoever asks for it.
func TestLiteral(t *testing.T) {
	t.Parallel()
	cfg := parse(t, `
method "aes_gcm" "both" {
	keys = {
		encryption_key = [1]
		decryption_key = [2]
	}
}
method "aes_gcm" "one" { keys = { encryption_key = [3] } }
method "aes_gcm" "none" { keys = key_provider.a.b }`)
	for range 2 {
		sealing, opening, ok := cfg.Literal("method.aes_gcm.both.keys")
		if !ok || !slices.Equal(sealing, []byte{1}) || !slices.Equal(opening, []byte{2}) {
			t.Errorf("got %v, %v, %t", sealing, opening, ok)
		}
		clear(sealing)
		clear(opening)
	}
	if sealing, opening, ok := cfg.Literal("method.aes_gcm.one.keys"); !ok || !slices.Equal(sealing, []byte{3}) || opening != nil {
		t.Errorf("got %v, %v, %t", sealing, opening, ok)
	}
	if _, _, ok := config.Merge(cfg, cfg).Literal("method.aes_gcm.none.keys"); ok {
		t.Error("a reference is no key")
	}
	if _, _, ok := config.Merge(cfg).Literal("method.aes_gcm.one.keys"); !ok {
		t.Error("a merge loses a key")
	}
}

// What is wrong with the structure is an error at once, with its place.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	says := golden(t, "texts")
	for _, text := range []string{
		`key_provider "pbkdf2" "k" { passphrse = "x" }`,
		`method "aes_gcm" "m" { key_provider = key_provider.pbkdf2.k }`,
		`key_provider "age" "k" { recipients_file = "x" }`,
		`key_provider "age" "k" { passphrase = "x" }`,
		`key_provider "pbkdf2" "k" { passphrase_file = "x" }`,
		`key_provider "pbkdf2" "k" { password = "x" }`,
		"PK\x03\x04c4n4ry",
		"\x1f\x8bc4n4ry",
		"s\x00t\x00a\x00",
		"\x8f\x00c4n4ry",
		`metod "aes_gcm" "m" {}`,
		`{"method": {"aes_gcm": {"m": {"key": "x"}}}}`,
		`method "aes_gcm" "m" { password = "x" }`,
		`{"method": {"aes_gcm": {"m": {"password": "x"}}}}`,
		"key_provider \"pbkdf2\" \"k\" {\n passphrase = ${var.x}\n}",
		"state {};",
		`{"state": x}`,
		`state "x" {}`,
		`default {}`,
		`method "unencrypted" "m" { password = "x" }`,
		"key_provider \"pbkdf2\" \"k\" {}\nkey_provider \"pbkdf2\" \"k\" {}",
		"state {\nmethod = method.a.b\n}\nstate {}",
		"remote_state_data_sources {\nremote_state_data_source \"x\" {}\nremote_state_data_source \"x\" {}\n}",
		`key_provider "pbkdf2" "a b" {}`,
		`state { method = key_provider.pbkdf2.k }`,
		`state { method = method.aes_gcm }`,
		"state {\nmethod = method.a.b\nfallback {}\n}",
		"state {\nmethod = method.a.b\nfallback {\nmethod = method.a.c\n}\nfallback {\nmethod = method.a.d\n}\n}",
		`state { enforced = "maybe" }`,
		"remote_state_data_sources {\ndefault {\nenforced = true\n}\n}",
		`key_provider "pbkdf2" "k" {`,
		`{`,
		"# created\n# public key: age1x\nAGE-SECRET-KEY-1CANARY",
		"AGE-PLUGIN-YUBIKEY-1CANARY",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nx",
		"# team\nage1abc\nage1def",
		"ssh-ed25519 AAAA me@here",
		"key_provider:\n  pbkdf2:\n    main: x",
		"\"key_provider\":\n  \"pbkdf2\":\n    \"main\": x",
		"correct horse battery staple",
		"method \"external\" \"m\" {\n x = <<E\nAGE-SECRET-KEY-1\nE\n y\n}",
	} {
		_, err := config.Parse(text, "text", options(cty.NilVal))
		says.Error(t, fmt.Sprintf("%.150q", text), err)
	}
}

// What is wrong with a value waits until someone uses it.
// Errors are in the order of their places: HCL has them in any order.
func TestErrorsInOrder(t *testing.T) {
	t.Parallel()
	const text = "key_provider \"pbkdf2\" \"k\" {\n  ccc = 1\n  aaa = 2\n  bbb = 3\n  ddd = 4\n}"
	for range 30 {
		_, err := config.Parse(text, "text", options(cty.NilVal))
		var lines []int
		all, _ := errors.AsType[fault.List](err)
		for _, err := range all {
			at, _ := errors.AsType[*attr.Error](err)
			lines = append(lines, at.Pos.Line)
		}
		if !slices.Equal(lines, []int{2, 3, 4, 5}) {
			t.Fatalf("got %v", err)
		}
	}
}

func TestValueErrors(t *testing.T) {
	says := golden(t, "values")
	t.Chdir(t.TempDir())
	for _, passphrase := range []string{
		`TF_VAR_c4n4ry`,
		`tonumber("c4n4ry")`,
		`regex("^[0-9]+$", "c4n4ry")`,
		`format("%d", "c4n4ry")`,
		`split("-", "c4n4ry")[7]`,
		`merge("c4n4ry", {})`,
		`base64decode("c4n4ry")`,
		`var.nobody`,
		`var.nkown`,
		`local.x`,
		`key_provider.k`,
		`method.m`,
		`trimspace(PASSPHRASE)`,
		`"${PASSPHRASE}"`,
		`"a ${PASSPHRASE}"`,
		`nonesuch("x")`,
		`trimspac("x")`,
		`base64decode("%")`,
		`jsondecode("{c4n4ry")`,
		`var.known.c4n4ry`,
		`"c4n4ry" + 1`,
		`file("keys/c4n4ry")`,
		`tobool("c4n4ry")`,
		`trimspace()`,
		`trimspace("c4n4ry", "x")`,
		`null.c4n4ry`,
		`"${null}c4n4ry"`,
		`"c4n4ry" ? "a" : "b"`,
		`true ? "c4n4ry" : [1]`,
		`coalesce("", null)`,
		`file("keys/pass.txt")`,
		`key_provider.pbkdf2.k`,
		`method.aes_gcm.m`,
		`[1]`,
		`var.unknown`,
		`file("/nonexistent/secret")`,
	} {
		cfg := parse(t, `key_provider "pbkdf2" "k" { passphrase = `+passphrase+` }`)
		table := options(cty.NilVal).KeyProviders[0]
		_, err := cfg.KeyProviders["key_provider.pbkdf2.k"].Decode(table, nil)
		says.Error(t, passphrase, err)
	}
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "passphrase")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for expression, want := range map[string]string{
		`"literal $${x} %%{y}"`: "literal ${x} %{y}",
		`var.known`:             "a known passphrase",
		`"<${var.known}>"`:      "<a known passphrase>",
		`12345`:                 "12345",
		`base64decode("aGk=")`:  "hi",
		`base64encode("hi")`:    "aGk=",
		`trimspace(file("` + filepath.ToSlash(file) + `"))`: "from a file",
		`jsondecode("{\"a\":\"b\"}").a`:                     "b",
		`join("-", ["a", "b"])`:                             "a-b",
		`sha256("")`:                                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		`sensitive("x")`:                                    "x",
		`try(var.known.nothing, "y")`:                       "y",
		`replace("a1b22", "/[0-9]+/", "-")`:                 "a-b-",
		`replace("a.b", ".", "-")`:                          "a-b",
		`coalesce("", "z")`:                                 "z",
	} {
		cfg := parse(t, `key_provider "pbkdf2" "k" { passphrase = `+expression+` }`)
		table := options(cty.NilVal).KeyProviders[0]
		v, err := cfg.KeyProviders["key_provider.pbkdf2.k"].Decode(table, nil)
		if err != nil || v.String("passphrase") != want {
			t.Errorf("%s: got %q, %v", expression, v.Identity(), err)
		}
	}
}

// A secret that someone forgot to quote, or put in the wrong place, must not
// come back in an error.
//
// Promise: Secrets in text
func TestErrorsHoldNoSecret(t *testing.T) {
	allowed, says := options(cty.NilVal), golden(t, "secrets in the wrong place")
	t.Chdir(t.TempDir())
	for _, text := range []string{
		`key_provider "pbkdf2" "k" { passphrase = hunter2canary }`,
		`key_provider "pbkdf2" "k" { passphrase = hunter2canary.x }`,
		`key_provider "pbkdf2" "k" { passphrase = hunter2canary("x") }`,
		`key_provider "pbkdf2" "k" { passphrase = base64decode("hunter2canary%") }`,
		`key_provider "pbkdf2" "k" { passphrase = tonumber("hunter2canary") }`,
		`key_provider "pbkdf2" "k" { passphrase = jsondecode("hunter2canary") }`,
		`key_provider "pbkdf2" "k" { passphrase = file("hunter2canary") }`,
		`key_provider "pbkdf2" "k" { passphrase = "hunter2canary }`,
		`key_provider "pbkdf2" "k" { passphrase = 'hunter2canary' }`,
		`key_provider "pbkdf2" "k" { passphrase = "hunter2canary" hunter2canary }`,
		`key_provider "pbkdf2" "k" { passphrase = ["hunter2canary"] }`,
		`key_provider "pbkdf2" "k" { iterations = "hunter2canary" }`,
		`key_provider "pbkdf2" "k" { chain = "hunter2canary" }`,
		`key_provider "pbkdf2" "k" { chain = { encryption_key = "hunter2canary" } }`,
		`key_provider "pbkdf2" "k" { hash_function = "hunter2canary" }`,
		`key_provider "static" "k" { key = "hunter2canary" }`,
		`key_provider "static" "k" { key_base64 = "hunter2canary" }`,
		`{"key_provider": {"pbkdf2": {"k": {"passphrase": hunter2canary}}}}`,
		`{"key_provider": {"pbkdf2": {"k": {"passphrase": "${hunter2canary}"}}}}`,
		`{"key_provider": {"pbkdf2": {"k": {"passphrase": "hunter2canary}}}}`,
		`{"key_provider": {"pbkdf2": {"k": {"passphrase": "${hunter2canary"}}}}`,
		`state { method = "hunter2canary" }`,
		`state { method = hunter2canary }`,
		`state { enforced = "hunter2canary" }`,
	} {
		cfg, err := config.Parse(text, "text", allowed)
		if err == nil {
			for i, table := range allowed.KeyProviders {
				for _, e := range cfg.KeyProviders {
					if e.Kind != table.Name {
						continue
					}
					v, decodeErr := e.Decode(table, nil)
					if err = decodeErr; err == nil {
						_, err = lighttest.Registry().KeyProviders[i].Build(v)
					}
				}
			}
		}
		says.Error(t, text, err)
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	code := parse(t, `
key_provider "pbkdf2" "k" {
  passphrase = "from code, sixteen bytes"
  iterations = 300000
}
key_provider "pbkdf2" "code" { passphrase = var.nobody }
state {
  method   = method.a.code
  enforced = true
  fallback { method = method.a.old }
}
remote_state_data_sources {
  default { method = method.a.code }
  remote_state_data_source "x" { method = method.a.code }
}`)
	env := parse(t, `
key_provider "pbkdf2" "k" {
  passphrase               = "from env, sixteen bytes!"
  encrypted_metadata_alias = "alias"
}
key_provider "pbkdf2" "code" { passphrase = "mended" }
key_provider "pbkdf2" "env" { passphrase = "from env, sixteen bytes!" }
state { method = method.a.env }
plan { enforced = true }
remote_state_data_sources {
  remote_state_data_source "x" {
    fallback { method = method.a.env }
  }
  remote_state_data_source "y" { method = method.a.env }
}`)
	merged := config.Merge(code, nil, env)
	k := merged.KeyProviders["key_provider.pbkdf2.k"].Settings
	for name, want := range map[string]cty.Value{
		"passphrase": cty.StringVal("from env, sixteen bytes!"), "iterations": cty.NumberIntVal(300000),
		"encrypted_metadata_alias": cty.NilVal, // as in OpenTofu
	} {
		if !k[name].Value.RawEquals(want) {
			t.Errorf("%s: %#v", name, k[name].Value)
		}
	}
	if s := merged.KeyProviders["key_provider.pbkdf2.code"].Settings["passphrase"]; s.Err != nil {
		t.Errorf("a later layer must mend an earlier one: %v", s.Err)
	}
	if len(merged.KeyProviders) != 3 {
		t.Errorf("got %d key providers", len(merged.KeyProviders))
	}
	if !slices.Equal(methodsOf(merged.State), []string{"method.a.env", "method.a.old"}) || !merged.State.Enforced {
		t.Errorf("state: %+v", merged.State)
	}
	if !slices.Equal(methodsOf(merged.Remote["x"]), []string{"method.a.code", "method.a.env"}) ||
		merged.Remote["y"].Method != "method.a.env" || merged.RemoteDefault.Method != "method.a.code" {
		t.Errorf("remote: %+v", merged.Remote)
	}
	if merged.Plan.Method != "" || !merged.Plan.Enforced {
		t.Errorf("plan: %+v", merged.Plan)
	}
	if code.KeyProviders["key_provider.pbkdf2.k"].Settings["passphrase"].Value.AsString() != "from code, sixteen bytes" ||
		config.Merge(nil, nil) != nil {
		t.Error("merging must not change the layers, and none is nothing")
	}
}

// The environment fills what is absent, before the default does.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	table := attr.Table{Name: "t", Attrs: []attr.Attr{
		{Name: "a", Type: cty.String, Env: []string{"FIRST", "SECOND"}, Default: cty.StringVal("default")},
		{Name: "n", Type: cty.Number, Env: []string{"NUMBER"}, Required: true},
		{Name: "l", Type: cty.List(cty.String), Env: []string{"SECOND"}},
	}}
	env := attr.LookupEnv(func(name string) (string, bool) {
		v, ok := map[string]string{"FIRST": "", "SECOND": "second", "NUMBER": "7"}[name]
		return v, ok
	})
	v, err := entries.NewEntry("t", table, nil).Decode(table, env)
	if err != nil {
		t.Fatal(err)
	}
	if v.String("a") != "second" || v.Int("n") != 7 || !slices.Equal(v.Strings("l"), []string{"second"}) {
		t.Errorf("got %s", v.Identity())
	}
	v, err = entries.NewEntry("t", table, map[string]cty.Value{"a": cty.StringVal("own"), "n": cty.NumberIntVal(1)}).Decode(table, env)
	if err != nil || v.String("a") != "own" {
		t.Errorf("got %s, %v", v.Identity(), err)
	}
	_, err = entries.NewEntry("t", table, nil).Decode(table, nil)
	golden(t, "variables").Error(t, "none that is required", err)
}

// Every function is listed in the documentation, and nothing else is.
func TestFunctionsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../templates/guides/encryption-settings.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	list := "`" + strings.Join(config.Functions(), "`, `") + "`."
	if !strings.Contains(strings.ReplaceAll(string(page), "\n", " "), list) {
		t.Errorf("templates/guides/encryption-settings.md.tmpl does not list %s", list)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`key_provider "pbkdf2" "k" { passphrase = "x" }`)
	f.Add(`{"method": {"aes_gcm": {"m": {"keys": "${key_provider.pbkdf2.k}", "aad": [1]}}}}`)
	f.Add(`state { method = method.aes_gcm.m fallback { method = "x" } }`)
	f.Add(`method "aes_gcm" "m" { keys = { encryption_key = [1, 2], decryption_key = null } }`)
	allowed := options(cty.NilVal)
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := config.Parse(text, "text", allowed)
		if (err != nil || strings.TrimSpace(text) == "") != (cfg == nil) {
			t.Errorf("%v with %v", cfg, err)
		}
		if cfg != nil && len(config.Merge(cfg, cfg).KeyProviders) != len(cfg.KeyProviders) {
			t.Error("merging a layer with itself adds nothing")
		}
	})
}

// The text may be a file that OpenTofu reads, with the encryption block in it.
func TestParseWholeFile(t *testing.T) {
	t.Parallel()
	const block = `
  key_provider "static" "k" { key = "00" }
  method "aes_gcm" "m" { keys = key_provider.static.k }
  state { method = method.aes_gcm.m }
`
	allowed, says := options(cty.NilVal), golden(t, "whole files")
	for name, tt := range map[string]struct {
		text    string
		refused bool
	}{
		"inside":               {text: block},
		"encryption":           {text: "encryption {" + block + "}"},
		"terraform":            {text: "terraform {\nencryption {" + block + "}\n}"},
		"with more":            {text: "terraform {\n  required_version = \">= 1.8\"\n  encryption {" + block + "}\n}\nvariable \"p\" {}\n"},
		"two terraform blocks": {text: "terraform {\n  backend \"s3\" {}\n}\nterraform {\nencryption {" + block + "}\n}"},
		"JSON, terraform": {text: `{"terraform": [{"encryption": {"key_provider": {"static": {"k": {"key": "00"}}},` +
			`"method": {"aes_gcm": {"m": {"keys": "${key_provider.static.k}"}}}, "state": {"method": "${method.aes_gcm.m}"}}}]}`},
		"JSON, encryption": {text: `{"encryption": {"key_provider": {"static": {"k": {"key": "00"}}},` +
			`"method": {"aes_gcm": {"m": {"keys": "${key_provider.static.k}"}}}, "state": {"method": "${method.aes_gcm.m}"}}}`},
		"none":        {text: "terraform {\n  required_version = \">= 1.8\"\n}", refused: true},
		"two":         {text: "encryption {}\nencryption {}", refused: true},
		"beside":      {text: "terraform {\nencryption {}\n}\nstate {}", refused: true},
		"a mistake":   {text: "terraform {\n  encryption {\n    metod \"a\" \"b\" {}\n  }\n}", refused: true},
		"JSON, typo":  {text: "{\n\"encryption\": {\n \"metod\": {}}}", refused: true},
		"a bad value": {text: "encryption {\n  state {\n    method = 1\n  }\n}", refused: true},
	} {
		cfg, err := config.Parse(tt.text, "text", allowed)
		switch {
		case tt.refused:
			says.Error(t, name, err)
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case cfg.State == nil || cfg.State.Method != "method.aes_gcm.m" || cfg.KeyProviders["key_provider.static.k"] == nil:
			t.Errorf("%s: got %+v", name, cfg)
		}
	}
}

// A file may describe a backend as well, for a program that asks for it.
func TestBackend(t *testing.T) {
	t.Parallel()
	const method = "method \"unencrypted\" \"u\" {}\n"
	allowed := options(cty.ObjectVal(map[string]cty.Value{"token": cty.StringVal("a token")}))
	says := golden(t, "backends")
	for name, tt := range map[string]struct {
		text    string
		none    bool // nobody asks for it
		secret  string
		refused bool
	}{
		"absent":           {text: method},
		"a block":          {text: "backend \"http\" {\n  password = var.token\n}\n" + method, secret: "a token"},
		"JSON":             {text: `{"backend": {"http": {"password": "${var.token}"}}, "method": {"unencrypted": {"u": {}}}}`, secret: "a token"},
		"whole file":       {text: "backend \"http\" {\n  password = \"x\"\n}\nterraform {\nencryption {\n" + method + "}\n}", secret: "x"},
		"two":              {text: "backend \"http\" {}\nbackend \"http\" {}\n" + method, refused: true},
		"another kind":     {text: "backend \"s3\" {}\n" + method, refused: true},
		"a typo":           {text: "backend \"http\" {\n  pasword = 1\n}\n" + method, refused: true},
		"no label":         {text: "backend {}\n" + method, refused: true},
		"nobody wants":     {text: "backend \"http\" {}\n" + method, none: true, refused: true},
		"inside of all":    {text: "encryption {\nbackend \"http\" {}\n" + method + "}", refused: true},
		"misspelt":         {text: "backends \"http\" {}\n" + method, refused: true},
		"an argument":      {text: "backend = \"http\"\n" + method, refused: true},
		"another block":    {text: "nonsense {}\n" + method, refused: true},
		"inside, misspelt": {text: "encryption {\nbackends \"http\" {}\n" + method + "}", refused: true},
	} {
		opts := allowed
		var backend *entries.Entry
		opts.Backend = func(found *entries.Entry) { backend = found }
		if !tt.none {
			opts.Backends = []attr.Table{{Name: "http", Attrs: []attr.Attr{{Name: "password", Type: cty.String, Secrecy: attr.Secret}}}}
		}
		cfg, err := config.Parse(tt.text, "text", opts)
		switch {
		case tt.refused:
			says.Error(t, name, err)
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case cfg.Methods["method.unencrypted.u"] == nil || (backend == nil) != (tt.secret == ""):
			t.Errorf("%s: got %+v", name, cfg)
		case backend != nil && backend.Settings["password"].Value.AsString() != tt.secret:
			t.Errorf("%s: got %+v", name, backend)
		}
	}
	lookup := func(name string) (string, bool) { return "backend \"http\" {}\n" + method, name == "TF_ENCRYPTION" }
	allowed.Backends = []attr.Table{{Name: "http"}}
	if _, err := config.ParseEnvironment(lookup, allowed); err == nil {
		t.Error("TF_ENCRYPTION describes a backend")
	}
}

// TF_ENCRYPTION is what OpenTofu accepts there, and no more.
func TestParseEnvironmentUnwrapsNothing(t *testing.T) {
	t.Parallel()
	lookup := func(string) (string, bool) { return "encryption {}", true }
	if _, err := config.ParseEnvironment(lookup, options(cty.NilVal)); err == nil {
		t.Error("a wrapped text was accepted")
	}
}

// TestNameOfAFile: a name in place of the settings is called that, and not repeated.
func TestNameOfAFile(t *testing.T) {
	says := golden(t, "the name of a file")
	for _, text := range []string{"keys.hcl", "@keys.hcl", "/etc/keys.tf\n", "../k.json", `C:\keys.hcl`} {
		_, err := config.Parse(text, "text", config.Options{})
		says.Error(t, fmt.Sprintf("%q", text), err)
		_, err = config.ParseEnvironment(func(string) (string, bool) { return text, true }, config.Options{})
		says.Error(t, fmt.Sprintf("%q, a variable", text), err)
	}
	for _, text := range []string{"keys", "@keys", "state {}.hcl", "hunter2"} {
		_, err := config.Parse(text, "text", config.Options{})
		says.Error(t, fmt.Sprintf("%q, which is none", text), err)
	}
}

func methodsOf(t *config.Target) []string { return append([]string{t.Method}, t.Fallbacks...) }
