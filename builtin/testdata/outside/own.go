package main

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// ownBlock returns a key provider of this program: HKDF-SHA-256 over a secret.
func ownBlock() driver.Block[driver.KeyProvider] {
	return driver.Block[driver.KeyProvider]{
		Table: attr.Table{Name: "own", Doc: "Derives the key from a secret.", Attrs: []attr.Attr{
			{Name: "secret", Type: cty.String, Required: true, Secrecy: attr.LocalSecret, Doc: "At least 16 bytes.",
				Check: attr.Is(func(text string) bool { return len(text) >= 16 }, "at least 16 bytes are required")},
		}},
		Build: func(v attr.Values) (driver.KeyProvider, error) { return own(v.String("secret")), nil },
	}
}

type own string

func (o own) Key(_ context.Context, _ driver.Keys, stored json.RawMessage) ([]byte, error) {
	if stored == nil {
		return nil, fmt.Errorf("%w: the file stores no salt", driver.ErrNoKey)
	}
	var salt []byte
	if json.Unmarshal(stored, &salt) != nil || len(salt) != 32 {
		return nil, fmt.Errorf("%w: the salt in the file has not 32 bytes", driver.ErrDamaged)
	}
	return hkdf.Key(sha256.New, []byte(o), salt, "own", 32)
}

func (o own) NewKey(ctx context.Context, keys driver.Keys) ([]byte, json.RawMessage, error) {
	salt := make([]byte, 32)
	_, _ = rand.Read(salt) // never fails
	stored, err := json.Marshal(salt)
	if err != nil {
		return nil, nil, err
	}
	key, err := o.Key(ctx, keys, stored)
	return key, stored, err
}
