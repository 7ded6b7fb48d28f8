package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const text = `
method "aes_gcm" "main" { keys = key_provider.pbkdf2.main }
state { method = method.aes_gcm.main }
key_provider `

func TestRun(t *testing.T) {
	demo := filepath.Join("..", "demo")
	passphrase, err := os.ReadFile(filepath.Join(demo, "passphrase.txt"))
	if err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	for name, c := range map[string]struct{ encryption, out, err string }{
		"opened":      {text + `"pbkdf2" "main" { passphrase = "` + strings.TrimSpace(string(passphrase)) + `" }`, `"vpc-0a1b2c3d4e5f"`, ""},
		"no settings": {"", "", "is encrypted"},
		"not ours":    {strings.ReplaceAll(text, "pbkdf2", "aws_kms") + `"aws_kms" "main" {}`, "", "choose one of: pbkdf2, static, external"},
		"command": {strings.ReplaceAll(text, "pbkdf2", "external") + `"external" "main" { command = ["touch", "` + ran + `"] }`, "",
			"key_provider.external.main.command: "},
		"not settings": {"{", "", "TF_ENCRYPTION:1"},
	} {
		env := func(string) (string, bool) { return c.encryption, true }
		var out bytes.Buffer
		err := run(t.Context(), []string{filepath.Join(demo, "network.tfstate")}, env, &out)
		if !strings.Contains(out.String(), c.out) || c.err == "" && err != nil || c.err != "" &&
			(err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, %s", name, err, &out)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command ran")
	}
}
