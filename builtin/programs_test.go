package builtin_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// TestProgramsGetNoEnvironment: without the environment, the programs of an
// external key provider and of an external method get what any program needs in
// order to run. With it, they get theirs, but nothing of ours.
func TestProgramsGetNoEnvironment(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	for name, value := range map[string]string{
		"AWS_PROFILE": "theirs", "AWS_SECRET_ACCESS_KEY": "theirs", "TF_VAR_x": "canary", "STATE_PASSPHRASE": "canary",
		"SSLKEYLOGFILE": "canary", "AZURE_SDK_GO_LOGGING": "canary",
	} {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	const said = `{"magic":"OpenTofu-External-`
	program := func(name, magic, answer string) string {
		path := filepath.Join(dir, name)
		script := "#!/bin/sh\nenv >>'" + dir + "/env'\ncat >/dev/null\necho '" + said + magic + "\",\"version\":1}'\necho '" + answer + "'\n"
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const key = "AAECAwQFBgcICQoLDA0ODw=="
	text := `
key_provider "external" "k" { command = ["` + program("keys", "Key-Provider",
		`{"keys":{"encryption_key":"`+key+`","decryption_key":"`+key+`"},"meta":{"external_data":{}}}`) + `"] }
method "external" "m" {
	keys            = key_provider.external.k
	encrypt_command = ["` + program("seal", "Encryption-Method", `{"payload":"eA=="}`) + `"]
	decrypt_command = ["` + program("open", "Encryption-Method", `{"payload":"eA=="}`) + `"]
}
state { method = method.external.m }
`
	for name, layers := range map[string][]encryption.Layer{
		"off": {encryption.Code(text, "test")},
		"on":  {encryption.Code(text, "test"), encryption.Environment(os.LookupEnv)},
	} {
		enc, err := encryption.Load(builtin.Registry(), layers...)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := enc.State().Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"l"}`))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = enc.State().Decrypt(t.Context(), sealed) // what the method answers is no state
		saw, err := os.ReadFile(filepath.Join(dir, "env"))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(saw), "PATH="); n < 4 {
			t.Errorf("%s: %d programs ran", name, n)
		}
		if strings.Contains(string(saw), "canary") || strings.Contains(string(saw), "theirs") != (name == "on") {
			t.Errorf("%s: the programs saw\n%s", name, saw)
		}
		if err := os.Remove(filepath.Join(dir, "env")); err != nil {
			t.Fatal(err)
		}
	}
}
