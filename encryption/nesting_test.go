package encryption_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// TestNesting: settings, the files that they name, and the values of variables end no process, however deep
// they nest.
func TestNesting(t *testing.T) {
	const child, many = "STATECRYPT_TEST_NESTING", 200_000
	if testing.Short() {
		t.Skip("a process of its own takes a while")
	}
	if os.Getenv(child) == "" { // a process ends when its stack does
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNesting$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%.4000s", err, out)
		}
		return
	}
	debug.SetMaxStack(64 << 20)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.ToSlash(path)
	}
	nested := func(before, inside, after string) string {
		return strings.Repeat(before, many) + inside + strings.Repeat(after, many)
	}
	settings := func(expr string) string {
		return `key_provider "pbkdf2" "k" { passphrase = ` + expr + ` }
			method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
			state { method = method.aes_gcm.m }`
	}
	var locals strings.Builder
	for i := range many {
		fmt.Fprintf(&locals, "l%d = local.l%d\n", i, i+1)
	}
	decode := func(function, text string) encryption.Layer {
		return encryption.Code(settings(function+`("`+file(strings.Trim(function, "(")+".txt", text)+`"))`), "settings")
	}
	for name, layer := range map[string]encryption.Layer{
		"native":       encryption.Code(settings(nested("(", `"x"`, ")")), "settings"),
		"JSON":         encryption.Code(`{"state": `+nested("[", "1", "]")+"}", "settings"),
		"a template":   encryption.Code(`{"state": {"method": "`+nested("${(", "1", ")}")+`"}}`, "settings"),
		"JSON decoded": decode("jsondecode(file", nested("[", "1", "]")),
		"YAML decoded": decode("yamldecode(file", nested("[", "1", "]")),
		"YAML objects": decode("yamldecode(file", nested("{a: ", "1", "}")),
		"a template file": encryption.Code(settings(`templatefile("`+file("template", nested(`${"`, "x", `"}`))+
			`", {})`), "settings"),
		"values":         encryption.Code(settings("var.x"), "settings", encryption.VarFiles(file("a.tfvars", "x = "+nested("[", "1", "]")))),
		"values in JSON": encryption.Code(settings("var.x"), "settings", encryption.VarFiles(file("a.tfvars.json", `{"x": `+nested("[", "1", "]")+"}"))),
		"locals": encryption.Module(filepath.Dir(file("main.tf", "terraform {\nencryption {\n"+settings("local.l0")+"\n}\n}\nlocals {\n"+
			locals.String()+"}\n"))),
		"a variable of a module": encryption.Module(filepath.Dir(module(t, settings("var.x[0]"))), encryption.VarEnvironment([]string{
			"TF_VAR_x=" + nested("[", "1", "]")})),
	} {
		t.Log(name)
		loaded, err := encryption.Load(lighttest.Registry(), layer)
		if err == nil {
			_, err = loaded.State().Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"l"}`))
		}
		if err == nil || !strings.Contains(err.Error(), "nested") && !strings.Contains(err.Error(), "local.") {
			t.Errorf("%s: got %.500v", name, err)
		}
	}
}

// module is a file of a module with settings, which declares a list.
func module(t *testing.T, settings string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "main.tf")
	text := "variable \"x\" {\ntype = list(any)\n}\nterraform {\nencryption {\n" + settings + "\n}\n}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
