package builtin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// needed are the settings that each kind requires beside the one that is tried.
var needed = map[string]string{
	"openbao": "key_name = \"k\"\nmax_retries = 0\naddress = \"https://127.0.0.1:1\"\n",
	"aws_kms": "kms_key_id = \"k\"\nkey_spec = \"AES_256\"\nregion = \"eu-west-1\"\nmax_retries = 1\nendpoints {\nkms = " +
		"\"https://127.0.0.1:1\"\n}\n",
	"gcp_kms":     "kms_encryption_key = \"projects/p/locations/global/keyRings/r/cryptoKeys/k\"\nkey_length = 32\n",
	"azure_vault": "vault_key_name = \"k\"\nvault_uri = \"https://127.0.0.1:1\"\n",
	"pbkdf2":      "passphrase = \"correct horse battery staple\"\n",
}

// TestSecretsInPlaceOfPaths: no error of a key provider or a method shows what is in the
// place of a path, of the code or of TF_ENCRYPTION. It may be what was to be in the file.
func TestSecretsInPlaceOfPaths(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", "")
	keyProviders, methods := unstable.Tables(builtin.Registry())
	found := 0
	for _, table := range keyProviders {
		for _, line := range linesWithPaths(table.Attrs) {
			found++
			t.Run(table.Name+"/"+strings.Fields(line)[0], func(t *testing.T) {
				hides(t, func(secret string) string {
					return fmt.Sprintf("key_provider %q \"x\" {\n%s%s\n}\nmethod \"aes_gcm\" \"x\" { keys = key_provider.%[1]s.x }\n"+
						"state { method = method.aes_gcm.x }", table.Name, needed[table.Name], fmt.Sprintf(line, secret))
				})
			})
		}
	}
	for _, table := range methods {
		for _, line := range linesWithPaths(table.Attrs) {
			found++
			t.Run(table.Name+"/"+strings.Fields(line)[0], func(t *testing.T) {
				hides(t, func(secret string) string {
					return fmt.Sprintf("method %q \"x\" {\n%s\n}\nstate { method = method.%[1]s.x }", table.Name, fmt.Sprintf(line, secret))
				})
			})
		}
	}
	if found < 15 {
		t.Errorf("only %d attributes are about files", found)
	}
}

// hides seals and opens with settings that have a secret in the place of a path.
func hides(t *testing.T, settings func(secret string) string) {
	t.Helper()
	for what, secret := range testkit.InPlaceOfPaths() {
		text := settings(fmt.Sprintf("%q", secret))
		for from, layer := range map[string]encryption.Layer{
			"code": encryption.Code(text, "code"), "environment": encryption.Environment(variables("TF_ENCRYPTION", text)),
		} {
			enc, err := encryption.Load(builtin.Registry(), layer)
			said := fmt.Sprint(err)
			if err == nil {
				_, sealing := enc.State().Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"x"}`))
				said += fmt.Sprint(sealing)
				for _, file := range filesToOpen() {
					_, opening := enc.State().Decrypt(t.Context(), file)
					said += fmt.Sprint(opening)
				}
			}
			if strings.Contains(said, testkit.CanaryOfPaths) {
				t.Errorf("%s, in %s: %s", what, from, said)
			}
		}
	}
}

// filesToOpen are for the keys of all kinds, as far as they look.
func filesToOpen() [][]byte {
	return [][]byte{
		[]byte(`{"meta":{"key_provider.age.x":"eyJleHRlcm5hbF9kYXRhIjp7InN0YXRlY3J5cHRfYWdlX2tleSI6IllXZGwifX0="},` +
			`"encrypted_data":"YWdl","encryption_version":"v0"}`),
		[]byte("age-encryption.org/v1\n-> X25519 x\n"),
		[]byte(`{"version":4,"serial":1,"sops":{"age":[{"recipient":"age1x","enc":"x"}],"mac":"x","version":"3.9.0"}}`),
	}
}

// linesWithPaths are settings of the attributes that are about files, with %s for what is
// in the place of the path.
func linesWithPaths(attrs []attr.Attr) (lines []string) {
	for _, a := range attrs {
		switch {
		case a.Attrs != nil:
			for _, line := range linesWithPaths(a.Attrs) {
				required := "role = \"r\"\n"
				if !slices.ContainsFunc(a.Attrs, func(inner attr.Attr) bool { return inner.Name == "role" }) {
					required = ""
				}
				if slices.ContainsFunc(a.Attrs, func(inner attr.Attr) bool { return inner.Name == "role_arn" }) {
					required = "role_arn = \"arn:aws:iam::123456789012:role/x\"\n"
				}
				lines = append(lines, a.Name+" {\n"+required+line+"\n}")
			}
		case !testkit.NamesPath(a.Name, a.Doc):
		case a.Type.IsListType():
			lines = append(lines, a.Name+" = [%s]")
		case a.Type == cty.String:
			lines = append(lines, a.Name+" = %s")
		}
	}
	return lines
}
