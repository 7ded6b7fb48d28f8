package xor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/static"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/xor"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/aesgcm"
)

func refs(a, b string) map[string]cty.Value {
	return map[string]cty.Value{"a": cty.StringVal("key_provider.static." + a), "b": cty.StringVal("key_provider.static." + b)}
}

func keys(_ context.Context, address string) ([]byte, error) {
	key, ok := map[string]string{
		"key_provider.static.one":    "canary 1",
		"key_provider.static.two":    "canary 2",
		"key_provider.static.three":  "canary 3",
		"key_provider.static.again":  "canary 1",
		"key_provider.static.short":  "canary",
		"key_provider.static.empty":  "",
		"key_provider.static.empty2": "",
	}[address]
	if !ok {
		return nil, driver.ErrNoKey
	}
	return []byte(key), nil
}

func TestSuite(t *testing.T) {
	t.Parallel()
	encryptiontest.KeyProvider{
		Block:    xor.Block(),
		Constant: true,
		Attrs:    refs("one", "two"),
		Other:    refs("one", "three"),
		Bad: []map[string]cty.Value{
			{},
			{"a": refs("one", "two")["a"]},
			{"b": refs("one", "two")["b"]},
			refs("one", "one"),
			refs("one", "again"),
			refs("one", "short"),
			refs("empty", "empty2"),
			refs("one", "missing"),
			refs("missing", "one"),
		},
		Keys:    keys,
		Secrets: []string{"canary"},
	}.Run(t)
}

func TestKey(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]error{{"one", "two"}: nil, {"one", "missing"}: driver.ErrNoKey} {
		p := encryptiontest.Build(t, xor.Block(), refs(pair[0], pair[1]))
		key, err := p.Key(t.Context(), keys, nil)
		if !errors.Is(err, want) || want == nil && string(key) != "\x00\x00\x00\x00\x00\x00\x00\x03" {
			t.Errorf("%v: %x, %v", pair, key, err)
		}
	}
}

// Nothing is stored under its own name; a literal key may be one of the two.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	registry := encryption.Registry{
		KeyProviders: []driver.Block[driver.KeyProvider]{xor.Block(), static.Block()},
		Methods:      []driver.Block[driver.Method]{aesgcm.Block()},
	}
	const text = `
		key_provider "static" "a" { key = "00112233445566778899aabbccddeeff" }
		key_provider "static" "b" { key = "%s" }
		key_provider "xor" "x" {
			a = key_provider.static.a
			b = key_provider.static.b
		}
		method "aes_gcm" "m" { keys = key_provider.xor.x }
		state { method = method.aes_gcm.m }`
	open := func(key string) encryption.Target {
		enc, err := encryption.Load(registry, encryption.Code(fmt.Sprintf(text, key), "text"))
		if err != nil {
			t.Fatal(err)
		}
		return enc.State()
	}
	const plain = `{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"l","outputs":{}}`
	right, wrong := open("ffeeddccbbaa99887766554433221100"), open("ffeeddccbbaa99887766554433221101")
	sealed, err := right.Encrypt(t.Context(), []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	info, err := encryption.Inspect(sealed)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", info)
	if _, err := wrong.Decrypt(t.Context(), append([]byte(nil), sealed...)); !errors.Is(err, driver.ErrNoKey) {
		t.Errorf("another key: %v", err)
	}
	if opened, err := right.Decrypt(t.Context(), sealed); err != nil || string(opened.Data) != plain {
		t.Errorf("%v", err)
	}
}
