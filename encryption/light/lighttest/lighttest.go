// Package lighttest has the registry for tests that are not about services that
// hand out keys: with it comes no SDK, so they are built in a moment.
package lighttest

import (
	"context"
	"encoding/json"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
)

// Registry is that of package light, with a pbkdf2 that is quick with the files that it
// sealed, and a sops that opens none.
func Registry() encryption.Registry {
	registry := light.Registry()
	registry.KeyProviders[0] = quickBlock()
	registry.Methods = append(registry.Methods, sopsBlock())
	return registry
}

// KeyProvider is that kind of package light.
func KeyProvider(kind string) driver.Block[driver.KeyProvider] {
	b, _ := light.Registry().KeyProvider(kind)
	return b
}

// Method is that kind of package light.
func Method(kind string) driver.Block[driver.Method] {
	b, _ := light.Registry().Method(kind)
	return b
}

// sopsBlock knows a file of sops, and opens none: the real method needs what sops
// imports.
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
