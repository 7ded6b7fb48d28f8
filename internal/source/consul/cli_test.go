package consul

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/consul/consultest"
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

// cli is one program in a folder of its own.
type cli struct {
	program, dir string
	env          []string
}

func newCLI(t *testing.T, program string, env ...string) cli {
	t.Helper()
	env = append(env, "TF_CLI_CONFIG_FILE="+os.DevNull, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1", "HOME="+t.TempDir(), "PATH="+os.Getenv("PATH"))
	return cli{program, t.TempDir(), env}
}

func (c cli) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c cli) run(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.program, args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, problems.Bytes())
	}
	return out
}

const encryption = `
key_provider "pbkdf2" "k" {
  passphrase = "a passphrase for one test"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state {
  method   = method.aes_gcm.m
  enforced = true
}`

// States that a real CLI writes through its consul backend are read back: of
// workspaces, compressed or not, encrypted or not, and large ones, which the
// backend divides.
func TestRealBackend(t *testing.T) {
	for name, program := range clis(t) {
		for _, sealed := range []bool{false, true} {
			for _, gzip := range []bool{false, true} {
				if sealed && name == "terraform" {
					continue // it has no encryption
				}
				t.Run(fmt.Sprintf("%s, encrypted %t, gzip %t", name, sealed, gzip), func(t *testing.T) {
					t.Parallel()
					testRealBackend(t, program, sealed, gzip)
				})
			}
		}
	}
}

func testRealBackend(t *testing.T, program string, sealed, gzip bool) {
	s := consultest.New(t)
	s.Writable = true
	s.Tokens = map[string]consultest.Policy{"writer": consultest.Everything, "reader": reader(t)}
	c := newCLI(t, program)
	if sealed {
		c.env = append(c.env, "TF_ENCRYPTION="+encryption)
	}
	c.write(t, "main.tf", backendConfig(fmt.Sprintf("address = %q\naccess_token = \"writer\"", s.URL), gzip))

	// check reads as one who may do nothing else, and looks whether that is
	// what was written.
	check := func(workspace string, parts bool) {
		t.Helper()
		s.Requests()
		s.Change(func() { s.Writable = false })
		defer s.Change(func() { s.Writable = true })
		r := request(t, attrs{"path": text("network")}, nil)
		r.Workspace, r.MaxSize = workspace, 64<<20
		snap := fetch(t, opened(t, settingsOf(attrs{"address": text(s.URL), "access_token": text("reader")}), r))
		key := "network"
		if workspace != "default" {
			key += "-env:" + workspace
		}
		head := s.Entry(key)
		if fmt.Sprint(head.ModifyIndex) != snap.Revision {
			t.Errorf("got the revision %s, want %d", snap.Revision, head.ModifyIndex)
		}
		requests := s.Requests()
		if slices.ContainsFunc(requests, func(r string) bool { return !strings.HasPrefix(r, "GET /v1/kv/"+key) }) || !parts && len(requests) != 1 {
			t.Errorf("asked for %q", requests)
		}
		if parts != bytes.Contains(head.Value, []byte("current-hash")) || parts != (len(requests) > 1) {
			t.Errorf("the state is not stored as it should be for this test: %d bytes, %q", len(head.Value), s.Keys())
		}
		if !parts && !gzip && !bytes.Equal(snap.Data, head.Value) {
			t.Error("got other bytes than the server holds")
		}
		checkOutputs(t, c, snap.Data, workspace, sealed)
	}
	c.run(t, "init")
	c.run(t, "apply", "-auto-approve")
	check("default", false)
	c.run(t, "workspace", "new", "staging")
	c.run(t, "apply", "-auto-approve")
	check("staging", false)
	vars, _ := json.Marshal(map[string]string{"large": noise(1200 << 10)})
	c.write(t, "terraform.tfvars.json", string(vars))
	c.run(t, "apply", "-auto-approve")
	check("staging", true)
	c.run(t, "workspace", "select", "default")
	c.run(t, "apply", "-auto-approve")
	check("default", true)
}

// backendConfig is a configuration with a consul backend.
func backendConfig(access string, gzip bool) string {
	return fmt.Sprintf(`
		terraform {
		  backend "consul" {
		    %s
		    path = "network"
		    gzip = %t
		  }
		}
		variable "large" { default = "" }
		output "greeting" { value = "hello from ${terraform.workspace}" }
		output "large" { value = var.large }
	`, access, gzip)
}

// checkOutputs looks whether what was read is a state to the program itself,
// with the outputs that it has written.
func checkOutputs(t *testing.T, c cli, data []byte, workspace string, sealed bool) {
	t.Helper()
	if sealed == bytes.Contains(data, []byte("hello from")) {
		t.Errorf("encrypted: %t, got %.100q", sealed, data)
	}
	local := newCLI(t, c.program, c.env...)
	local.write(t, "terraform.tfstate", string(data))
	var got map[string]struct{ Value string }
	large := len(data) > chunk
	if err := json.Unmarshal(local.run(t, "output", "-json"), &got); err != nil || got["greeting"].Value != "hello from "+workspace || large == (got["large"].Value == "") {
		t.Errorf("got %.100v, %v", got["greeting"], err)
	}
}

// noise is text that gzip can hardly pack.
func noise(size int) string {
	var b bytes.Buffer
	x := uint32(1)
	for b.Len() < size {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b.WriteByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[x>>26])
	}
	return b.String()
}
