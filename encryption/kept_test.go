package encryption_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// TestKeepKeys: a target that keeps its keys encrypts once more when they cannot be made any
// longer; any other does not.
//
// Promise: Runs under wrap
func TestKeepKeys(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	restore := func() {
		if err := os.WriteFile(key, []byte("0123456789abcdef"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	restore()
	target := newEncryption(t, lighttest.Registry(), `key_provider "static" "k" { key_file = "`+filepath.ToSlash(key)+`" }
method "aes_gcm" "m" { keys = key_provider.static.k }
state { method = method.aes_gcm.m }`).State()
	kept := target.KeepKeys()
	for name, c := range map[string]struct {
		target interface {
			Encrypt(ctx context.Context, plain []byte) ([]byte, error)
		}
		works bool
	}{"kept": {kept, true}, "not kept": {target, false}, "kept by another": {target.KeepKeys(), false}} {
		restore()
		if name != "kept by another" {
			if _, err := c.target.Encrypt(t.Context(), []byte(state)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(key); err != nil {
			t.Fatal(err)
		}
		sealed, err := c.target.Encrypt(t.Context(), []byte(state))
		if (err == nil) != c.works {
			t.Errorf("%s: %v", name, err)
		}
		restore()
		if opened, err := target.Decrypt(t.Context(), sealed); c.works && (err != nil || string(opened.Data) != state) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
