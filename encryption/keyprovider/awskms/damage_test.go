package awskms_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
)

// TestDamage damages files of OpenTofu's in every way that is one truncation or
// one flipped bit; the service sees what becomes of the wrapped key.
func TestDamage(t *testing.T) {
	const arn = "arn:aws:kms:eu-central-1:000000000000:key/11111111-2222-3333-4444-555555555555"
	server := awskmstest.New(t, awskmstest.Key{ID: arn, Master: master(0x11)}, awskmstest.Key{ID: "alias/throwaway", Master: master(0x11)})
	profile := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(profile, []byte("[default]\nendpoint_url = "+server.URL+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key, spec string
		counts    [4]int
	}{
		"aws_kms_aes256":       {arn, "AES_256", [4]int{1, 176, 138, 0}},
		"aws_kms_aes128_alias": {"alias/throwaway", "AES_128", [4]int{1, 182, 138, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			text := `key_provider "aws_kms" "a" {
  kms_key_id          = "` + c.key + `"
  key_spec            = "` + c.spec + `"
  region              = "eu-central-1"
  access_key          = "AKIASTATIC"
  secret_key          = "canary-secret"
  shared_config_files = ["` + profile + `"]
}
method "aes_gcm" "m" { keys = key_provider.aws_kms.a }
state { method = method.aes_gcm.m }
`
			registry := encryption.Registry{
				KeyProviders: []encryption.Block[encryption.KeyProvider]{awskms.Block()},
				Methods:      []encryption.Block[encryption.Method]{aesgcm.Block()},
			}
			cfg, err := config.Parse(text, "damage", registry.Options(cty.NilVal))
			if err != nil {
				t.Fatal(err)
			}
			enc, err := encryption.New(registry, cfg)
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.ReadFile(filepath.Join("testdata", name, "state.tfstate.enc"))
			if err != nil {
				t.Fatal(err)
			}
			encryptiontest.DamageEnvelope(t, file, c.counts, func(file []byte) ([]byte, error) {
				opened, err := enc.State().Decrypt(context.Background(), file)
				if err != nil {
					return nil, err
				}
				return opened.Data, nil
			})
		})
	}
}
