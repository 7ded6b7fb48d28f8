package azurevault_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault/azurevaulttest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// TestDamage damages files in every way that is one truncation or one flipped
// bit; the vault sees what becomes of the wrapped key. The files are sealed here,
// so they differ from run to run, and so does how much damage to the metadata
// hides it or changes the case of a name, and in which bits that hold nothing.
func TestDamage(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{
		"RSA-OAEP-256": `vault_key_name = "a"`,
		"A256GCM":      "vault_key_name = \"aes256\"\nsymmetric = true\nsymmetric_key_size = 256",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := `key_provider "azure_vault" "v" {
  vault_uri     = "https://example.vault.azure.net/"
  key_length    = 32
  use_cli       = false
  tenant_id     = "` + azurevaulttest.Tenant + `"
  client_id     = "` + azurevaulttest.ClientID + `"
  client_secret = "` + azurevaulttest.Secret + `"
  ` + key + `
}
method "aes_gcm" "m" { keys = key_provider.azure_vault.v }
state { method = method.aes_gcm.m }
`
			registry := kindtest.Registry(azurevault.BlockWith(azurevault.Options{Transport: service().Start(t)}))
			target := kindtest.Target(t, registry, text, nil)
			sealed, err := target.Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"cc40cc45-badd-0861-8973-8098304515dd","outputs":{"x":{"value":"canary","type":"string"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer // as OpenTofu writes it
			if err := json.Indent(&file, sealed, "", "  "); err != nil {
				t.Fatal(err)
			}
			lighttest.DamageEnvelope(t, file.Bytes(), [4]int{0, -1, 138, -1}, target)
		})
	}
}
