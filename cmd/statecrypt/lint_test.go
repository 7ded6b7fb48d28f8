package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWrapWithoutAKey: a command that does nothing with a state runs without a value of any variable of the
// settings, and gets none of the variables that have one.
func TestWrapWithoutAKey(t *testing.T) {
	t.Parallel()
	dir, program := printsEnvironment(t)
	passphrase := func(value string) string {
		return write(t, "keys.hcl", "key_provider \"pbkdf2\" \"k\" { passphrase = "+value+" }\n"+
			"method \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.k }\n"+
			"state { method = method.aes_gcm.m }\nplan { method = method.aes_gcm.m }\n"+
			"backend \"http\" {\n  address  = var.address\n  password = var.password\n}\n")
	}
	for name, config := range map[string]string{
		"no value":               passphrase("var.none"),
		"no value of the first":  passphrase(`"${var.none}${var.set}"`),
		"no value of the second": passphrase(`"${var.set}${var.none}"`),
		"an expression":          passphrase(`var.none == "" ? var.set : var.another`),
		"no settings":            "",
	} {
		for _, command := range []string{
			"version", "-version", "fmt -check", "validate", "get", "init -backend=false", "providers lock", "providers mirror x",
			"metadata functions", "login x", "logout x", "modules", "plan -help",
		} {
			t.Run(name+", "+command, func(t *testing.T) {
				t.Parallel()
				var out bytes.Buffer
				args := []string{"wrap", "--", program, "-chdir=" + dir}
				if command == "-version" {
					args = args[:3]
				}
				if config != "" {
					args = append([]string{"wrap", "-config", config}, args[1:]...)
				}
				code := run(t.Context(), append(args, strings.Fields(command)...), strings.NewReader(""), &out, &out, []string{
					"TF_VAR_set=" + canaryKey, "TF_VAR_password=" + canaryKey, "TF_VAR_other=kept", "STATECRYPT_HTTP_PASSWORD=" + canaryKey,
					"TF_HTTP_PASSWORD=" + canaryKey, "PATH=" + os.Getenv("PATH"),
				})
				text := out.String()
				for _, name := range []string{"set", "password"} {
					if config == "" || !strings.Contains(read(t, config), "var."+name) {
						text = strings.ReplaceAll(text, "TF_VAR_"+name+"="+canaryKey, "")
					}
				}
				if code != 0 || strings.Contains(text, canaryKey) || !strings.Contains(text, "TF_VAR_other=kept") {
					t.Errorf("%d\n%s", code, text)
				}
			})
		}
	}
	mistakes := openMistakes(t, "wrap without a key")
	for name, args := range map[string][]string{
		"plan":                     {program, "-chdir=" + dir, "plan"},
		"init":                     {program, "-chdir=" + dir, "init"},
		"init -backend=true":       {program, "-chdir=" + dir, "init", "-backend=false", "-backend=true"},
		"providers":                {program, "-chdir=" + dir, "providers"},
		"a command that is not":    {program, "-chdir=" + dir, "fnt"},
		"settings that are broken": {program, "-chdir=" + dir, "validate"},
	} {
		config := passphrase("var.none")
		if strings.HasPrefix(name, "settings") {
			config = write(t, filepath.Join(t.TempDir(), "keys.hcl"), "key_provider \"pbkdf2\" {\n")
		}
		got := statecrypt(t, "", "", append([]string{"wrap", "-config", config, "--"}, args...)...)
		if mistakes.check(t, name, got); got.code == 0 || got.stdout != "" {
			t.Errorf("%s: %d, %s", name, got.code, got.stdout)
		}
	}
	got := statecrypt(t, "", "", "wrap", "-config", passphrase("var.none"), "-encrypt-existing", "--", program, "-chdir="+dir, "init",
		"-backend=false")
	if mistakes.check(t, "moves", got); got.code == 0 {
		t.Error("it moves a state without a backend")
	}
}
