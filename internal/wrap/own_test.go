package wrap

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/httpsource"
)

// A state that the module had without wrap is told of: under wrap, Terraform does not look
// at it, and would make everything in it again.
func TestWarnOfOwn(t *testing.T) {
	t.Parallel()
	const plain = `{"version":4,"serial":1,"lineage":"l","resources":[{}]}`
	const local = `{"version":3,"backend":{"type":"local","config":{"path":"other.tfstate"}}}`
	const s3 = `{"version":3,"backend":{"type":"s3","config":{}}}`
	own := func(text string) map[string]string { return map[string]string{"terraform.tfstate": text} }
	for name, c := range map[string]struct {
		command, record string
		files           map[string]string
		want            string
	}{
		"a state":                {command: "apply", files: own(plain), want: "a plaintext state in terraform.tfstate, "},
		"an encrypted one":       {command: "apply", files: own(string(sealed(t, plain)))},
		"an encrypted one, init": {command: "init", files: own(string(sealed(t, plain))), want: "an encrypted state in terraform.tfstate, "},
		"an empty file":          {command: "apply", files: own("")},
		"what destroy leaves":    {command: "apply", files: own(state)},
		"none":                   {command: "init"},
		"of another name":        {command: "init", record: local, files: map[string]string{"other.tfstate": plain}, want: "in other.tfstate, "},
		"another backend":        {command: "init", record: s3, want: `the backend "s3", `},
		"another backend, then":  {command: "apply", record: s3},
	} {
		dir := t.TempDir()
		call := &invocation{command: command{name: c.command}, dir: dir, data: filepath.Join(dir, "data")}
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
		call.warnOfOwn(&said)
		if wanted := c.want != ""; strings.Contains(said.String(), "run init with -encrypt-existing") != wanted ||
			!strings.Contains(said.String(), c.want) || (said.Len() > 0) != wanted {
			t.Errorf("%s: %q", name, said.String())
		}
	}
}

// States of workspaces are told of once.
func TestWarnOfWorkspaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "terraform.tfstate.d", "prod", "terraform.tfstate")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(strings.Replace(state, `"resources":[]`, `"resources":[{}]`, 1)), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, noted := range map[string]bool{"init": true, "apply": false} {
		var said strings.Builder
		(&invocation{command: command{name: name}, dir: dir, data: filepath.Join(dir, "data")}).warnOfOwn(&said)
		const want = "warning: there is a plaintext state of a workspace in terraform.tfstate.d"
		if strings.Contains(said.String(), want) != noted || (said.Len() > 0) != noted {
			t.Errorf("%s: %q", name, said.String())
		}
	}
}

// A variable that says nothing is named, and no value of any.
func TestNoteVariables(t *testing.T) {
	t.Parallel()
	block := func(arguments string) *attr.Entry {
		var backend *attr.Entry
		_, err := encryption.Load(builtin.Registry(), func(o config.Options) (*config.Config, error) {
			o.Backends = Backends()
			read, err := encryption.Code("backend \"http\" {\n"+arguments+"\n}\n"+sealing, "test.hcl")(o)
			if read != nil {
				backend = read.Backend
			}
			return read, err
		})
		if err != nil {
			t.Fatal(err)
		}
		return backend
	}
	const address = "https://example.com/" + canary
	for name, c := range map[string]struct {
		block    string
		variable string
		want     string
	}{
		"used":             {variable: "STATECRYPT_HTTP_ADDRESS=" + address},
		"misspelt":         {variable: "STATECRYPT_HTTP_PASWORD=" + canary, want: `. Did you mean "STATECRYPT_HTTP_PASSWORD"?`},
		"unknown":          {variable: "STATECRYPT_HTTP_TEAM=" + canary, want: "STATECRYPT_HTTP_TEAM is not used: there is no such variable"},
		"empty":            {variable: "STATECRYPT_HTTP_PASWORD="},
		"not ours":         {variable: "TF_HTTP_PASWORD=" + canary},
		"another address":  {block: `address = "https://example.com/"`, variable: "STATECRYPT_HTTP_ADDRESS=" + address, want: "another address"},
		"the same address": {block: `address = "` + address + `"`, variable: "STATECRYPT_HTTP_ADDRESS=" + address},
		"beside it":        {block: `address = "` + address + `"`, variable: "STATECRYPT_HTTP_USERNAME=ci"},
	} {
		var said strings.Builder
		o := Options{Environ: []string{c.variable}, Stderr: &said}
		if c.block != "" {
			o.Backend = block(c.block)
		}
		noteVariables(o)
		if !strings.Contains(said.String(), c.want) || (said.Len() > 0) != (c.want != "") || strings.Contains(said.String(), canary) {
			t.Errorf("%s: %q", name, said.String())
		}
	}
}

// A short word is near to any other, so nothing is suggested for it.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	plan := command{name: "plan", flags: operation}
	for flag, suggested := range map[string]bool{"--": false, "-x": false, "-log": false, "-refesh": true, "--no-colour": true} {
		err := (&invocation{command: plan}).parse([]string{flag})
		if err == nil || strings.Contains(err.Error(), "Did you mean") != suggested {
			t.Errorf("%s: %v", flag, err)
		}
	}
	for word, suggested := range map[string]bool{"test": false, "query": false, "stacks": false, "pln": true, "state lst": true} {
		_, err := (&invocation{}).subcommand(strings.Fields(word))
		if err == nil || strings.Contains(err.Error(), "Did you mean") != suggested {
			t.Errorf("%s: %v", word, err)
		}
	}
}

// A refusal names the server, and says whether credentials were sent.
func TestAnswered(t *testing.T) {
	t.Parallel()
	b := &backend{read: endpoint{url: &url.URL{Scheme: "https", Host: "example.com", Path: "/s"}}}
	const none = "401 Unauthorized at https://example.com, and no credentials were sent; set username"
	if got := b.answered(http.StatusUnauthorized); !strings.Contains(got, none) {
		t.Errorf("got %s", got)
	}
	b.authenticates = true
	const wrong = "403 Forbidden at https://example.com; check the credentials of the backend block"
	if got := b.answered(http.StatusForbidden); !strings.HasSuffix(got, wrong) {
		t.Errorf("got %s", got)
	}
	for want, settings := range map[string]map[string]cty.Value{
		"; username is set, and password is not, or it is empty":     {"username": cty.StringVal("ci"), "password": cty.StringVal("")},
		"; password has quotation marks around it":                   {"username": cty.StringVal("ci"), "password": cty.StringVal(`"c4n4ry"`)},
		"; password is what logs show in place of a secret":          {"username": cty.StringVal("ci"), "password": cty.StringVal("***")},
		"; bearer_token begins with Bearer, which is sent before it": {"bearer_token": cty.StringVal("Bearer c4n4ry")},
		"; a header in headers is empty; is a variable empty?":       {"headers": cty.MapVal(map[string]cty.Value{"X": cty.StringVal("")})},
		"; Authorization has no scheme before it, such as Basic or Bearer": {
			"headers": cty.MapVal(map[string]cty.Value{"authorization": cty.StringVal("c4n4ry")}),
		},
	} {
		settings["address"] = cty.StringVal("https://example.com/s")
		b, err := newBackend(attr.NewEntry("backend.http", httpsource.Backend(), settings), nil)
		if err != nil {
			t.Error(err)
		} else if got := b.answered(http.StatusUnauthorized); !strings.Contains(got, want) || strings.Contains(got, "c4n4ry") {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for address, want := range map[string]string{
		"https://example.com/$CI_PROJECT_ID/s": "it has a variable of the shell in it", "https://example.com//s": "it has two slashes in a row",
		"'https://example.com/s'": "an http or https URL is required",
	} {
		_, err := newBackend(attr.NewEntry("backend.http", httpsource.Backend(), map[string]cty.Value{"address": cty.StringVal(address)}), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", address, err, want)
		}
	}
	if got := b.answered(http.StatusMethodNotAllowed); !strings.HasSuffix(got, "; check update_method, lock_method and unlock_method") {
		t.Errorf("got %s", got)
	}
	if got := b.answered(http.StatusInternalServerError); got != "the backend answered 500 Internal Server Error; try again later, "+
		"or see its log" {
		t.Errorf("got %s", got)
	}
}
