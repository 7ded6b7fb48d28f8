package encryption_test

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
)

// hkdfBlock declares a key provider: HKDF-SHA-256 over a secret, with a random salt
// that the file stores.
func hkdfBlock() driver.Block[driver.KeyProvider] {
	secret := attr.Attr{Name: "secret", Type: cty.String, Required: true, Secrecy: attr.LocalSecret, Doc: "At least 16 characters."}
	return driver.Block[driver.KeyProvider]{
		Table: attr.Table{Name: "hkdf", Doc: "Derives the key from a secret.", Attrs: []attr.Attr{secret}},
		Build: func(v attr.Values) (driver.KeyProvider, error) {
			if len(v.String("secret")) < 16 {
				return nil, v.Errorf("secret", "at least 16 characters are required")
			}
			return hkdfKeys{secret: []byte(v.String("secret"))}, nil
		},
	}
}

type hkdfKeys struct{ secret []byte }

type hkdfSalt struct{ Salt []byte }

func (p hkdfKeys) Key(_ context.Context, _ driver.Keys, stored json.RawMessage) ([]byte, error) {
	if stored == nil {
		return nil, fmt.Errorf("%w: the file stores no salt", encryption.ErrNoKey)
	}
	var m hkdfSalt
	if err := json.Unmarshal(stored, &m); err != nil || len(m.Salt) != 32 {
		return nil, errors.New("the salt in the file is damaged")
	}
	return hkdf.Key(sha256.New, p.secret, m.Salt, "the hkdf key provider", 32)
}

func (p hkdfKeys) NewKey(ctx context.Context, keys driver.Keys) ([]byte, json.RawMessage, error) {
	m := hkdfSalt{make([]byte, 32)}
	_, _ = rand.Read(m.Salt) // never fails
	stored, err := json.Marshal(m)
	if err != nil {
		return nil, nil, err
	}
	key, err := p.Key(ctx, keys, stored)
	return key, stored, err
}

// A key provider of your own, beside those that need no SDK.
// Package encryptiontest has the tests for it.
func Example_ownKeyProvider() {
	registry := light.Registry()
	registry.KeyProviders = append(registry.KeyProviders, hkdfBlock())
	enc, err := encryption.Load(registry, encryption.Code(`
		key_provider "hkdf" "mine" { secret = "correct-horse-battery-staple" }
		method "aes_gcm" "mine" { keys = key_provider.hkdf.mine }
		state { method = method.aes_gcm.mine }
	`, "own.hcl"))
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	file, err := enc.State().Encrypt(ctx, []byte(`{"version":4,"serial":1,"lineage":"l"}`))
	if err != nil {
		log.Fatal(err)
	}
	info, err := encryption.Inspect(file)
	if err != nil {
		log.Fatal(err)
	}
	opened, err := enc.State().Decrypt(ctx, file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.KeyProviders, "opened to", string(opened.Data))
	// Output:
	// [key_provider.hkdf.mine] opened to {"version":4,"serial":1,"lineage":"l"}
}
