//go:build unix

package external_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/pbkdf2"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
)

// TestDamage damages files of OpenTofu's in every way that is one truncation or
// one flipped bit. The programs are asked about what becomes of their metadata;
// where that is whole, their key is remembered. They look at the key_id in it and
// let the rest be.
func TestDamage(t *testing.T) {
	t.Parallel()
	for name, counts := range map[string][4]int{
		"external_key_provider":         {1, 220, 138, 0},
		"external_key_provider_rotated": {1, 220, 138, 0},
		"pbkdf2_chain_external":         {1, 399, 138, 0},
		"err_fallback_setup_aborts":     {1, 180, 138, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := func(file string) []byte {
				b, err := os.ReadFile(filepath.Join("testdata", name, file))
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			file := read("state.tfstate.enc")
			var derivations encryptiontest.Derivations
			registry := encryption.Registry{
				KeyProviders: []encryption.Block[encryption.KeyProvider]{external.Block(), derivations.Quick(pbkdf2.Block(), file)},
				Methods:      []encryption.Block[encryption.Method]{aesgcm.Block()},
			}
			text := strings.ReplaceAll(string(read("config.hcl")), "./", "testdata/"+name+"/")
			cfg, err := config.Parse(text, name, registry.Options(cty.NilVal))
			if err != nil {
				t.Fatal(err)
			}
			enc, err := encryption.New(registry, cfg)
			if err != nil {
				t.Fatal(err)
			}
			encryptiontest.DamageEnvelope(t, file, counts, func(file []byte) ([]byte, error) {
				opened, err := enc.State().Decrypt(t.Context(), file)
				if err != nil {
					return nil, err
				}
				return opened.Data, nil
			})
		})
	}
}
