package encryption_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
)

// A key provider of somebody else: HKDF-SHA-256 over a secret, with a random
// salt that the file stores.

func hkdfBlock() encryption.Block[encryption.KeyProvider] {
	secret := attr.Attr{Name: "secret", Type: cty.String, Required: true, Sensitive: true, Doc: "At least 16 characters."}
	return encryption.Block[encryption.KeyProvider]{
		Table: attr.Table{Name: "hkdf", Doc: "Derives the key from a secret.", Attrs: []attr.Attr{secret}},
		Build: func(v attr.Values) (encryption.KeyProvider, error) {
			if len(v.String("secret")) < 16 {
				return nil, v.Errorf("secret", "at least 16 characters are required")
			}
			return hkdfKeys{secret: []byte(v.String("secret"))}, nil
		},
	}
}

type hkdfKeys struct{ secret []byte }

type hkdfSalt struct{ Salt []byte }

func (p hkdfKeys) Key(_ context.Context, _ encryption.Keys, stored json.RawMessage) ([]byte, error) {
	if stored == nil {
		return nil, fmt.Errorf("%w: the file stores no salt", encryption.ErrNoKey)
	}
	var m hkdfSalt
	if err := json.Unmarshal(stored, &m); err != nil || len(m.Salt) != 32 {
		return nil, errors.New("the salt in the file is damaged")
	}
	return hkdf.Key(sha256.New, p.secret, m.Salt, "the hkdf key provider", 32)
}

func (p hkdfKeys) NewKey(ctx context.Context, keys encryption.Keys) ([]byte, json.RawMessage, error) {
	m := hkdfSalt{make([]byte, 32)}
	_, _ = rand.Read(m.Salt) // never fails
	stored, err := json.Marshal(m)
	if err != nil {
		return nil, nil, err
	}
	key, err := p.Key(ctx, keys, stored)
	return key, stored, err
}

// A method of somebody else: XChaCha20-Poly1305, with the nonce in front.

func xchachaBlock() encryption.Block[encryption.Method] {
	keys := attr.Attr{Name: "keys", Type: cty.String, Required: true, Reference: true, Doc: "The key provider."}
	return encryption.Block[encryption.Method]{
		Table: attr.Table{Name: "xchacha", Doc: "XChaCha20-Poly1305.", Attrs: []attr.Attr{keys}},
		Build: func(v attr.Values) (encryption.Method, error) { return xchacha{keys: v.String("keys")}, nil },
	}
}

type xchacha struct{ keys string }

func (m xchacha) Decrypt(ctx context.Context, keys encryption.Keys, data []byte) ([]byte, error) {
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

func (m xchacha) Encrypt(ctx context.Context, keys encryption.Keys, plain []byte) ([]byte, error) {
	aead, err := m.cipher(ctx, keys)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return aead.Seal(nonce, nonce, plain, nil), nil
}

func (m xchacha) cipher(ctx context.Context, keys encryption.Keys) (cipher.AEAD, error) {
	key, err := keys(ctx, m.keys)
	if err != nil {
		return nil, err
	}
	return chacha20poly1305.NewX(key)
}

// A program's own list: the two above, and one method of ours.
func ownRegistry() encryption.Registry {
	return encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{hkdfBlock()},
		Methods:      []encryption.Block[encryption.Method]{aesgcm.Block(), xchachaBlock()},
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
	for plain, target := range map[string]encryption.Target{state: enc.State(), "PK\x03\x04 a plan": enc.Plan()} {
		name := target.Methods()[0]
		file, err := target.Encrypt(t.Context(), []byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*encryption.Encryption{enc, newEncryption(t, ownRegistry(), ownText)} {
			opened, err := e.Use(target.Methods()...).Decrypt(t.Context(), bytes.Clone(file))
			if err != nil || string(opened.Data) != plain || !opened.Encrypted {
				t.Errorf("%s: got %+v, %v", name, opened, err)
			}
		}
		other := newEncryption(t, ownRegistry(), strings.Replace(ownText, "correct", "another", 1))
		_, err = other.Use(target.Methods()...).Decrypt(t.Context(), file)
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
	keys := func(fill byte) encryption.Keys {
		return func(context.Context, string) ([]byte, error) { return bytes.Repeat([]byte{fill}, 32), nil }
	}
	encryptiontest.Method{
		Block: xchachaBlock(),
		Attrs: map[string]cty.Value{"keys": cty.StringVal("key_provider.hkdf.mine")},
		Bad:   []map[string]cty.Value{{}, {"keys": cty.StringVal("not an address")}},
		Keys:  keys(1),
		Other: keys(2),
	}.Run(t)
}

// A registry of your own, with a key provider of your own. This one has hkdf, which
// is not ours, and just two methods.
func Example_ownKeyProvider() {
	registry := encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{hkdfBlock()},
		Methods:      []encryption.Block[encryption.Method]{aesgcm.Block(), xchachaBlock()},
	}
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
