package openbao_test

import (
	"context"
	"os"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
)

// TestDamage damages a file of OpenTofu's in every way that is one truncation or
// one flipped bit; the service sees what becomes of the wrapped key.
func TestDamage(t *testing.T) {
	t.Parallel()
	s := openbaotest.New(t, master())
	s.Token = "s.throwaway-token"
	text, err := os.ReadFile("testdata/openbao_default/config.hcl")
	if err != nil {
		t.Fatal(err)
	}
	registry := encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{openbao.Block()},
		Methods:      []encryption.Block[encryption.Method]{aesgcm.Block()},
	}
	cfg, err := config.Parse(string(text), "damage", registry.Options(cty.NilVal))
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
	file, err := os.ReadFile("testdata/openbao_default/state.tfstate.enc")
	if err != nil {
		t.Fatal(err)
	}
	encryptiontest.DamageEnvelope(t, file, [4]int{1, 175, 138, 0}, func(file []byte) ([]byte, error) {
		opened, err := enc.State().Decrypt(context.Background(), file)
		if err != nil {
			return nil, err
		}
		return opened.Data, nil
	})
}
