package aesgcm_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/aesgcm"
)

// TestAAD: a file opens only with the additional data that it was sealed with.
func TestAAD(t *testing.T) {
	t.Parallel()
	block := aesgcm.Block()
	with := func(aad cty.Value) driver.Method {
		attrs := map[string]cty.Value{"keys": cty.StringVal("key_provider.static.k"), "aad": aad}
		values, err := entries.NewEntry("method.aes_gcm.m", block.Table, attrs).Decode(block.Table, nil)
		if err != nil {
			t.Fatal(err)
		}
		method, err := block.Build(values)
		if err != nil {
			t.Fatal(err)
		}
		return method
	}
	one, none := with(cty.ListVal([]cty.Value{cty.NumberIntVal(1)})), with(cty.ListValEmpty(cty.Number))
	sealed, err := one.(driver.Encrypter).Encrypt(t.Context(), keys(32, 1), []byte("plain"))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := one.Decrypt(t.Context(), keys(32, 1), bytes.Clone(sealed)); err != nil || string(plain) != "plain" {
		t.Errorf("with it: %q, %v", plain, err)
	}
	if _, err := none.Decrypt(t.Context(), keys(32, 1), bytes.Clone(sealed)); !errors.Is(err, driver.ErrNoKey) {
		t.Errorf("without it: %v", err)
	}
}
