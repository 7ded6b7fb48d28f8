package states

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/httpsource"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// A state that the module had without wrap is told of: under wrap, Terraform does not look
// at it, and would make everything in it again.
func TestWarnOfOwn(t *testing.T) {
	t.Parallel()
	const plain = `{"version":4,"serial":1,"lineage":"l","resources":[{}]}`
	const local = `{"version":3,"backend":{"type":"local","config":{"path":"other.tfstate"}}}`
	const s3 = `{"version":3,"backend":{"type":"s3","config":{}}}`
	own := func(text string) map[string]string { return map[string]string{"terraform.tfstate": text} }
	mistakes := wraptest.OpenMistakes(t, "own state")
	for name, c := range map[string]struct {
		command, record string
		files           map[string]string
	}{
		"a state":                {command: "apply", files: own(plain)},
		"an encrypted one":       {command: "apply", files: own(string(wraptest.Sealed(t, plain)))},
		"an encrypted one, init": {command: "init", files: own(string(wraptest.Sealed(t, plain)))},
		"an empty file":          {command: "apply", files: own("")},
		"what destroy leaves":    {command: "apply", files: own(wraptest.State)},
		"none":                   {command: "init"},
		"of another name":        {command: "init", record: local, files: map[string]string{"other.tfstate": plain}},
		"another backend":        {command: "init", record: s3},
		"another backend, then":  {command: "apply", record: s3},
	} {
		dir := t.TempDir()
		m := &module.Module{Dir: dir, Data: filepath.Join(dir, "data")}
		files := map[string]string{}
		maps.Copy(files, c.files)
		if c.record != "" {
			files["data/terraform.tfstate"] = c.record
		}
		for file, text := range files {
			path := filepath.Join(dir, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		var said strings.Builder
		(&Unused{Module: m, Say: Notes(&said, "")}).Warn(c.command == "init")
		mistakes.Said(t, name, said.String())
	}
}

// States of workspaces are told of once.
func TestWarnOfWorkspaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "terraform.tfstate.d", "prod", "terraform.tfstate")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(strings.Replace(wraptest.State, `"resources":[]`, `"resources":[{}]`, 1)), 0o600)); err != nil {
		t.Fatal(err)
	}
	mistakes := wraptest.OpenMistakes(t, "own state of a workspace")
	for _, name := range []string{"init", "apply"} {
		var said strings.Builder
		(&Unused{Module: &module.Module{Dir: dir, Data: filepath.Join(dir, "data")}, Say: Notes(&said, "")}).Warn(name == "init")
		mistakes.Said(t, name, said.String())
	}
}

// A variable that says nothing is named, and no value of any.
func TestNoteVariables(t *testing.T) {
	t.Parallel()
	block := func(arguments string) *unstable.Entry {
		var backend *unstable.Entry
		_, err := encryption.Load(builtin.Registry(), encryption.Code("backend \"http\" {\n"+arguments+"\n}\n"+wraptest.Sealing, "test.hcl",
			unstable.With(func(o *unstable.Options) {
				o.Backends, o.Backend = Backends(), func(found *unstable.Entry) { backend = found }
			})))
		if err != nil {
			t.Fatal(err)
		}
		return backend
	}
	const address = "https://example.com/" + wraptest.Canary
	mistakes := wraptest.OpenMistakes(t, "variable")
	for name, c := range map[string]struct{ block, variable string }{
		"used":             {variable: "STATECRYPT_HTTP_ADDRESS=" + address},
		"misspelt":         {variable: "STATECRYPT_HTTP_PASWORD=" + wraptest.Canary},
		"unknown":          {variable: "STATECRYPT_HTTP_TEAM=" + wraptest.Canary},
		"empty":            {variable: "STATECRYPT_HTTP_PASWORD="},
		"not ours":         {variable: "TF_HTTP_PASWORD=" + wraptest.Canary},
		"another address":  {block: `address = "https://example.com/"`, variable: "STATECRYPT_HTTP_ADDRESS=" + address},
		"the same address": {block: `address = "` + address + `"`, variable: "STATECRYPT_HTTP_ADDRESS=" + address},
		"beside it":        {block: `address = "` + address + `"`, variable: "STATECRYPT_HTTP_USERNAME=ci"},
	} {
		var said strings.Builder
		where := Where{}
		if c.block != "" {
			where.Backend = block(c.block)
		}
		where.NoteVariables([]string{c.variable}, Notes(&said, ""))
		mistakes.Said(t, name, said.String())
	}
}

// A refusal names the server, and says whether credentials were sent.
func TestAnswered(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "answer")
	code := http.StatusUnauthorized
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	t.Cleanup(server.Close)
	made := func(settings map[string]cty.Value) error {
		where := Where{Backend: unstable.NewEntry("backend.http", httpsource.Backend(), settings)}
		b, err := where.Open(encryption.Target{}, nil, &module.Module{}, false, nil)
		if err == nil {
			_, _, err = b.Read(t.Context())
		}
		return err
	}
	at := func() map[string]cty.Value { return map[string]cty.Value{"address": cty.StringVal(server.URL)} }
	mistakes.Said(t, "401 without credentials", made(at()).Error())
	for _, code = range []int{http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusInternalServerError} {
		settings := at()
		settings["bearer_token"] = cty.StringVal(wraptest.Canary)
		mistakes.Said(t, strconv.Itoa(code), made(settings).Error())
	}
	code = http.StatusUnauthorized
	for name, settings := range map[string]map[string]cty.Value{
		"no password":     {"username": cty.StringVal("ci"), "password": cty.StringVal("")},
		"an empty header": {"headers": cty.MapVal(map[string]cty.Value{"X": cty.StringVal("")})},
		"no scheme":       {"headers": cty.MapVal(map[string]cty.Value{"authorization": cty.StringVal("c4n4ry")})},
	} {
		maps.Copy(settings, at())
		mistakes.Said(t, "401, "+name, made(settings).Error())
	}
	for _, address := range []string{"https://example.com/$CI_PROJECT_ID/s", "https://example.com//s", "'https://example.com/s'"} {
		mistakes.Failed(t, address, "", made(map[string]cty.Value{"address": cty.StringVal(address)}))
	}
}
