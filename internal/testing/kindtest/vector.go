package kindtest

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// Registry returns a registry with these key providers, and aes_gcm.
func Registry(keyProviders ...driver.Block[driver.KeyProvider]) encryption.Registry {
	return encryption.Registry{
		KeyProviders: keyProviders,
		Methods:      []driver.Block[driver.Method]{lighttest.Method("aes_gcm")},
	}
}

// Target returns the target for states, for settings and an environment, which may be nil.
func Target(t *testing.T, registry encryption.Registry, settings string, env attr.LookupEnv) encryption.Target {
	t.Helper()
	enc, err := encryption.Load(registry, encryption.Code(settings, "test"), encryption.Environment(env))
	if err != nil {
		t.Fatal(err)
	}
	return enc.State()
}
