package remote

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"         //nolint:depguard // the test opens what the source reads
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin" //nolint:depguard // the test opens what the source reads
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/remote/tfetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/tfstate" //nolint:depguard // the test opens what the source reads
)

// clis are the real programs that write states: OpenTofu where make has built
// it, and terraform where there is one.
func clis(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	if tofu := os.Getenv("STATECRYPT_TOFU"); tofu != "" {
		found["tofu"] = tofu
	}
	if terraform, err := exec.LookPath("terraform"); err == nil {
		found["terraform"] = terraform
	}
	if len(found) == 0 {
		t.Skip("there is neither STATECRYPT_TOFU nor terraform in PATH")
	}
	return found
}

const (
	interopHost = "tfe.example.test"

	// interopSecret is an output's value. A file with it is not encrypted.
	interopSecret = "an output's value, in plain text"

	interopEncryption = `
		key_provider "pbkdf2" "main" {
		  passphrase = "a passphrase for one test"
		  iterations = 200000
		}
		method "aes_gcm" "main" {
		  keys = key_provider.pbkdf2.main
		}
		state {
		  method   = method.aes_gcm.main
		  enforced = true
		}`
)

// project is a directory with a configuration that a CLI works in.
type project struct {
	cli, dir string
	env      []string
}

func newProject(t *testing.T, cli string, internet *cloudtest.Internet, encrypted bool, block string) project {
	t.Helper()
	p := project{cli: cli, dir: t.TempDir()}
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TF_") }) // TF_WORKSPACE matters even when it is empty
	p.env = append(internet.Environ(own), "TF_CLI_CONFIG_FILE="+os.DevNull, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", variable(interopHost)+"="+tfetest.Token)
	if encrypted {
		p.env = append(p.env, "TF_ENCRYPTION="+interopEncryption)
	}
	p.write(t, fmt.Sprintf("terraform {\n%s\n}\n", block)+`
		output "greeting" { value = "hello from ${terraform.workspace}" }
		output "secret" {
		  value     = { password = "`+interopSecret+`", ports = [1, 2.5] }
		  sensitive = true
		}`)
	return p
}

func (p project) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, "main.tf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p project) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.cli, args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// opened returns the outputs of a file that was read.
func opened(t *testing.T, file []byte, encrypted bool) map[string]cty.Value {
	t.Helper()
	registry := builtin.Registry()
	target := "method \"unencrypted\" \"u\" {}\nstate {\n method = method.unencrypted.u\n}"
	if encrypted {
		target = interopEncryption
	}
	cfg, err := config.Parse(target, "test", registry.Options(cty.NilVal))
	if err != nil {
		t.Fatal(err)
	}
	enc, err := encryption.New(registry, cfg)
	if err != nil {
		t.Fatal(err)
	}
	o, err := enc.State().Decrypt(context.Background(), bytes.Clone(file))
	if err != nil {
		t.Fatal(err)
	}
	if o.Encrypted != encrypted {
		t.Errorf("encrypted: %t", o.Encrypted)
	}
	state, err := tfstate.Parse(o.Data)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]cty.Value{}
	for name, output := range state.Outputs {
		if values[name], err = output.Value(); err != nil {
			t.Fatal(err)
		}
		if output.Sensitive != (name == "secret") {
			t.Errorf("%s: sensitive: %t", name, output.Sensitive)
		}
	}
	return values
}

// States that the real CLIs write through the backends remote and cloud are read
// back, by a token that may only read.
func TestRealBackends(t *testing.T) {
	type row struct {
		cli, backend string
		encrypted    bool
	}
	found := clis(t)
	for _, r := range []row{
		{"tofu", "remote, name", false},
		{"tofu", "remote, name", true},
		{"tofu", "remote, prefix", true},
		{"tofu", "cloud, tags", true},
		{"terraform", "remote, prefix", false},
		{"terraform", "cloud, name", false},
	} {
		t.Run(fmt.Sprintf("%s, %s, encrypted %t", r.cli, r.backend, r.encrypted), func(t *testing.T) {
			if found[r.cli] == "" {
				t.Skip("there is no " + r.cli)
			}
			testRealBackend(t, found[r.cli], r.backend, r.encrypted)
		})
	}
}

func testRealBackend(t *testing.T, cli, backend string, encrypted bool) {
	at := "hostname = \"" + interopHost + "\"\norganization = \"acme\"\n"
	block := map[string]string{
		"remote, name":   "backend \"remote\" {\n" + at + "workspaces {\nname = \"network\"\n}\n}",
		"remote, prefix": "backend \"remote\" {\n" + at + "workspaces {\nprefix = \"net-\"\n}\n}",
		"cloud, name":    "cloud {\n" + at + "workspaces {\nname = \"network\"\n}\n}",
		"cloud, tags":    "cloud {\n" + at + "workspaces {\ntags = [\"net\"]\n}\n}",
	}[backend]
	s := tfetest.New()
	s.Tokens[readToken] = tfetest.Read
	internet := cloudtest.New(t, map[string]http.Handler{interopHost: s})
	p := newProject(t, cli, internet, encrypted, block)

	a, workspaces := network(interopHost), []string{"default"}
	place := func(string) string { return "network" }
	if !strings.HasSuffix(backend, "name") {
		workspaces = []string{"staging", "prod"}
		p.env = append(p.env, "TF_WORKSPACE=staging") // init without a question
		delete(a, "workspaces")
		place = func(workspace string) string { return workspace }
	}
	if strings.HasSuffix(backend, "prefix") {
		a["workspaces"] = prefixed("net-")
		place = func(workspace string) string { return "net-" + workspace }
	}
	for _, w := range workspaces {
		if w != "default" {
			made := s.Workspace(place(w))
			s.Change(func() { made.Tags = []string{"net"} })
		}
	}
	for i, w := range workspaces {
		if w != "default" {
			p.env = append(p.env, "TF_WORKSPACE="+w)
		}
		if i == 0 {
			p.run(t, "init", "-input=false")
		}
		p.run(t, "apply", "-auto-approve", "-input=false")
	}
	settings := source.Settings{Credentials: blocks(attrs{"url": text("https://" + interopHost + "/"), "token": text(readToken), "proxy": text(internet.Proxy), "client_ca_certificate_pem": text(read(t, internet.CAFile))})}
	for _, w := range workspaces {
		s.Requests()
		snap, err := ask{attrs: a, workspace: w, settings: settings}.fetch(t)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Requests() {
			if !strings.HasPrefix(r, "GET ") {
				t.Errorf("asked to %s", r)
			}
		}
		written := s.Workspace(place(w))
		var current tfetest.Version
		s.Change(func() { current = *written.Versions[len(written.Versions)-1] })
		if !bytes.Equal(snap.Data, current.State) || snap.Revision != current.ID {
			t.Errorf("%s: got %d bytes of %s, want %d of %s", w, len(snap.Data), snap.Revision, len(current.State), current.ID)
		}
		if bytes.Contains(snap.Data, []byte(interopSecret)) == encrypted {
			t.Errorf("%s: encrypted: %t", w, !encrypted)
		}
		checkValues(t, opened(t, snap.Data, encrypted), backend, w)

		// What the service knows of the outputs, it knows in plain text: the CLIs
		// send them beside the state, encrypted or not.
		said, _ := current.Sent["json-state-outputs"].(string)
		if plain, err := base64.StdEncoding.DecodeString(said); err != nil || !bytes.Contains(plain, []byte(interopSecret)) {
			t.Errorf("the client sent the outputs %q", plain)
		}
		if strings.HasPrefix(backend, "cloud") && !bytes.Contains(current.JSON, []byte(interopSecret)) {
			t.Errorf("the client sent the state %q", current.JSON)
		}

		s.Change(func() { s.Tokens[readToken] = tfetest.Outputs })
		snap, err = ask{attrs: with(a, "outputs_only", cty.True), workspace: w, settings: settings}.fetch(t)
		s.Change(func() { s.Tokens[readToken] = tfetest.Read })
		if err != nil {
			t.Fatal(err)
		}
		checkValues(t, opened(t, snap.Data, false), backend, w)
	}
}

func checkValues(t *testing.T, values map[string]cty.Value, backend, workspace string) {
	t.Helper()
	if strings.HasPrefix(backend, "cloud") && workspace == "default" {
		workspace = "network"
	}
	want := map[string]cty.Value{
		"greeting": text("hello from " + workspace),
		"secret":   cty.ObjectVal(attrs{"password": text(interopSecret), "ports": cty.TupleVal([]cty.Value{cty.NumberIntVal(1), cty.NumberFloatVal(2.5)})}),
	}
	for name, w := range want {
		if got := values[name]; got == cty.NilVal || !got.RawEquals(w) {
			t.Errorf("%s is %#v, want %#v", name, got, w)
		}
	}
	if len(values) != len(want) {
		t.Errorf("got the outputs %v", slices.Collect(func(yield func(string) bool) {
			for name := range values {
				if !yield(name) {
					return
				}
			}
		}))
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
