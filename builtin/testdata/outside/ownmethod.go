package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// ownMethodBlock returns a method of this program: AES-GCM, with a random nonce at the start
// of the ciphertext.
func ownMethodBlock() driver.Block[driver.Method] {
	return driver.Block[driver.Method]{
		Table: attr.Table{Name: "own", Doc: "AES-GCM.", Attrs: []attr.Attr{
			{Name: "keys", Type: cty.String, Required: true, Form: attr.KeyProvider, Doc: "The key provider."},
		}},
		Build: func(v attr.Values) (driver.Method, error) { return ownMethod(v.String("keys")), nil },
	}
}

// ownMethod is the method. Its value is the address of its key provider.
type ownMethod string

func (m ownMethod) Decrypt(ctx context.Context, keys driver.Keys, data []byte) ([]byte, error) {
	aead, err := m.aead(ctx, keys)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, data, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: authentication failed", driver.ErrNoKey)
	}
	return plain, nil
}

func (m ownMethod) Encrypt(ctx context.Context, keys driver.Keys, plain []byte) ([]byte, error) {
	aead, err := m.aead(ctx, keys)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, plain, nil), nil
}

func (m ownMethod) aead(ctx context.Context, keys driver.Keys) (cipher.AEAD, error) {
	key, err := keys(ctx, string(m))
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
