package openbao_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/pbkdf2"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
)

// TestDamage damages files of OpenTofu's in every way that is one truncation or
// one flipped bit; the service sees what becomes of the wrapped key.
func TestDamage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mount  string
		counts [4]int
	}{
		"openbao_default":        {"", [4]int{1, 175, 138, 0}},
		"openbao_16_custom_path": {"my/transit", [4]int{1, 177, 138, 0}},
		"openbao_64_chain":       {"", [4]int{1, 355, 138, 0}},
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
			s := openbaotest.New(t, master())
			s.Token, s.Mount = "s.throwaway-token", c.mount
			file := read("state.tfstate.enc")
			var derivations encryptiontest.Derivations
			registry := encryption.Registry{
				KeyProviders: []encryption.Block[encryption.KeyProvider]{openbao.Block(), derivations.Quick(pbkdf2.Block(), file)},
				Methods:      []encryption.Block[encryption.Method]{aesgcm.Block()},
			}
			cfg, err := config.Parse(string(read("config.hcl")), name, registry.Options(cty.NilVal))
			if err != nil {
				t.Fatal(err)
			}
			cfg.LookupEnv = func(name string) (string, bool) {
				v, ok := map[string]string{"BAO_ADDR": s.URL, "BAO_TOKEN": s.Token}[name]
				return v, ok
			}
			enc, err := encryption.New(registry, cfg)
			if err != nil {
				t.Fatal(err)
			}
			encryptiontest.DamageEnvelope(t, file, c.counts, func(file []byte) ([]byte, error) {
				opened, err := enc.State().Decrypt(t.Context(), file)
				if err != nil {
					return nil, err
				}
				return opened.Data, nil
			})
		})
	}
}
