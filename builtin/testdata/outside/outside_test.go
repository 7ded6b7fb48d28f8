package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
)

func settings(passphrase string) string {
	return `
		key_provider "pbkdf2" "k" {
			passphrase = "` + passphrase + `"
			iterations = 200000
		}
		method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
		state { method = method.aes_gcm.m }
		plan { method = method.aes_gcm.m }`
}

var (
	before = settings("the passphrase before")
	after  = settings("the passphrase afterwards")
)

func load(t *testing.T, text string) *encryption.Encryption {
	t.Helper()
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(text, "test"))
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, content []byte, path ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path...), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// project is a folder in which OpenTofu works.
type project string

func newProject(t *testing.T) project {
	t.Helper()
	if os.Getenv("STATECRYPT_TOFU") == "" {
		t.Skip("STATECRYPT_TOFU is not set")
	}
	dir := t.TempDir()
	write(t, []byte(`
		resource "terraform_data" "a" { input = "vpc-1" }
		output "vpc_id" { value = terraform_data.a.output }`), dir, "main.tf")
	p := project(dir)
	p.tofu(t, before, "init")
	return p
}

func (p project) tofu(t *testing.T, encryption string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Getenv("STATECRYPT_TOFU"), args...)
	c.Dir = string(p)
	c.Env = append(os.Environ(), "TF_ENCRYPTION="+encryption, "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE="+os.DevNull, "TF_IN_AUTOMATION=1")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("tofu %s: %v\n%s%s", args[0], err, out, stderr.Bytes())
	}
	return string(out)
}

// TestProgram is the shortest program, with the settings that tofu was given.
func TestProgram(t *testing.T) {
	p := newProject(t)
	p.tofu(t, before, "apply", "-auto-approve")
	show := func(encryption string) (string, error) {
		c := exec.CommandContext(t.Context(), os.Getenv("OUTSIDE_PROGRAM"))
		c.Env = append(os.Environ(), "TF_ENCRYPTION="+encryption)
		c.Stdin = bytes.NewReader(read(t, string(p), "terraform.tfstate"))
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := show(before); out != "vpc-1\n" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
	if out, err := show(after); err == nil || !strings.Contains(out, encryption.ErrNoKey.Error()) && !strings.Contains(out, "no method") {
		t.Errorf("with another passphrase: %q, %v", out, err)
	}
}

// TestPlain: users who do not encrypt notice nothing, and those who do get what
// they encrypted and nothing else.
//
// Promise: Plain states
func TestPlain(t *testing.T) {
	const state = `{"version":4,"serial":1,"lineage":"l"}`
	file, err := load(t, before).State().Encrypt(t.Context(), []byte(state))
	if err != nil {
		t.Fatal(err)
	}
	record := `{"version":3,"backend":{"type":"s3","config":{}}}`
	enforced := strings.Replace(before, "state { method = method.aes_gcm.m }", "state {\nmethod = method.aes_gcm.m\nenforced = true\n}", 1)
	for name, c := range map[string]struct {
		settings, file string
		reason         error
		part           string // of the error
	}{
		"plaintext":                     {file: state},
		"encrypted":                     {settings: before, file: string(file)},
		"encrypted, enforced":           {settings: enforced, file: string(file)},
		"encrypted, without settings":   {file: string(file), reason: encryption.ErrNotConfigured, part: "set TF_ENCRYPTION"},
		"encrypted with something else": {settings: after, file: string(file), reason: encryption.ErrNoKey},
		"plaintext in its place":        {settings: before, file: state, reason: encryption.ErrPlaintext},
		"plaintext, enforced":           {settings: enforced, file: state, reason: encryption.ErrPlaintext},
		"cut off":                       {settings: before, file: string(file[:100]), reason: encryption.ErrDamaged},
		"empty":                         {reason: encryption.ErrDamaged},
		"the record of a backend":       {file: record, reason: encryption.ErrBackendRecord},
	} {
		t.Setenv("TF_ENCRYPTION", c.settings)
		got, err := plain(t.Context(), []byte(c.file))
		switch {
		case c.reason == nil && c.part == "":
			if err != nil || string(got) != state {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		case err == nil || c.reason != nil && !errors.Is(err, c.reason) || !strings.Contains(err.Error(), c.part):
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestRotation(t *testing.T) {
	p := newProject(t)
	p.tofu(t, before, "apply", "-auto-approve")
	opened, err := load(t, before).State().Decrypt(t.Context(), read(t, string(p), "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := load(t, after).State().Encrypt(t.Context(), opened.Data)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(p), "terraform.tfstate")
	p.tofu(t, after, "plan", "-detailed-exitcode") // 2 if there is anything to change
}

func TestPlan(t *testing.T) {
	p := newProject(t)
	p.tofu(t, before, "plan", "-out=old.plan")
	opened, err := load(t, before).Plan().Decrypt(t.Context(), read(t, string(p), "old.plan"))
	if err != nil || !bytes.HasPrefix(opened.Data, []byte("PK")) {
		t.Fatal(err)
	}
	file, err := load(t, after).Plan().Encrypt(t.Context(), opened.Data)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(p), "new.plan")
	var plan struct {
		PlannedValues struct {
			RootModule struct{ Resources []struct{ Address string } } `json:"root_module"`
		} `json:"planned_values"`
	}
	err = json.Unmarshal([]byte(p.tofu(t, after, "show", "-json", "new.plan")), &plan)
	if found := plan.PlannedValues.RootModule.Resources; err != nil || len(found) != 1 || found[0].Address != "terraform_data.a" {
		t.Errorf("got %+v, %v", plan, err)
	}
}

func TestFilesOfOtherTools(t *testing.T) {
	vectors := os.Getenv("OUTSIDE_VECTORS")
	identity := filepath.ToSlash(filepath.Join(vectors, "tbg_sops_age", "age_identity.txt"))
	var backend struct {
		Env map[string]string `json:"backend_env"`
	}
	if err := json.Unmarshal(read(t, vectors, "tbg_aes", "case.json"), &backend); err != nil {
		t.Fatal(err)
	}
	passphrase, err := json.Marshal(backend.Env["TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE"])
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, file string }{
		"sops": {
			text: "method \"sops\" \"m\" {\nuse_gpg = false\nage_identity_files = [\"" + identity + "\"]\n}\nstate { method = method.sops.m }",
			file: filepath.Join("tbg_sops_age", "state.raw"),
		},
		"terraform-backend-git": {
			text: "method \"terraform_backend_git\" \"m\" { passphrase = " + string(passphrase) + " }\n" +
				"state { method = method.terraform_backend_git.m }",
			file: filepath.Join("tbg_aes", "state.raw"),
		},
	} {
		opened, err := load(t, c.text).State().Decrypt(t.Context(), read(t, vectors, c.file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if info, err := encryption.Inspect(opened.Data); err != nil || info.Kind != encryption.KindState {
			t.Errorf("%s: it opened to a %v, %v", name, info.Kind, err)
		}
	}
}

func TestOwnKinds(t *testing.T) {
	secret := func(s string) map[string]cty.Value { return map[string]cty.Value{"secret": cty.StringVal(s)} }
	encryptiontest.KeyProvider{
		Block: ownBlock(), Attrs: secret("canary-horse-battery"), Other: secret("another-horse-battery"),
		Bad: []map[string]cty.Value{{}, secret("canary-short")}, Secrets: []string{"canary"},
	}.Run(t)
	keys := func(fill byte) driver.Keys {
		return func(context.Context, string) ([]byte, error) { return bytes.Repeat([]byte{fill}, 32), nil }
	}
	address := func(s string) map[string]cty.Value { return map[string]cty.Value{"keys": cty.StringVal(s)} }
	encryptiontest.Method{
		Block: ownMethodBlock(), Attrs: address("key_provider.own.k"), Bad: []map[string]cty.Value{{}, address("not an address")},
		Keys: keys(1), OtherKeys: keys(2),
	}.Run(t)

	registry := builtin.Registry()
	registry.KeyProviders = append(registry.KeyProviders, ownBlock())
	registry.Methods = append(registry.Methods, ownMethodBlock())
	enc, err := encryption.Load(registry, encryption.Code(`
		key_provider "own" "k" { secret = "canary-horse-battery" }
		method "own" "m" { keys = key_provider.own.k }
		state { method = method.own.m }`, "test"))
	if err != nil {
		t.Fatal(err)
	}
	const state = `{"version":4,"serial":1,"lineage":"l"}`
	file, err := enc.State().Encrypt(t.Context(), []byte(state))
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := enc.State().Decrypt(t.Context(), file); err != nil || string(opened.Data) != state {
		t.Errorf("%v", err)
	}
}

// TestCommandOfTheEnvironment: nothing runs that only a variable names.
func TestCommandOfTheEnvironment(t *testing.T) {
	file, err := load(t, before).State().Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"l"}`))
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	text := `
		key_provider "external" "k" { command = ["touch", "` + filepath.ToSlash(trace) + `"] }
		method "aes_gcm" "m" { keys = key_provider.external.k }
		state { method = method.aes_gcm.m }`
	enc, err := encryption.Load(builtin.Registry(), encryption.Environment(func(name string) (string, bool) {
		return text, name == "TF_ENCRYPTION"
	}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = enc.State().Decrypt(context.Background(), file)
	if failed, ok := errors.AsType[*encryption.Error](err); !ok || failed.Step != encryption.StepKey || !strings.Contains(err.Error(), "key_provider.external.k") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(trace); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command has run: %v", err)
	}
}
