package vectors_test

import (
	"slices"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// derivations are the keys that the tests of this package have asked for.
var derivations lighttest.Derivations

// patient returns the registry with a pbkdf2 that remembers.
func patient() encryption.Registry { return quickly(nil) }

// quickly returns the registry with a pbkdf2 that can be asked a thousand times
// about one damaged file.
func quickly(file []byte) encryption.Registry {
	registry := builtin.Registry()
	i := slices.IndexFunc(registry.KeyProviders, func(b driver.Block[driver.KeyProvider]) bool { return b.Name == "pbkdf2" })
	registry.KeyProviders[i] = derivations.Quick(registry.KeyProviders[i], file)
	return registry
}
