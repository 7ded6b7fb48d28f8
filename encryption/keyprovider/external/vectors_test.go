//go:build unix

package external_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/pbkdf2"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
)

func registry() encryption.Registry {
	return encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{external.Block(), pbkdf2.Block()},
		Methods:      []encryption.Block[encryption.Method]{aesgcm.Block()},
	}
}

// TestVectors opens files that OpenTofu wrote, with the programs that it ran.
// OpenTofu fails on err_fallback_setup_aborts, because the program of the
// primary is not there; a reader need not give up the fallback for that.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"external_key_provider", "external_key_provider_rotated", "pbkdf2_chain_external",
		"err_fallback_setup_aborts"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := func(f string) []byte {
				b, err := os.ReadFile(filepath.Join("testdata", name, f))
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			text := strings.ReplaceAll(string(file("config.hcl")), "./", "testdata/"+name+"/")
			cfg, err := config.Parse(text, name, registry().Options(cty.NilVal))
			if err != nil {
				t.Fatal(err)
			}
			enc, err := encryption.New(registry(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			opened, err := enc.State().Decrypt(t.Context(), file("state.tfstate.enc"))
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if json.Unmarshal(opened.Data, &got) != nil || json.Unmarshal(file("plain_state.json"), &want) != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %s", opened.Data)
			}
			if opened.UsedFallback != strings.Contains(name, "fallback") {
				t.Errorf("fallback: %t", opened.UsedFallback)
			}
		})
	}
}
