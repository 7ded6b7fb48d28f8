package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const configuration = `
resource "terraform_data" "x" { input = "c4n4ry of a resource" }
output "id" { value = terraform_data.x.input }
output "number" { value = 12345678901234567890 }
output "secret" {
  value     = "c4n4ry of an output"
  sensitive = true
}
`

// settings are what OpenTofu understands, with a key of the passphrase.
func settings(passphrase string) string {
	return `
key_provider "pbkdf2" "k" {
  passphrase = "c4n4ry ` + passphrase + ` passphrase"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state { method = method.aes_gcm.m }
plan { method = method.aes_gcm.m }
remote_state_data_sources {
  default { method = method.aes_gcm.m }
}
`
}

// realCLI is Terraform or OpenTofu in a folder of its own.
type realCLI struct{ path, dir string }

func terraform(t *testing.T, text string) realCLI {
	t.Helper()
	if testing.Short() {
		t.Skip("a CLI needs seconds")
	}
	path, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("there is no terraform in PATH")
	}
	return realCLI{path, t.TempDir()}.initialized(t, text)
}

func tofu(t *testing.T, text string) realCLI {
	t.Helper()
	return realCLI{testkit.Program(t, "STATECRYPT_TOFU"), t.TempDir()}.initialized(t, text)
}

func (c realCLI) initialized(t *testing.T, text string) realCLI {
	t.Helper()
	write(t, c.file("main.tf"), text)
	c.run(t, "", "init")
	return c
}

func (c realCLI) file(name string) string { return filepath.Join(c.dir, name) }

// run requires success, and returns what the CLI prints.
func (c realCLI) run(t *testing.T, settings string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.path, args...)
	cmd.Dir = c.dir
	cmd.Env = append(world.World{}.Environ().Pairs(), "HOME="+c.dir, "USERPROFILE="+c.dir, "TF_CLI_CONFIG_FILE="+os.DevNull,
		"TF_IN_AUTOMATION=1",
		"TF_INPUT=0", "CHECKPOINT_DISABLE=1", "TF_ENCRYPTION="+settings)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", filepath.Base(c.path), args, err, out, problems.Bytes())
	}
	return string(out)
}

// What OpenTofu seals is opened, what is sealed here OpenTofu takes for its own
// state, and a reader with a key of its own gets outputs alone.
func TestOpenTofu(t *testing.T) {
	t.Parallel()
	older, newer, readers := settings("older"), settings("newer"), settings("readers'")
	c := tofu(t, configuration)
	c.run(t, older, "apply", "-auto-approve")
	state := c.file("terraform.tfstate")
	if strings.Contains(read(t, state), canary) {
		t.Fatal("it is not encrypted")
	}
	plaintext := write(t, c.file("plain.tfstate"), must(t, older, "", "decrypt", state))
	if shown := c.run(t, "", "show", "-json", plaintext); !strings.Contains(shown, canary+" of a resource") {
		t.Errorf("got %s", shown)
	}
	must(t, newer, "", "encrypt", "-o", state, plaintext)
	c.run(t, newer, "plan", "-detailed-exitcode")

	c.run(t, newer, "plan", "-destroy", "-out=tfplan")
	plan := c.file("tfplan")
	must(t, newer, must(t, newer, "", "decrypt", "-plan", plan), "encrypt", "-plan", "-o", c.file("again.tfplan"))
	saved := read(t, state)
	c.run(t, newer, "apply", "again.tfplan")
	if left := must(t, newer, "", "decrypt", state); strings.Contains(left, canary) {
		t.Errorf("the plan was not applied: %s", left)
	}
	write(t, state, saved)

	must(t, readers, must(t, "", must(t, newer, "", "decrypt", state), "outputs"), "encrypt", "-o", c.file("outputs.tfstate"))
	reader := tofu(t, remoteState(c.file("outputs.tfstate")))
	reader.run(t, readers, "apply", "-auto-approve")
	checkReader(t, reader, readers)
}

// A plan passes through the artifacts of a pipeline, and Terraform's states are
// read like OpenTofu's.
func TestTerraform(t *testing.T) {
	t.Parallel()
	key := settings("plan's")
	c := terraform(t, configuration)
	plan := c.file("tfplan")
	c.run(t, "", "plan", "-out=tfplan")
	original := read(t, plan)
	must(t, key, "", "encrypt", "-plan", "-o", plan, plan)
	if sealed := read(t, plan); !strings.HasPrefix(sealed, "{") {
		t.Fatalf("got %.20q", sealed)
	}
	if got := statecrypt(t, key, "", "decrypt", plan); got.code != 1 || got.stdout != "" {
		t.Errorf("a plan opens as a state: %d, %q", got.code, got.stderr)
	}
	must(t, key, "", "decrypt", "-plan", plan, "-o", plan)
	if read(t, plan) != original {
		t.Error("the plan is not what it was")
	}
	c.run(t, "", "apply", "tfplan")
	write(t, c.file("outputs.tfstate"), must(t, "", read(t, c.file("terraform.tfstate")), "outputs"))
	reader := terraform(t, remoteState(c.file("outputs.tfstate")))
	reader.run(t, "", "apply", "-auto-approve")
	checkReader(t, reader, "")
}

func remoteState(path string) string {
	return `
data "terraform_remote_state" "x" {
  backend = "local"
  config  = { path = "` + filepath.ToSlash(path) + `" }
}
output "all" { value = data.terraform_remote_state.x.outputs }
`
}

func checkReader(t *testing.T, reader realCLI, settings string) {
	t.Helper()
	got := reader.run(t, settings, "output", "-json")
	if !strings.Contains(got, `"id": "c4n4ry of a resource"`) || !strings.Contains(got, "12345678901234567890") || strings.Contains(got, "secret") {
		t.Errorf("got %s", got)
	}
}
