package encryption_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

const derivable = `
key_provider "static" "root" {
	key        = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	exportable = true
}
key_provider "static" "kept" { key = "000102030405060708090a0b0c0d0e0f" }
key_provider "static" "short" {
	key        = "0001"
	exportable = true
}
key_provider "pbkdf2" "main" {
	passphrase = "correct-horse-battery-staple"
	iterations = 200000
	exportable = true
}
key_provider "pbkdf2" "documented" {
	passphrase = "correct horse battery staple"
	exportable = true
}
key_provider "pbkdf2" "documented_sha256" {
	passphrase    = "correct horse battery staple"
	iterations    = 200000
	hash_function = "sha256"
	exportable    = true
}
key_provider "pbkdf2" "small" {
	passphrase = "correct-horse-battery-staple"
	key_length = 8
	exportable = true
}
key_provider "pbkdf2" "chained" {
	chain         = key_provider.static.root
	iterations    = 200000
	hash_function = "sha256"
	exportable    = true
}
key_provider "pbkdf2" "on_pbkdf2" {
	chain      = key_provider.pbkdf2.main
	exportable = true
}`

// The last four are the vectors of the documentation. All were computed with
// other programs: Python's hashlib.pbkdf2_hmac, and an HKDF written after RFC
// 5869 with its hmac module.
var derivedKeys = []struct {
	keyProvider, info, salt, wrapped, key string
	length                                int
}{
	{"key_provider.static.root", "backup", "", "", "f22d91157d798b22401e104b7199bed931070301f77890dde9329e17bc7d8219", 32},
	{"key_provider.static.root", "backup", "", "", "f22d91157d798b22401e104b7199bed9", 16},
	{"key_provider.static.root", "other", "", "", "ca63aaf002b4d099e44cbc9542a93d3deb2e91be32597825be1d41c78b92fe7f" +
		"3472613e89ce89cabb0559169517535ab1cfc90a682839eabd14e5d3ede73f10", 64},
	{"key_provider.pbkdf2.main", "backup", "0123456789abcdef", "", "6246a4c33cfb0e814ff79fa25dfafd779d12ee267354bf90be3823e00ea7ec43", 32},
	{"key_provider.pbkdf2.main", "backup", "", `{"salt":"MDEyMzQ1Njc4OWFiY2RlZg==","iterations":200000,"hash_function":"sha256","key_length":16}`, "1e953ddf15bce7cc74d9716012cc43d328be0b73ca87eaf0a6ff78194c1c0c94", 32},
	{"key_provider.pbkdf2.chained", "backup", "0123456789abcdef", "", "e41a9682cb98a92cdd84a127adde4fc0f6d0c2b48776d8222df043782959b98c", 32},
	{"key_provider.static.root", "backup", "", "", "f22d91157d798b22401e104b7199bed931070301f77890dde9329e17bc7d8219", 32},
	{"key_provider.static.root", "signing", "", "", "870f87635baa3bff5e2d7eed5a4fcd08", 16},
	{"key_provider.pbkdf2.documented", "backup", "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f", "",
		"97688685156a8b1c2ef6501a71d04c56f208df9ae825be1204771e0d2b9c1111", 32},
	{"key_provider.pbkdf2.documented_sha256", "backup", "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f", "",
		"dd806e52e30dd72a14e599bc923f404885ec935bcf729c0dd2056a7676fa77ad", 32},
}

func TestDeriveKey(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	enc := newEncryption(t, lighttest.Registry(), derivable)
	for _, c := range derivedKeys {
		d := encryption.Derivation{Info: c.info, Length: c.length}
		if c.salt != "" {
			d.Salt = []byte(c.salt)
		}
		if c.wrapped != "" {
			d.Wrapped = json.RawMessage(c.wrapped)
		}
		key, err := enc.DeriveKey(context.Background(), c.keyProvider, d)
		if err != nil || hex.EncodeToString(key) != c.key {
			t.Errorf("%s, %q: got %x, %v; want %s", c.keyProvider, c.info, key, err, c.key)
		}
	}
}

func TestDeriveKeyRefuses(t *testing.T) {
	t.Parallel()
	enc := newEncryption(t, lighttest.Registry(), derivable)
	salt, says := []byte("0123456789abcdef"), golden(t, "derived keys")
	wrapped := func(s string) json.RawMessage { return json.RawMessage(s) }
	for name, c := range map[string]struct {
		address string
		d       encryption.Derivation
	}{
		"no info":             {"key_provider.static.root", encryption.Derivation{Length: 32}},
		"too short":           {"key_provider.static.root", encryption.Derivation{Info: "x", Length: 15}},
		"too long":            {"key_provider.static.root", encryption.Derivation{Info: "x", Length: 65}},
		"not exportable":      {"key_provider.static.kept", encryption.Derivation{Info: "x", Length: 32}},
		"not configured":      {"key_provider.static.rot", encryption.Derivation{Info: "x", Length: 32}},
		"short static key":    {"key_provider.static.short", encryption.Derivation{Info: "x", Length: 32}},
		"static with a salt":  {"key_provider.static.root", encryption.Derivation{Info: "x", Length: 32, Salt: salt}},
		"pbkdf2 without salt": {"key_provider.pbkdf2.main", encryption.Derivation{Info: "x", Length: 32}},
		"salt and wrapped":    {"key_provider.pbkdf2.main", encryption.Derivation{Info: "x", Length: 32, Salt: salt, Wrapped: wrapped(`{}`)}},
		"short salt":          {"key_provider.pbkdf2.main", encryption.Derivation{Info: "x", Length: 32, Salt: salt[:15]}},
		"short key":           {"key_provider.pbkdf2.small", encryption.Derivation{Info: "x", Length: 32, Salt: salt}},
		"weak wrapped key": {"key_provider.pbkdf2.main", encryption.Derivation{Info: "x", Length: 32,
			Wrapped: wrapped(`{"salt":"MDEyMzQ1Njc4OWFiY2RlZg==","iterations":199999,"hash_function":"sha256","key_length":16}`)}},
		"short wrapped salt": {"key_provider.pbkdf2.main", encryption.Derivation{Info: "x", Length: 32,
			Wrapped: wrapped(`{"salt":"MDE=","iterations":200000,"hash_function":"sha256","key_length":16}`)}},
		"excessive wrapped": {"key_provider.pbkdf2.main", encryption.Derivation{Info: "x", Length: 32,
			Wrapped: wrapped(`{"salt":"MDEyMzQ1Njc4OWFiY2RlZg==","iterations":2000000000,"hash_function":"sha256","key_length":16}`)}},
		"chain without salt": {"key_provider.pbkdf2.on_pbkdf2", encryption.Derivation{Info: "x", Length: 32, Salt: salt}},
	} {
		_, err := enc.DeriveKey(context.Background(), c.address, c.d)
		says.Error(t, name, err)
	}
}
