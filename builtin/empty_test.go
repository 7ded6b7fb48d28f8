package builtin_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// TestEmptyEntriesOfALayer: an entry of TF_ENCRYPTION that says nothing, of any kind and
// beside secrets of the code, has nothing run that a variable names, and hands on no secret
// to what the machine has: gpg and az.
//
// Promise: TF_ENCRYPTION
func TestEmptyEntriesOfALayer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	evil, own := "#!/bin/sh\necho x >>'"+path("ran")+"'\n", "#!/bin/sh\nenv >>'"+path("env")+"'\nexit 1\n"
	google := `{"type":"external_account","audience":"a","subject_token_type":"urn:ietf:params:oauth:token-type:id_token",` +
		`"token_url":"http://127.0.0.1:1","credential_source":{"executable":{"command":"` + path("evil") + `"}}}`
	for name, text := range map[string]string{
		"evil": evil, "age-plugin-x": evil, "gpg": own, "az": own, "google.json": google,
		"config": "[default]\ncredential_process = " + path("evil") + "\n", "gpg.conf": "agent-program " + path("evil") + "\n",
	} {
		if err := os.WriteFile(path(name), []byte(text), 0o700); err != nil { //nolint:gosec // some of them are run
			t.Fatal(err)
		}
	}
	variables := map[string]string{
		"AWS_CONFIG_FILE": path("config"), "AWS_SHARED_CREDENTIALS_FILE": path("config"), "GOOGLE_APPLICATION_CREDENTIALS": path("google.json"),
		"GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES": "1", "GNUPGHOME": dir, "SOPS_GPG_EXEC": path("evil"), "SOPS_AGE_KEY_CMD": path("evil"),
		"SOPS_AGE_KEY": "AGE-PLUGIN-X-1QQQQQQQQ", "AZURE_EXTENSION_DIR": "canary", "PYTHONPATH": "canary", "ARM_USE_CLI": "true",
		"AWS_PROFILE":                       "default",
		"TF_BACKEND_HTTP_SOPS_AWS_KMS_ARNS": "*", "TF_BACKEND_HTTP_SOPS_GCP_KMS_KEYS": "*", "HOME": dir, "HTTPS_PROXY": "http://127.0.0.1:1",
		"AWS_EC2_METADATA_DISABLED": "true", "PATH": dir + string(os.PathListSeparator) + os.Getenv("PATH"), "TF_VAR_p": "canary",
		"VAULT_ADDR": "http://127.0.0.1:1", "VAULT_TOKEN": "t",
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
	const code = "key_provider \"pbkdf2\" \"own\" { passphrase = \"canary canary canary\" }\n" +
		"key_provider \"openbao\" \"own\" {\nkey_name = \"k\"\naddress = \"http://127.0.0.1:1\"\ntoken = \"canary\"\nmax_retries = 0\n}\n" +
		"key_provider \"azure_vault\" \"own\" {\nvault_uri = \"https://example.vault.azure.net\"\nvault_key_name = \"k\"\nkey_length = 32\n" +
		"tenant_id = \"t\"\nclient_id = \"c\"\nclient_secret_file_path = \"/none/canary\"\n}\n" +
		"key_provider \"aws_kms\" \"own\" {\nkms_key_id = \"k\"\nkey_spec = \"AES_256\"\nregion = \"eu-west-1\"\nmax_retries = 1\n" +
		"access_key = \"a\"\nsecret_key = \"canary\"\n" +
		"endpoints = { kms = \"http://127.0.0.1:1\" }\n}\n" +
		"key_provider \"gcp_kms\" \"own\" {\nkms_encryption_key = \"projects/p/locations/l/keyRings/r/cryptoKeys/k\"\nkey_length = 32\n" +
		"access_token = \"canary\"\n}\n"
	const made = `"created_at":"2024-01-01T00:00:00Z"`
	sops := `{"version":"ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:int]","sops":{"kms":[{` +
		`"arn":"arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555",` + made +
		`,"enc":"AA=="}],"gcp_kms":[{"resource_id":"projects/p/locations/global/keyRings/r/cryptoKeys/k",` + made + `,"enc":"AA=="}],` +
		`"azure_kv":[{"vault_url":"https://example.vault.azure.net","name":"k","version":"v",` + made + `,"enc":"AA"}],` +
		`"pgp":[{"fp":"AAAA",` + made + `,"enc":"-----BEGIN PGP MESSAGE-----"}],"age":[{"recipient":"age1x","enc":"x"}],` +
		`"lastmodified":"2024-01-01T00:00:00Z","mac":"ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]","version":"3.8.1"}}`
	var texts []string
	for _, block := range builtin.Registry().KeyProviders {
		for _, name := range []string{"own", "empty"} {
			address := fmt.Sprintf("key_provider %q %q", block.Name, name)
			use := fmt.Sprintf("method \"aes_gcm\" \"m\" { keys = key_provider.%s.%s }\nstate { method = method.aes_gcm.m }\n", block.Name, name)
			texts = append(texts, address+" {}\n"+use)
		}
	}
	for _, block := range builtin.Registry().Methods {
		texts = append(texts, fmt.Sprintf("method %q \"m\" {}\nstate { method = method.%s.m }\n", block.Name, block.Name),
			fmt.Sprintf("method %q \"m\" { keys = key_provider.pbkdf2.own }\nstate { method = method.%[1]s.m }\n", block.Name))
	}
	for _, text := range texts {
		t.Run(text, func(t *testing.T) {
			enc, err := encryption.Load(builtin.Registry(), encryption.Code(code, "code"), encryption.Environment(func(name string) (string, bool) {
				if name == "TF_ENCRYPTION" {
					return text, true
				}
				return os.LookupEnv(name)
			}))
			if err == nil {
				_, sealing := enc.State().Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"x"}`))
				_, opening := enc.State().Decrypt(t.Context(), []byte(sops))
				enc.Close()
				err = errors.Join(sealing, opening)
			}
			if err == nil {
				t.Error("nobody has the key of that file")
			} else if strings.Contains(strings.ReplaceAll(err.Error(), "/none/canary", ""), "canary") {
				t.Errorf("it says %v", err)
			}
			if _, err := os.Stat(path("ran")); err == nil {
				_ = os.Remove(path("ran"))
				t.Error("a program ran that a variable names")
			}
			if env, _ := os.ReadFile(path("env")); strings.Contains(string(env), "canary") || strings.Contains(string(env), "GNUPGHOME") {
				t.Errorf("a program of the machine gets %s", env)
			}
		})
	}
	if env, err := os.ReadFile(path("env")); err != nil || len(env) == 0 {
		t.Errorf("neither gpg nor az ran: this shows nothing: %v", err)
	}
}
