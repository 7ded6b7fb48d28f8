package remote

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/remote/tfetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
)

const interopHost = "tfe.example.test"

// States that the real CLIs write through the backends remote and cloud are read
// back, by a token that may only read.
func TestWrittenByCLIs(t *testing.T) {
	backends := map[string][]string{
		"tofu":           {"remote, name"},
		"tofu-encrypted": {"remote, name", "remote, prefix", "cloud, tags"},
		"terraform":      {"remote, prefix", "cloud, name"},
	}
	for _, cli := range clitest.All(t) {
		for _, backend := range backends[cli.Name] {
			t.Run(cli.Name+", "+backend, func(t *testing.T) { testRealBackend(t, cli, backend) })
		}
	}
}

// quotedNames writes a file with the token, whose names are in quotes. The CLIs find
// it there, and so must we.
func quotedNames(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cli.tfrc")
	text := "provider_installation {\n  dev_overrides {\n    \"a/b\" = \"/c\"\n  }\n  direct {}\n}\n\"credentials\" \"" + interopHost +
		"\" {\n  \"token\" = \"" + tfetest.Token + "\"\n}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if tokens, err := readTokens(path); err != nil || tokens[interopHost] != tfetest.Token {
		t.Errorf("got %d tokens, %v", len(tokens), err)
	}
	return path
}

func testRealBackend(t *testing.T, cli clitest.CLI, backend string) {
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
	env := append(internet.Environ(nil), variable(interopHost)+"="+tfetest.Token)
	if strings.HasSuffix(backend, "name") {
		env = append(internet.Environ(nil), "TF_CLI_CONFIG_FILE="+quotedNames(t))
	}

	a, workspaces := network(interopHost), []string{"default"}
	place := func(string) string { return "network" }
	if !strings.HasSuffix(backend, "name") {
		workspaces = []string{"staging", "prod"}
		env = append(env, "TF_WORKSPACE=staging") // init without a question
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
	p := cli.Project(t, block, env...)
	for _, w := range workspaces {
		if w != "default" {
			p.Env = append(p.Env, "TF_WORKSPACE="+w)
		}
		p.Run(t, "apply", "-auto-approve")
	}
	settings := source.Settings{Credentials: blocks(attrs{"url": text("https://" + interopHost + "/"), "token": text(readToken),
		"proxy": text(internet.Proxy), "client_ca_certificate_pem": text(read(t, internet.CAFile))})}
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
		name := w // as the configuration sees it
		if backend == "cloud, name" {
			name = "network"
		}
		clitest.CheckOutputs(t, snap.Data, cli.Encrypted, name, "")

		// What the service knows of the outputs, it knows in plain text: the CLIs
		// send them beside the state, encrypted or not.
		said, _ := current.Sent["json-state-outputs"].(string)
		if plain, err := base64.StdEncoding.DecodeString(said); err != nil || !bytes.Contains(plain, []byte(clitest.Secret)) {
			t.Errorf("the client sent the outputs %q", plain)
		}
		if strings.HasPrefix(backend, "cloud") && !bytes.Contains(current.JSON, []byte(clitest.Secret)) {
			t.Errorf("the client sent the state %q", current.JSON)
		}

		s.Change(func() { s.Tokens[readToken] = tfetest.Outputs })
		snap, err = ask{attrs: with(a, "outputs_only", cty.True), workspace: w, settings: settings}.fetch(t)
		s.Change(func() { s.Tokens[readToken] = tfetest.Read })
		if err != nil {
			t.Fatal(err)
		}
		clitest.CheckOutputs(t, snap.Data, false, name, "")
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

// TestTokensInUTF16: a file that cannot be read is an error, and not one without tokens.
func TestTokensInUTF16(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cli.tfrc")
	if err := os.WriteFile(path, []byte("\xff\xfec\x00r\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := readTokens(path)
	sourcetest.OpenMistakes(t, "remote, a file of credentials").Error(t, "in UTF-16", err)
}
