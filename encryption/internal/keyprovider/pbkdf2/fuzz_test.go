package pbkdf2_test

import (
	"bytes"
	stdpbkdf2 "crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"hash"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/pbkdf2"
)

// A key is the one of the parameters that are stored, and these are within the
// limits.
func FuzzKey(f *testing.F) {
	const passphrase, limit = "a passphrase of the fuzzer", 2000
	provider := encryptiontest.Build(f, pbkdf2.Block(), attrs("passphrase", passphrase, "max_iterations", limit))
	check := func(t *testing.T, stored, key []byte) {
		t.Helper()
		var m struct {
			Salt         []byte `json:"salt"`
			Iterations   int    `json:"iterations"`
			HashFunction string `json:"hash_function"`
			KeyLength    int    `json:"key_length"`
		}
		if err := json.Unmarshal(stored, &m); err != nil {
			t.Fatalf("%q gives a key: %v", stored, err)
		}
		hashes := map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New}
		newHash := hashes[m.HashFunction]
		if newHash == nil || len(m.Salt) == 0 || m.Iterations < 1 || m.Iterations > limit || m.KeyLength < 1 || m.KeyLength > 1024 {
			t.Fatalf("%q gives a key", stored)
		}
		want, err := stdpbkdf2.Key(newHash, passphrase, m.Salt, m.Iterations, m.KeyLength)
		if err != nil || !bytes.Equal(key, want) {
			t.Errorf("%q gives the key %x, not %x: %v", stored, key, want, err)
		}
	}
	encryptiontest.FuzzStored(f, provider, nil, check,
		`{"salt":"AAECAwQFBgcICQoLDA0ODw==","iterations":1000,"hash_function":"sha512","key_length":32}`,
		`{"salt":"AA==","iterations":1,"hash_function":"sha256","key_length":65}`,
		`{"salt":"AA==","iterations":2000,"hash_function":"sha256","key_length":33}`,
		`{"salt":"AA==","iterations":9223372036854775807,"hash_function":"sha256","key_length":9223372036854775807}`,
		`{"salt":"AA==","iterations":-1,"hash_function":"sha512","key_length":-9223372036854775808}`,
		`{"salt":"AA==","iterations":1e3,"hash_function":"sha512","key_length":32}`,
		`{"salt":"AA==","iterations":1,"hash_function":"md5","key_length":32}`,
		`{"SALT":"AQ==","iterations":1,"iterations":2,"hash_function":"sha512","key_length":32,"salt":"AA=="}`,
	)
}
