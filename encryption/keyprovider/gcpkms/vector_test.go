package gcpkms_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
)

// The file was sealed by OpenTofu 1.12.6, with a service that used the same
// keys and format. Twenty readers of it cause one call.
func TestVector(t *testing.T) {
	t.Parallel()
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata", "gcp_kms_32", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var vector struct {
		Env         map[string]string `json:"env"`
		FakeService struct {
			MasterKeyHex string `json:"master_key_hex"`
		} `json:"fake_service"`
	}
	if err := json.Unmarshal(read("case.json"), &vector); err != nil {
		t.Fatal(err)
	}
	master, err := hex.DecodeString(vector.FakeService.MasterKeyHex)
	if err != nil {
		t.Fatal(err)
	}
	s := &gcpkmstest.Service{
		Keys:  map[string][]byte{"projects/throwaway/locations/global/keyRings/ring/cryptoKeys/tofu": master},
		Token: vector.Env["GOOGLE_OAUTH_ACCESS_TOKEN"],
	}
	registry := encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{gcpkms.Block(s.Start(t)...)},
		Methods:      []encryption.Block[encryption.Method]{aesgcm.Block()},
	}
	cfg, err := config.Parse(string(read("config.hcl")), "config.hcl", registry.Options(cty.NilVal))
	if err != nil {
		t.Fatal(err)
	}
	cfg.LookupEnv = func(name string) (string, bool) { v, ok := vector.Env[name]; return v, ok }
	enc, err := encryption.New(registry, cfg)
	if err != nil {
		t.Fatal(err)
	}
	state := read("state.tfstate.enc")
	var readers sync.WaitGroup
	for range 20 {
		readers.Go(func() {
			opened, err := enc.State().Decrypt(t.Context(), bytes.Clone(state))
			if err != nil {
				t.Error(err)
			} else if want := read("plain_state.json"); !bytes.Equal(bytes.TrimSpace(opened.Data), bytes.TrimSpace(want)) {
				t.Errorf("got %s", opened.Data)
			}
		})
	}
	readers.Wait()
	if calls := s.Calls(); !slices.Equal(calls, []string{"Decrypt"}) {
		t.Errorf("calls: %v", calls)
	}
}
