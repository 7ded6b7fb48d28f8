package gcpkms_test

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
)

// TestDamage damages a file of OpenTofu's in every way that is one truncation or
// one flipped bit; the service sees what becomes of the wrapped key.
func TestDamage(t *testing.T) {
	t.Parallel()
	s := &gcpkmstest.Service{Keys: map[string][]byte{
		"projects/throwaway/locations/global/keyRings/ring/cryptoKeys/tofu": bytes.Repeat([]byte{0x11}, 32),
	}}
	text, err := os.ReadFile("testdata/gcp_kms_32/config.hcl")
	if err != nil {
		t.Fatal(err)
	}
	registry := encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{gcpkms.Block(s.Start(t)...)},
		Methods:      []encryption.Block[encryption.Method]{aesgcm.Block()},
	}
	cfg, err := config.Parse(string(text), "damage", registry.Options(cty.NilVal))
	if err != nil {
		t.Fatal(err)
	}
	cfg.LookupEnv = func(name string) (string, bool) {
		return gcpkmstest.Token, name == "GOOGLE_OAUTH_ACCESS_TOKEN"
	}
	enc, err := encryption.New(registry, cfg)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("testdata/gcp_kms_32/state.tfstate.enc")
	if err != nil {
		t.Fatal(err)
	}
	encryptiontest.DamageEnvelope(t, file, [4]int{1, 178, 138, 0}, func(file []byte) ([]byte, error) {
		opened, err := enc.State().Decrypt(context.Background(), file)
		if err != nil {
			return nil, err
		}
		return opened.Data, nil
	})
}
