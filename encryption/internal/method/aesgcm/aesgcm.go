// Package aesgcm encrypts with AES in Galois/counter mode (NIST SP 800-38D).
//
// The encrypted data consists of a random 12-byte nonce, the ciphertext and a 16-byte tag, as in
// opentofu/internal/encryption/method/aesgcm.
package aesgcm

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// Block returns the aes_gcm method.
func Block() driver.Block[driver.Method] {
	return driver.Block[driver.Method]{
		Table: attr.Table{
			Name: "aes_gcm", OtherNames: []string{"aes"}, Example: []string{`keys = "key_provider.pbkdf2.main"`},
			Doc: "AES in Galois/counter mode, with a key of 16, 24 or 32 bytes.",
			Attrs: []attr.Attr{
				{Name: "keys", Type: cty.String, Required: true, Form: attr.KeyProvider, Doc: "The address of the key " +
					"provider, such as `key_provider.pbkdf2.main`."},
				{Name: "aad", Type: cty.List(cty.Number), Doc: "Additional authenticated data, as a list of bytes " +
					"(0 to 255). It must be what the file was encrypted with. Defaults to none."},
			},
		},
		Build: build,
	}
}

type method struct {
	keys string
	aad  []byte
}

var _ driver.Encrypter = (*method)(nil)

func build(v attr.Values) (driver.Method, error) {
	aad, err := v.Bytes("aad")
	return &method{keys: v.String("keys"), aad: aad}, err
}

// Decrypt decrypts data in place.
func (m *method) Decrypt(ctx context.Context, keys driver.Keys, data []byte) ([]byte, error) {
	gcm, err := m.cipher(ctx, keys, cipher.NewGCM)
	if err != nil {
		return nil, err
	}
	if len(data) < gcm.NonceSize()+gcm.Overhead() {
		return nil, fmt.Errorf("%w: the encrypted data has only %d bytes, so the file is probably "+
			"truncated", driver.ErrNoKey, len(data))
	}
	nonce, sealed := data[:gcm.NonceSize()], data[gcm.NonceSize():]
	plain, err := gcm.Open(sealed[:0], nonce, sealed, m.aad)
	if err != nil {
		err := fmt.Errorf("%w: authentication failed: the file was encrypted with another key or another aad, or it was changed",
			driver.ErrNoKey)
		if len(m.aad) > 0 {
			err = fault.With(err, "remove the argument aad if the file was encrypted without it")
		}
		return nil, err
	}
	return plain, nil
}

// Encrypt seals plain in place, with a random nonce.
func (m *method) Encrypt(ctx context.Context, keys driver.Keys, plain []byte) ([]byte, error) {
	gcm, err := m.cipher(ctx, keys, cipher.NewGCMWithRandomNonce)
	if err != nil {
		return nil, err
	}
	return gcm.Seal(plain[:0], nil, plain, m.aad), nil //nolint:gosec // the mode makes the nonce
}

func (m *method) cipher(ctx context.Context, keys driver.Keys, mode func(cipher.Block) (cipher.AEAD, error)) (cipher.AEAD, error) {
	key, err := keys(ctx, m.keys)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		const bits = 8
		hint := "; check whether the whole key was copied"
		if n := len(key); n == 128 || n == 192 || n == 256 {
			hint = fmt.Sprintf("; set the length in bytes: %d bits are %d bytes", n, n/bits)
		}
		return nil, fmt.Errorf("the key of %s has %d bytes, but AES requires 16, 24 or 32%s", m.keys, len(key), hint)
	}
	return mode(block)
}
