package encryption_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// block is an encryption block with this expression as its passphrase.
func block(passphrase string) string {
	return "encryption {\n  key_provider \"pbkdf2\" \"k\" {\n    passphrase = " + passphrase + `
    iterations = 200000
    hash_function = "sha256"
  }
  method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
  state {
    method = method.aes_gcm.m
    enforced = true
  }
}
`
}

func inTerraform(passphrase string) string { return "terraform {\n" + block(passphrase) + "}\n" }

const (
	right = `"correct horse battery staple"`
	wrong = `"another horse, another battery"`

	jsonBlock = `{"terraform": {"encryption": {
		"key_provider": {"pbkdf2": {"k": {"passphrase": "${local.p}", "iterations": 200000, "hash_function": "sha256"}}},
		"method": {"aes_gcm": {"m": {"keys": "${key_provider.pbkdf2.k}"}}},
		"state": {"method": "method.aes_gcm.m"}}},
		"variable": {"p": {"default": ` + right + `}}, "locals": {"p": "${var.p}"}}`
	newPassphrase = "terraform {\n  encryption {\n    key_provider \"pbkdf2\" \"k\" { passphrase = " + right + " }\n  }\n}\n"
)

// modules are folders that OpenTofu either accepts, and so do we, or refuses, and
// so do we.
var modules = map[string]struct {
	files     map[string]string
	variables map[string]string
	plaintext bool // there is no encryption
	refused   bool // by us as well
}{
	"one file":                    {files: map[string]string{"main.tf": inTerraform(right)}},
	"a .tofu file":                {files: map[string]string{"main.tofu": inTerraform(right)}},
	".tofu hides .tf":             {files: map[string]string{"main.tf": inTerraform(wrong), "main.tofu": inTerraform(right)}},
	".tofu hides without a block": {files: map[string]string{"main.tf": inTerraform(wrong), "main.tofu": "", "z.tf": inTerraform(right)}},
	"JSON":                        {files: map[string]string{"main.tf.json": jsonBlock}},
	".tofu.json hides .tf.json":   {files: map[string]string{"main.tofu.json": jsonBlock, "main.tf.json": "{"}},
	"JSON, beside a .tofu":        {files: map[string]string{"main.tofu": "", "main.tf.json": jsonBlock}},
	"no block":                    {files: map[string]string{"main.tf": "terraform {}\n"}, plaintext: true},
	"an empty block":              {files: map[string]string{"main.tf": "terraform {\n  encryption {}\n}\n"}, plaintext: true},
	"among others": {files: map[string]string{"a.tf": "output \"a\" { value = 1 }\n", "main.tf": inTerraform(right),
		"z.tf": "terraform {\n  required_version = \">= 1.0\"\n}\n"}},
	"ignored names": {files: map[string]string{"main.tf": inTerraform(right), ".hidden.tf": inTerraform(wrong), "#x.tf#": "{",
		"main.tf~": inTerraform(wrong), "x.tf.bak": inTerraform(wrong), "terraform.hcl": inTerraform(wrong)}},

	"override":          {files: map[string]string{"main.tf": inTerraform(wrong), "override.tf": newPassphrase}},
	"override in .tofu": {files: map[string]string{"main.tf": inTerraform(wrong), "x_override.tofu": newPassphrase}},
	"override alone":    {files: map[string]string{"x_override.tf": inTerraform(right)}},
	"the last override": {files: map[string]string{"main.tf": inTerraform(wrong), "a_override.tf": inTerraform(wrong),
		"b_override.tf": newPassphrase}},
	"override that is none": {files: map[string]string{"override_x.tf": inTerraform(right)}},
	"hidden override": {files: map[string]string{"main.tf": inTerraform(right), "override.tf": inTerraform(wrong),
		"override.tofu": ""}},

	"default": {files: map[string]string{"main.tf": inTerraform("var.p"), "v.tf": `variable "p" { default = ` + right + " }\n"}},
	"given": {files: map[string]string{"main.tf": inTerraform("var.p") + `variable "p" {}` + "\n"},
		variables: map[string]string{"p": right}},
	"given, a default": {files: map[string]string{"main.tf": inTerraform("var.p") + `variable "p" { default = ` + wrong + " }\n"},
		variables: map[string]string{"p": right}},
	"default of an override": {files: map[string]string{"main.tf": inTerraform("var.p") + `variable "p" { default = ` + wrong + " }\n",
		"override.tf": `variable "p" { default = ` + right + " }\n"}},
	"locals": {files: map[string]string{"main.tf": inTerraform("local.a"), "l.tf": "" +
		"locals {\n  b = var.p\n  unused = terraform_data.x.id\n}\n" +
		"resource \"terraform_data\" \"x\" {}\n" +
		"locals { a = join(\" \", [local.b, \"battery staple\"]) }\nvariable \"p\" { default = \"correct horse\" }\n"}},
	"local of an override": {files: map[string]string{"main.tf": inTerraform("local.p") + "locals { p = " + wrong + " }\n",
		"override.tf": "locals { p = " + right + " }\n"}},
	"a file":               {files: map[string]string{"main.tf": inTerraform("file(\"p.txt\")"), "p.txt": strings.Trim(right, `"`)}},
	"a file, by path":      {files: map[string]string{"main.tf": inTerraform("file(\"${path.module}/p.txt\")"), "p.txt": strings.Trim(right, `"`)}},
	"a file, by path.root": {files: map[string]string{"main.tf": inTerraform("file(\"${path.root}/p.txt\")"), "p.txt": strings.Trim(right, `"`)}},
	"a file, by path.cwd":  {files: map[string]string{"main.tf": inTerraform("file(\"${path.cwd}/p.txt\")"), "p.txt": strings.Trim(right, `"`)}},

	"two files":      {files: map[string]string{"a.tf": inTerraform(right), "b.tf": inTerraform(right)}, refused: true},
	"two in a file":  {files: map[string]string{"a.tf": inTerraform(right) + inTerraform(right)}, refused: true},
	"two in a block": {files: map[string]string{"a.tf": "terraform {\n" + block(right) + block(right) + "}\n"}, refused: true},
	"two in an override": {files: map[string]string{"a.tf": inTerraform(right), "override.tf": inTerraform(right) + inTerraform(right)},
		refused: true},
	"a circle": {files: map[string]string{"a.tf": inTerraform("local.a") +
		"locals {\n  a = local.b\n  b = local.a\n}\n"}, refused: true},
	"no such local": {files: map[string]string{"a.tf": inTerraform("local.a")}, refused: true},
	"no value":      {files: map[string]string{"a.tf": inTerraform("var.p") + `variable "p" {}` + "\n"}, refused: true},
	"a resource": {files: map[string]string{"a.tf": inTerraform("terraform_data.x.id") +
		`resource "terraform_data" "x" {}` + "\n"}, refused: true},
	"not HCL":         {files: map[string]string{"a.tf": inTerraform(right), "b.tf": "terraform {"}, refused: true},
	"not JSON":        {files: map[string]string{"a.tf": inTerraform(right), "b.tf.json": "{"}, refused: true},
	"a mistake in it": {files: map[string]string{"a.tf": "terraform {\n  encryption {\n    metod \"a\" \"b\" {}\n  }\n}\n"}, refused: true},
	"no module":       {files: map[string]string{"main.hcl": inTerraform(right)}, refused: true},
}

// TestModule: OpenTofu seals a state in each of the folders, and we open it; where
// it refuses the folder, we do.
//
// Promise: Modules
func TestModule(t *testing.T) {
	t.Parallel()
	sealed, says := seal(t, block(right), state), golden(t, "modules")
	for name, c := range modules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			variables := map[string]cty.Value{"unused": cty.StringVal("x")}
			environment := map[string]string{}
			for name, value := range c.variables {
				environment[name] = strings.Trim(value, `"`)
				variables[name] = cty.StringVal(environment[name])
			}
			file := sealed
			if c.plaintext {
				file = []byte(state)
			}
			if tofu := os.Getenv("STATECRYPT_TOFU"); tofu != "" {
				file = sealIn(t, dir, tofu, environment, !c.refused, file)
			}
			opened, err := openModule(t, dir, variables, file)
			switch {
			case c.refused:
				says.Error(t, name, err)
			case err != nil:
				t.Error(err)
			case opened.Encrypted == c.plaintext:
				t.Errorf("got %+v", opened)
			}
		})
	}
}

func openModule(t *testing.T, dir string, variables map[string]cty.Value, file []byte) (*encryption.Opened, error) {
	t.Helper()
	enc, err := encryption.Load(lighttest.Registry(), encryption.Module(dir, encryption.Variables(variables)))
	if err != nil {
		return nil, err
	}
	return enc.State().Decrypt(t.Context(), file)
}

// sealIn has OpenTofu write the state of a module; if it must not accept the
// module, otherwise is returned.
func sealIn(t *testing.T, dir, tofu string, variables map[string]string, accepted bool, otherwise []byte, arguments ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tofu, append([]string{"apply", "-auto-approve"}, arguments...)...)
	cmd.Dir = dir
	cmd.Env = append(world.World{}.Environ().Pairs(), "HOME="+t.TempDir(), "TF_CLI_CONFIG_FILE="+os.DevNull, "TF_INPUT=0",
		"CHECKPOINT_DISABLE=1")
	for name, value := range maps.All(variables) {
		cmd.Env = append(cmd.Env, "TF_VAR_"+name+"="+value)
	}
	if out, err := cmd.CombinedOutput(); (err == nil) != accepted {
		t.Fatalf("OpenTofu: %v\n%s", err, out)
	}
	if !accepted {
		return otherwise
	}
	file, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Each part of path names a file, wherever the program runs.
func TestPathOfModule(t *testing.T) {
	t.Chdir(t.TempDir())
	sealed := seal(t, block(right), state)
	for _, part := range []string{"module", "root", "cwd"} {
		if err := os.MkdirAll(part, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"main.tf": inTerraform(`file("${path.` + part + `}/p.txt")`), "p.txt": strings.Trim(right, `"`)} {
			if err := os.WriteFile(filepath.Join(part, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := openModule(t, part, nil, sealed); err != nil {
			t.Errorf("path.%s: %v", part, err)
		}
	}
}

func TestModuleIsThere(t *testing.T) {
	t.Parallel()
	if _, err := encryption.Load(lighttest.Registry(), encryption.Module(filepath.Join(t.TempDir(), "gone"))); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

// TestWorkspaceOfVariables: terraform.workspace is that of TF_WORKSPACE if the environment
// counts, and otherwise the selected one.
func TestWorkspaceOfVariables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := inTerraform(`"the passphrase of ${terraform.workspace}"`)
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	in := func(with ...encryption.With) encryption.Target {
		enc, err := encryption.Load(lighttest.Registry(), encryption.Module(dir, with...))
		if err != nil {
			t.Fatal(err)
		}
		return enc.State()
	}
	prod := encryption.VarEnvironment([]string{"TF_WORKSPACE=prod"})
	sealed, err := in(prod, nil).Encrypt(t.Context(), []byte(state))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in(prod).Decrypt(t.Context(), sealed); err != nil {
		t.Errorf("in the same: %v", err)
	}
	if _, err := in().Decrypt(t.Context(), sealed); !errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("in the one that is selected: %v", err)
	}
}
