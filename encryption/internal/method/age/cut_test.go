package age_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// TestCutBetweenChunks: age authenticates a file in chunks of 64 KiB. What is left of
// one after its last chunk was cut off is not taken for the whole.
func TestCutBetweenChunks(t *testing.T) {
	t.Parallel()
	const chunk, tag = 64 << 10, 16 // bytes
	identity := testdata(t, "x25519.key")
	method := newMethod(t, "identities", []string{string(identity)}, "recipients", []string{public(t, identity)})
	plain := bytes.Repeat([]byte("x"), 2*chunk+10)
	file, err := method.(driver.Encrypter).Encrypt(t.Context(), nil, bytes.Clone(plain))
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := method.Decrypt(t.Context(), nil, bytes.Clone(file)); err != nil || !bytes.Equal(opened, plain) {
		t.Fatalf("the whole file gives %d bytes, %v", len(opened), err)
	}
	last := 10 + tag
	for _, cut := range []int{1, last, last + 1, last + chunk + tag} {
		opened, err := method.Decrypt(t.Context(), nil, bytes.Clone(file[:len(file)-cut]))
		if opened != nil || !errors.Is(err, driver.ErrDamaged) {
			t.Errorf("without its last %d bytes, it gives %d bytes, %v", cut, len(opened), err)
		}
	}
}
