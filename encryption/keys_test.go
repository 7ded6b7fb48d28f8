package encryption_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// ticket is a key provider that stores its key, another one for each file.
type ticket struct{}

func (ticket) Key(_ context.Context, _ driver.Keys, stored json.RawMessage) (key []byte, err error) {
	return key, json.Unmarshal(stored, &key)
}

func (ticket) NewKey(context.Context, driver.Keys) ([]byte, json.RawMessage, error) {
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	stored, err := json.Marshal(key)
	return key, stored, err
}

func (ticket) Warning() driver.Warning {
	return driver.Warning{Text: "The key is in the file."}
}

// TestKeysAreOfOneFile: two files share a key only if they hold the same of every key
// provider that it is built from. The one that the method names may store nothing.
func TestKeysAreOfOneFile(t *testing.T) {
	t.Parallel()
	registry := withBox()
	registry.KeyProviders = append(registry.KeyProviders, driver.Block[driver.KeyProvider]{
		Table: attr.Table{Name: "ticket"}, Build: func(attr.Values) (driver.KeyProvider, error) { return ticket{}, nil },
	})
	enc := newEncryption(t, registry, keys+`
key_provider "ticket" "t" {}
key_provider "xor" "x" {
	a = key_provider.static.a
	b = key_provider.ticket.t
}
method "aes_gcm" "x" { keys = key_provider.xor.x }
state { method = method.aes_gcm.x }`)
	for i := range 2 {
		file, err := enc.State().Encrypt(t.Context(), []byte(state))
		if err != nil {
			t.Fatal(err)
		}
		info, err := encryption.Inspect(file)
		if err != nil || !slices.Equal(info.KeyProviders, []string{"key_provider.static.a", "key_provider.ticket.t"}) {
			t.Errorf("file %d: %+v, %v", i+1, info, err)
		}
		opened, err := enc.State().Decrypt(t.Context(), file)
		if err != nil {
			t.Fatalf("file %d: %v", i+1, err)
		}
		if got := said(opened); got != "key_provider.ticket.t: The key is in the file." {
			t.Errorf("file %d: %q", i+1, got)
		}
	}
}
