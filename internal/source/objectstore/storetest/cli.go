package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption" //nolint:depguard // opens what was read, as its user does
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/pbkdf2" //nolint:depguard // as above
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"      //nolint:depguard // as above
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const sealing = `
key_provider "pbkdf2" "k" {
  passphrase = "a passphrase for one test"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state {
  method   = method.aes_gcm.m
  enforced = true
}
`

// CLI is a real program that writes states through one of its backends.
type CLI struct {
	Path string
	Env  []string // besides PATH and a home of its own
	dir  string
}

// Tofu is the real OpenTofu. Where there is none, the test is skipped.
func Tofu(t *testing.T) CLI {
	t.Helper()
	path := os.Getenv("STATECRYPT_TOFU")
	if path == "" {
		t.Skip("STATECRYPT_TOFU does not name OpenTofu")
	}
	return CLI{Path: path}
}

// Terraform is the terraform in PATH. Where there is none, the test is skipped.
func Terraform(t *testing.T) CLI {
	t.Helper()
	path, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("there is no terraform in PATH")
	}
	return CLI{Path: path}
}

// Init sets up a folder whose state goes to a backend.
func (c *CLI) Init(t *testing.T, backend string) {
	t.Helper()
	c.dir = t.TempDir()
	c.Env = append(c.Env, "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir(), "TF_CLI_CONFIG_FILE="+os.DevNull, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1")
	main := fmt.Sprintf("terraform {\n%s\n}\noutput \"greeting\" { value = \"hello from ${terraform.workspace}\" }\n", backend)
	if err := os.WriteFile(filepath.Join(c.dir, "main.tf"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Run(t, "init", "-input=false")
}

// Run runs the CLI.
func (c *CLI) Run(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.Path, args...) //nolint:gosec // the CLI that the test names
	cmd.Dir, cmd.Env = c.dir, c.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Written is a state that a CLI has written.
type Written struct {
	Workspace, Path string // of the object
}

// Forms are those in which a state may be written.
var (
	Plain  = []bool{false}
	Sealed = []bool{true} // by OpenTofu
	Both   = []bool{false, true}
)

// Interop has the CLI write the states of some workspaces in each of the forms,
// and reads each of them back: the bytes are those of the object, and what is
// in them is what was written.
func Interop(t *testing.T, cli CLI, backend string, server *Server, bucket string, states []Written, forms []bool, open func(workspace string) (source.Source, error)) {
	t.Helper()
	for _, sealed := range forms {
		c := CLI{Path: cli.Path, Env: cli.Env}
		if sealed {
			c.Env = append(c.Env[:len(c.Env):len(c.Env)], "TF_ENCRYPTION="+sealing)
			server.Clear(t, bucket)
		}
		server.Writable = true
		c.Init(t, backend)
		for _, s := range states {
			if s.Workspace != "default" {
				c.Run(t, "workspace", "new", s.Workspace)
			}
			c.Run(t, "apply", "-auto-approve", "-input=false", "-lock=false")
		}
		server.Writable = false // from here on, only signed reads are allowed
		server.Requests()
		for _, s := range states {
			src, err := open(s.Workspace)
			if err != nil {
				t.Fatal(err)
			}
			snap, err := src.Fetch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if object, ok := server.Objects(t, bucket)[s.Path]; !ok || !bytes.Equal(snap.Data, object) {
				t.Errorf("these are not the bytes of the object %s", s.Path)
			}
			if got := server.Requests(); len(got) != 1 || got[0].Method != "GET" {
				t.Errorf("got requests %+v", got)
			}
			checkGreeting(t, snap.Data, sealed, "hello from "+s.Workspace)
		}
	}
}

func checkGreeting(t *testing.T, data []byte, sealed bool, want string) {
	t.Helper()
	if sealed {
		data = unseal(t, data)
	}
	var state struct {
		Outputs map[string]struct{ Value string }
	}
	if err := json.Unmarshal(data, &state); err != nil || state.Outputs["greeting"].Value != want {
		t.Errorf("got %q, %v", state.Outputs["greeting"].Value, err)
	}
}

func unseal(t *testing.T, data []byte) []byte {
	t.Helper()
	registry := encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{pbkdf2.Block()},
		Methods:      []encryption.Block[encryption.Method]{aesgcm.Block()},
	}
	cfg, err := config.Parse(sealing, "sealing", registry.Options(cty.NilVal))
	if err != nil {
		t.Fatal(err)
	}
	enc, err := encryption.New(registry, cfg)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := enc.State().Decrypt(t.Context(), data)
	if err != nil || !opened.Encrypted {
		t.Fatalf("it was not encrypted, or does not open: %v", err)
	}
	return opened.Data
}
