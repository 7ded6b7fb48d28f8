package provider

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// hostile has what CI systems and terminals obey.
const hostile = "h0stile ##vso[task.setvariable variable=x]y ::error::z\x1b[2J\u202e\n::warning::w\r##[error]v"

// stranger is a source that says what it likes.
type stranger struct {
	name     string
	err      error
	warnings []source.Warning
}

func (s stranger) String() string { return s.name }

func (s stranger) Fetch(context.Context) (*source.Snapshot, error) {
	return &source.Snapshot{Data: []byte(plainState), Revision: hostile, Warnings: s.warnings}, s.err
}

func (s stranger) kinds() kinds {
	return kinds{registry: builtin.Registry(), sources: []source.Kind{{
		Table: attr.Table{Name: "memory", Doc: "A source.", Attrs: []attr.Attr{{Name: "path", Type: cty.String, Doc: "A path."}}},
		Begin: func(source.Settings) source.Open {
			return func(source.Request) (source.Source, error) { return s, nil }
		},
	}}}
}

func quoted(t *testing.T, s string) string {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// sopsWith returns a file of sops with one more member, in plaintext.
func sopsWith(t *testing.T, member string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "builtin", "method", "sops", "testdata", "small.json"))
	if err != nil {
		t.Fatal(err)
	}
	return "{" + quoted(t, member) + `: "in plaintext",` + strings.TrimPrefix(string(data), "{")
}

const exitText = `
key_provider "pbkdf2" "k" { passphrase = "correct-horse-battery-staple" }
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
method "unencrypted" "u" {}
method "age" "a" { passphrase = "correct-horse-battery-staple" }
method "sops" "s" { age_identity_files = ["../../builtin/method/sops/testdata/age_identity.txt"] }
method "external" "e" {
  encrypt_command = ["sh", "-c", "true"]
  decrypt_command = ["sh", "-c", "printf 'h0stile ##vso[x]\\n::error::y\\033[2J' >&2; exit 1"]
}
`

// TestTextFromOutside has what strangers write in all the places of which
// something is shown. None of it may reach a terminal or a CI system as it is.
//
// Promise: Text from outside
func TestTextFromOutside(t *testing.T) {
	t.Parallel()
	q := quoted(t, hostile)
	state := func(members string) string {
		return `{"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"l-1","resources":[],` + members + `}`
	}
	files := map[string]struct {
		method, file string
		set          map[string]cty.Value
		resource     bool
	}{
		"encryption_version": {method: "method.aes_gcm.m", file: `{"encryption_version":` + q + `,"encrypted_data":"","meta":{}}`},
		"metadata":           {method: "unencrypted", file: `{"encryption_version":"v0","encrypted_data":"","meta":{` + q + `:"e30="}}`},
		"member of sops":     {method: "method.sops.s", file: sopsWith(t, hostile)},
		"recipient of age": {method: "method.age.a", file: "age-encryption.org/v1\n-> h0stile##vso[x] ::error::\nAAAA\n--- " +
			strings.Repeat("A", 43) + "\n"},
		"error of age":         {method: "method.age.a", file: "age-encryption.org/v1\n-> h0stile\x1b[2J##vso[x]\n::error::y\n"},
		"what a program says":  {method: "method.external.e", file: `{"encryption_version":"v0","encrypted_data":"AAAA","meta":{}}`},
		"deprecation":          {method: "unencrypted", file: state(`"outputs":{"o":{"value":1,"type":"number","deprecated":` + q + `}}`)},
		"name of an output":    {method: "unencrypted", file: state(`"outputs":{` + q + `:{"value":1,"type":"number","deprecated":"x"}}`)},
		"output without value": {method: "unencrypted", file: state(`"outputs":{` + q + `:{"value":1,"type":"list"}}`)},
		"attribute": {
			method: "unencrypted", file: state(`"outputs":{"o":{"value":{` + q + `:1},"type":["object",{"a":"string"}]}}`),
		},
		"key of a map": {method: "unencrypted", file: state(`"outputs":{"o":{"value":{` + q + `:[]},"type":["map","string"]}}`)},
		"lineage": {
			method: "unencrypted", file: strings.Replace(state(`"outputs":{}`), `"l-1"`, q, 1),
			set: map[string]cty.Value{"expected_lineage": text1("l-1")},
		},
		"name that is near": {
			method: "unencrypted", file: state(`"outputs":{` + quoted(t, "##[h0stile]\x1b") + `:{"value":1,"type":"number"}}`),
			set: map[string]cty.Value{"only": cty.ListVal([]cty.Value{text1("##[h0stile]\x1b!")})},
		},
		"resource": {
			method: "unencrypted", resource: true, set: map[string]cty.Value{"address": text1("aws_x.main")},
			file: `{"version":4,"serial":1,"lineage":"l","outputs":{},"resources":[{"mode":"managed","type":"aws_x","name":"main",` +
				`"provider":"p","instances":[{"index_key":` + q + `,"attributes":{},"schema_version":0},{"index_key":` + q + `,"attributes":{}}]}]}`,
		},
		"fallback": {
			method: "method.external.e", file: string(conformance.Get("pbkdf2_defaults").State()),
			set: map[string]cty.Value{"fallback": one(map[string]cty.Value{"method": text1("method.aes_gcm.m")})},
		},
	}
	shown := map[string]func(t *testing.T) diagnostics{
		"name of the source": func(t *testing.T) diagnostics {
			t.Helper()
			return diagnosticsOf(t, stranger{name: hostile, err: errors.New("no answer")}.kinds(), false, "unencrypted", nil)
		},
		"error of the source": func(t *testing.T) diagnostics {
			t.Helper()
			return diagnosticsOf(t, stranger{name: "a source", err: errors.New(hostile)}.kinds(), false, "unencrypted", nil)
		},
		"missing state": func(t *testing.T) diagnostics {
			t.Helper()
			missing := &source.MissingError{Detail: hostile}
			set := map[string]cty.Value{"on_missing": text1("defaults")}
			return diagnosticsOf(t, stranger{name: "a source", err: missing}.kinds(), false, "unencrypted", set)
		},
		"warning of the source": func(t *testing.T) diagnostics {
			t.Helper()
			warns := stranger{name: "a source", warnings: []source.Warning{{Title: hostile, Text: hostile}}}
			return diagnosticsOf(t, warns.kinds(), false, "unencrypted", nil)
		},
		"summary of a warning": func(*testing.T) diagnostics {
			return warningDiagnostics([]source.Warning{{Title: hostile, Text: "x"}})
		},
		"problem at a path": func(*testing.T) diagnostics {
			return problemDiagnostics([]problem{{path: path.Root("x"), err: errors.New(hostile)}})
		},
		"problem": func(*testing.T) diagnostics { return problemDiagnostics([]problem{{err: errors.New(hostile)}}) },
		"derived key": func(*testing.T) diagnostics {
			return readDiagnostics(ephemeralResource, &stepError{step: stepDerive, err: errors.New(hostile)}, nil)
		},
	}
	for name, c := range files {
		shown[name] = func(t *testing.T) diagnostics {
			t.Helper()
			m := &memory{files: map[string][]byte{"file": []byte(c.file)}}
			return diagnosticsOf(t, newCatalog(m), c.resource, c.method, c.set)
		}
	}
	for name, get := range shown {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := false
			for _, d := range get(t) {
				found = found || strings.Contains(d.Summary+d.Detail, "h0stile")
				checkHarmless(t, d.Summary)
				checkHarmless(t, d.Detail)
			}
			if !found {
				t.Errorf("nothing of it is shown, so that this shows nothing: %v", get(t))
			}
		})
	}
}

// A revision is what a server says. Whoever uses the attribute may print it.
//
// Promise: Text from outside
func TestHostileRevision(t *testing.T) {
	t.Parallel()
	cat := stranger{name: "a source"}.kinds()
	set := map[string]cty.Value{"memory": at("file"), "method": text1("unencrypted")}
	got, err := read(t, configureWith(t, cat, nil, nil), cat, set)
	if err != nil {
		t.Fatal(err)
	}
	revision := got.attributes["revision"].AsString()
	checkHarmless(t, revision)
	if !strings.HasPrefix(revision, "h0stile ") || strings.ContainsAny(revision, "\n") || strings.Contains(revision, "::") {
		t.Errorf("got %q", revision)
	}
}

// diagnosticsOf reads the file "file" and returns what is said of it.
func diagnosticsOf(t *testing.T, cat kinds, resource bool, method string, set map[string]cty.Value) diagnostics {
	t.Helper()
	all := map[string]cty.Value{"memory": at("file"), "method": text1(method)}
	for name, v := range set {
		all[name] = v
	}
	c := configureWith(t, cat, nil, map[string]cty.Value{"encryption": text1(exitText), "allow_resource_reads": cty.True})
	as := cat.remoteState(dataSource, cat.stateFields())
	if resource {
		as = cat.resource(dataSource, cat.stateFields())
	}
	req, problems := as.request(as.kinds, object(t, as.typ(), all), nil)
	if len(problems) > 0 {
		return problemDiagnostics(problems)
	}
	got, err := req.read(t.Context(), c)
	if err != nil {
		return readDiagnostics(dataSource, err, nil)
	}
	return warningDiagnostics(got.warnings)
}

func checkHarmless(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "##") || strings.ContainsAny(text, "\x1b\u202e\r") {
		t.Errorf("it is shown as it is: %q", text)
	}
	for _, word := range strings.Fields(text) {
		if strings.HasPrefix(word, "::") {
			t.Errorf("a line may begin with it: %q", text)
		}
	}
}
