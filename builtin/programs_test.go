package builtin_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// TestEnvironmentLeadsToNoProgram: what a layer of the environment names, or a variable
// beside it, may hold a program: a profile does, and so do credentials. It runs only if
// the code says as much, or that such programs may run.
//
// Promise: TF_ENCRYPTION
func TestEnvironmentLeadsToNoProgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	dir := t.TempDir()
	mark := filepath.Join(dir, "ran")
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := write("program", "touch '"+mark+"'\nexit 1\n") // and gives nothing
	config := write("config", "[default]\ncredential_process = sh "+script+"\n[profile other]\ncredential_process = sh "+script+
		"\n[profile role]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = other\n[profile keys]\naws_access_key_id = x\n")
	credentials := write("credentials", "[other]\ncredential_process = sh "+script+"\n")
	document := `{"type":"external_account","audience":"a","subject_token_type":"urn:ietf:params:oauth:token-type:id_token",` +
		`"token_url":"https://sts.googleapis.com/v1/token","credential_source":{"executable":{"command":"sh ` + script + `"}}}`
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", "1")
	const (
		aws = "kms_key_id = \"alias/x\"\nkey_spec = \"AES_256\"\nregion = \"eu-west-1\"\nendpoints = { kms = \"http://127.0.0.1:9\" }\n"
		gcp = "kms_encryption_key = \"projects/p/locations/l/keyRings/r/cryptoKeys/k\"\nkey_length = 32\n"
	)
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "programs that a layer names")
	for name, c := range map[string]struct {
		kind, rest, names string
		variable, value   string
	}{
		"a profile":             {kind: "aws_kms", rest: aws, names: `profile = "other"`, variable: "AWS_CONFIG_FILE", value: config},
		"the default of a file": {kind: "aws_kms", rest: aws, names: `shared_config_files = ["` + config + `"]`},
		"a profile of a file":   {kind: "aws_kms", rest: aws, names: "profile = \"other\"\nshared_config_files = [\"" + config + "\"]"},
		"the source of a role":  {kind: "aws_kms", rest: aws, names: "profile = \"role\"\nshared_config_files = [\"" + config + "\"]"},
		"a file of credentials": {kind: "aws_kms", rest: aws, names: "profile = \"other\"\nshared_credentials_files = [\"" + credentials + "\"]"},
		"a file of a variable":  {kind: "aws_kms", rest: aws, variable: "AWS_CONFIG_FILE", value: config},
		"credentials":           {kind: "gcp_kms", rest: gcp, names: "credentials = " + strconv.Quote(document)},
		"credentials that are not within others": {kind: "gcp_kms", rest: gcp,
			names: "credentials = " + strconv.Quote(strings.Replace(document, "{", `{"source_credentials":null,`, 1))},
		"a file":        {kind: "gcp_kms", rest: gcp, names: "credentials = " + strconv.Quote(write("google", document))},
		"of a variable": {kind: "gcp_kms", rest: gcp, variable: "GOOGLE_APPLICATION_CREDENTIALS", value: document},
	} {
		t.Run(name, func(t *testing.T) {
			if c.variable != "" {
				t.Setenv(c.variable, c.value)
			}
			provider := func(attributes string) string {
				return `key_provider "` + c.kind + "\" \"k\" {\n" + attributes + "\n}\n"
			}
			const use = "method \"aes_gcm\" \"m\" { keys = key_provider.KIND.k }\nstate { method = method.aes_gcm.m }\n"
			all := provider(c.rest+c.names) + strings.Replace(use, "KIND", c.kind, 1)
			environment := func(text string, with ...encryption.With) encryption.Layer {
				return encryption.Environment(func(name string) (string, bool) {
					value := map[string]string{"TF_ENCRYPTION": text, c.variable: c.value}[name]
					return value, value != ""
				}, with...)
			}
			code := encryption.Code(all, "test")
			for how, row := range map[string]struct {
				layers []encryption.Layer
				ran    bool
			}{
				"environment":           {layers: []encryption.Layer{environment(all)}},
				"environment over code": {layers: []encryption.Layer{encryption.Code(provider(c.rest), "test"), environment(all)}},
				"allowed":               {layers: []encryption.Layer{environment(all, encryption.AllowCommands())}, ran: true},
				"code":                  {layers: []encryption.Layer{code, environment("")}, ran: true},
				"repeats the code":      {layers: []encryption.Layer{code, environment(all)}, ran: true},
			} {
				if how == "environment over code" && c.names == "" { // which then has all of it
					continue
				}
				enc, err := encryption.Load(builtin.Registry(), row.layers...)
				if err != nil {
					t.Fatal(err)
				}
				_, err = enc.State().Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"l"}`))
				enc.Close()
				if row.ran { // the text is that of the program
					if err == nil {
						t.Errorf("%s: there is no error", how)
					}
				} else {
					says.Error(t, name+", "+how, err)
				}
				if ran := os.Remove(mark) == nil; ran != row.ran {
					t.Errorf("%s: a program ran: %t; %v", how, ran, err)
				}
			}
		})
	}
}

// TestProgramsGetNoEnvironment: without the environment, the programs of an
// external key provider and of an external method get what any program needs in
// order to run. With it, they get theirs, but nothing of ours.
//
// Promise: use_environment = false
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
