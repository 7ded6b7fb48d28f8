// Package lighttest provides a registry for tests that need no key services. It links no SDK, so
// such tests build quickly.
package lighttest

import (
	"context"
	"encoding/json"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
)

// Registry returns the registry of package light, with two changes. Its pbkdf2 is quick with the
// files that it sealed, and it has a sops method that opens no files.
func Registry() encryption.Registry {
	registry := light.Registry()
	registry.KeyProviders[0] = quickBlock()
	registry.Methods = append(registry.Methods, sopsBlock())
	return registry
}

// KeyProvider returns a kind of key provider of package light.
func KeyProvider(kind string) driver.Block[driver.KeyProvider] {
	b, _ := light.Registry().KeyProvider(kind)
	return b
}

// Method returns a kind of method of package light.
func Method(kind string) driver.Block[driver.Method] {
	b, _ := light.Registry().Method(kind)
	return b
}

// sopsBlock returns a method that recognizes files of sops but opens none. The real method needs
// the packages that sops imports.
func sopsBlock() driver.Block[driver.Method] {
	return driver.Block[driver.Method]{
		Table: attr.Table{Name: "sops", Doc: "Files of sops, which it does not open."},
		Build: func(attr.Values) (driver.Method, error) { return closed{}, nil },
		OwnFormat: func(file []byte) bool {
			var document struct{ Sops json.RawMessage }
			return json.Unmarshal(file, &document) == nil && document.Sops != nil
		},
	}
}

type closed struct{}

func (closed) Decrypt(context.Context, driver.Keys, []byte) ([]byte, error) {
	return nil, encryption.ErrNoKey
}
