package encryption_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// A method of someone else: XChaCha20-Poly1305, with the nonce in front.

func xchachaBlock() driver.Block[driver.Method] {
	keys := attr.Attr{Name: "keys", Type: cty.String, Required: true, Form: attr.KeyProvider, Doc: "The key provider."}
	return driver.Block[driver.Method]{
		Table: attr.Table{Name: "xchacha", Doc: "XChaCha20-Poly1305.", Attrs: []attr.Attr{keys}},
		Build: func(v attr.Values) (driver.Method, error) { return xchacha{keys: v.String("keys")}, nil },
	}
}

type xchacha struct{ keys string }

func (m xchacha) Decrypt(ctx context.Context, keys driver.Keys, data []byte) ([]byte, error) {
	aead, err := m.cipher(ctx, keys)
	if err != nil || len(data) < chacha20poly1305.NonceSizeX {
		return nil, cmp.Or(err, errors.New("the data is cut off"))
	}
	plain, err := aead.Open(nil, data[:aead.NonceSize()], data[aead.NonceSize():], nil)
	if err != nil {
		return nil, fmt.Errorf("%w: authentication failed", encryption.ErrNoKey)
	}
	return plain, nil
}

func (m xchacha) Encrypt(ctx context.Context, keys driver.Keys, plain []byte) ([]byte, error) {
	aead, err := m.cipher(ctx, keys)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return aead.Seal(nonce, nonce, plain, nil), nil
}

func (m xchacha) cipher(ctx context.Context, keys driver.Keys) (cipher.AEAD, error) {
	key, err := keys(ctx, m.keys)
	if err != nil {
		return nil, err
	}
	return chacha20poly1305.NewX(key)
}

// A program's own list: the two above, and one method of ours.
func ownRegistry() encryption.Registry {
	return encryption.Registry{
		KeyProviders: []driver.Block[driver.KeyProvider]{hkdfBlock()},
		Methods:      []driver.Block[driver.Method]{lighttest.Method("aes_gcm"), xchachaBlock()},
	}
}

const ownText = `
key_provider "hkdf" "mine" { secret = "correct-horse-battery-staple" }
method "xchacha" "mine" { keys = key_provider.hkdf.mine }
method "aes_gcm" "mixed" { keys = key_provider.hkdf.mine }
state { method = method.xchacha.mine }
plan { method = method.aes_gcm.mixed }`

func TestThirdParty(t *testing.T) {
	t.Parallel()
	enc := newEncryption(t, ownRegistry(), ownText)
	for plain, target := range map[string]encryption.Target{state: enc.State(), plan: enc.Plan()} {
		name := target.Methods()[0]
		file, err := target.Encrypt(t.Context(), []byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*encryption.Encryption{enc, newEncryption(t, ownRegistry(), ownText)} {
			opened, err := use(t, e, target.Methods()...).Decrypt(t.Context(), bytes.Clone(file))
			if err != nil || string(opened.Data) != plain || !opened.Encrypted {
				t.Errorf("%s: got %+v, %v", name, opened, err)
			}
		}
		other := newEncryption(t, ownRegistry(), strings.Replace(ownText, "correct", "another", 1))
		_, err = use(t, other, target.Methods()...).Decrypt(t.Context(), file)
		if !errors.Is(err, encryption.ErrNoKey) || strings.Contains(err.Error(), "horse") {
			t.Errorf("%s, with another secret: %v", name, err)
		}
	}
}

func TestThirdPartyKeyProviderSuite(t *testing.T) {
	t.Parallel()
	secret := func(s string) map[string]cty.Value { return map[string]cty.Value{"secret": cty.StringVal(s)} }
	encryptiontest.KeyProvider{
		Block:   hkdfBlock(),
		Attrs:   secret("canary-horse-battery"),
		Other:   secret("another-horse-battery"),
		Bad:     []map[string]cty.Value{{}, secret("canary-short")},
		Secrets: []string{"canary"},
	}.Run(t)
}

func TestThirdPartyMethodSuite(t *testing.T) {
	t.Parallel()
	keys := func(fill byte) driver.Keys {
		return func(context.Context, string) ([]byte, error) { return bytes.Repeat([]byte{fill}, 32), nil }
	}
	encryptiontest.Method{
		Block:     xchachaBlock(),
		Attrs:     map[string]cty.Value{"keys": cty.StringVal("key_provider.hkdf.mine")},
		Bad:       []map[string]cty.Value{{}, {"keys": cty.StringVal("not an address")}},
		Keys:      keys(1),
		OtherKeys: keys(2),
	}.Run(t)
}
