package azurevault_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault/azurevaulttest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
)

// What is not the stored ciphertext opens to nothing, and decrypt with the key
// is all that is asked for.
func FuzzKey(f *testing.F) {
	master := bytes.Repeat([]byte{7}, 32)
	s := &azurevaulttest.Service{AES: map[string][]byte{"aes256": master}}
	a := working().With("vault_key_name", "aes256", "symmetric", true, "symmetric_key_size", 256)
	provider := encryptiontest.Build(f, azurevault.BlockWith(azurevault.Options{Transport: s.Start(f)}), a)
	f.Cleanup(func() {
		for _, call := range s.Calls() {
			if !strings.HasPrefix(call, "decrypt aes256") {
				f.Errorf("it asked for %q", call)
			}
		}
	})

	// As a vault would seal, if it had a constant for a nonce: each worker of
	// the fuzzer has to make the same.
	block, err := aes.NewCipher(master)
	if err != nil {
		f.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		f.Fatal(err)
	}
	iv, own := make([]byte, aead.NonceSize()), []byte("the vault's own")
	box := aead.Seal(nil, iv, bytes.Repeat([]byte{1}, 32), own)
	stored, err := json.Marshal(map[string]any{
		"ciphertext": box[:32], "iv": iv, "authentication_tag": box[32:], "additional_authenticated_data": own,
		"key_version": azurevaulttest.Version, "algo": "A256GCM",
	})
	if err != nil {
		f.Fatal(err)
	}
	encryptiontest.FuzzStored(f, provider, nil, nil, string(stored),
		strings.Replace(string(stored), "A256GCM", "A128GCM", 1),
		strings.Replace(string(stored), "A256GCM", "A256CBC", 1),
		strings.Replace(string(stored), azurevaulttest.Version, "../../secrets/x", 1),
		strings.Replace(string(stored), azurevaulttest.Version, strings.Repeat("0", 32), 1),
		`{"ciphertext":"AA==","key_version":"","algo":""}`,
		`{"ciphertext":"AA==","key_version":"0","algo":"RSA-OAEP-256"}`,
	)
}
