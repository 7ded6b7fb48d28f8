package pbkdf2_test

import (
	"context"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/pbkdf2"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func attrs(pairs ...any) map[string]cty.Value { return testkit.Attrs{}.With(pairs...) }

func TestSuite(t *testing.T) {
	t.Parallel()
	const secret = "canary passphrase"
	encryptiontest.KeyProvider{
		Block: pbkdf2.Block(),
		Attrs: attrs("passphrase", secret, "iterations", 200000, "max_iterations", 200000),
		Other: attrs("passphrase", "another passphrase"),
		Bad: []map[string]cty.Value{
			attrs(),
			attrs("passphrase", "canary short"),
			attrs("passphrase", secret, "chain", "key_provider.static.x"),
			attrs("passphrase", secret, "iterations", 199999),
			attrs("passphrase", secret, "iterations", 200000.5),
			attrs("passphrase", secret, "key_length", 0),
			attrs("passphrase", secret, "key_length", -1),
			attrs("passphrase", secret, "key_length", 1025),
			attrs("passphrase", secret, "salt_length", 0),
			attrs("passphrase", secret, "hash_function", "md5"),
			attrs("passphrase", secret, "hash_function", "SHA512"),
			attrs("passphrase", secret, "max_iterations", 0),
			attrs("chain", "not an address"),
		},
		Secrets: []string{"canary"},
	}.Run(t)
}

func TestSuiteWithChain(t *testing.T) {
	if testing.Short() {
		t.Skip("TestSuite has the same checks without a chain")
	}
	t.Parallel()
	encryptiontest.KeyProvider{
		Block: pbkdf2.Block(),
		Attrs: attrs("chain", "key_provider.static.a", "iterations", 200000, "max_iterations", 200000, "hash_function", "sha256"),
		Other: attrs("chain", "key_provider.static.b"),
		Bad:   []map[string]cty.Value{attrs("chain", "key_provider.static.short")},
		Keys: func(_ context.Context, address string) ([]byte, error) {
			switch address {
			case "key_provider.static.a":
				return []byte("the upstream key"), nil
			case "key_provider.static.b":
				return []byte("another upstream key"), nil
			}
			return []byte("short"), nil
		},
	}.Run(t)
}

// BenchmarkKey derives a key with the parameters that OpenTofu writes by default.
func BenchmarkKey(b *testing.B) {
	provider := encryptiontest.Build(b, pbkdf2.Block(), attrs("passphrase", "sixteen bytes or more"))
	for b.Loop() {
		_, err := provider.Key(b.Context(), nil, []byte(`{"salt":"AAAAAAAAAAAAAAAAAAAAAA==","iterations":600000,"hash_function":"sha512","key_length":32}`))
		if err != nil {
			b.Fatal(err)
		}
	}
}
