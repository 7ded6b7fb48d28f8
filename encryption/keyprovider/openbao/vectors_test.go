package openbao_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/pbkdf2"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
)

// TestVectors opens files that OpenTofu wrote with such a transit engine. One
// decrypt call is enough for all that is read of one file.
func TestVectors(t *testing.T) {
	t.Parallel()
	registry := encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{openbao.Block(), pbkdf2.Block()},
		Methods:      []encryption.Block[encryption.Method]{aesgcm.Block()},
	}
	for name, mount := range map[string]string{"openbao_default": "", "openbao_16_custom_path": "my/transit", "openbao_64_chain": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := func(f string) []byte {
				b, err := os.ReadFile(filepath.Join("testdata", name, f))
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			s := openbaotest.New(t, master())
			s.Token, s.Mount = "s.throwaway-token", mount
			cfg, err := config.Parse(string(file("config.hcl")), name, registry.Options(cty.NilVal))
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
			for range 20 {
				opened, err := enc.State().Decrypt(t.Context(), file("state.tfstate.enc"))
				if err != nil {
					t.Fatal(err)
				}
				var got, want any
				if json.Unmarshal(opened.Data, &got) != nil || json.Unmarshal(file("plain_state.json"), &want) != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("got %s", opened.Data)
				}
			}
			if asked := s.Requests(); !slices.Equal(asked, []string{"decrypt"}) {
				t.Errorf("asked for %q", asked)
			}
		})
	}
}
