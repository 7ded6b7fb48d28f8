package xor_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/xor"
)

// Nothing is stored of this kind; whatever is there changes nothing.
func FuzzKey(f *testing.F) {
	encryptiontest.FuzzStored(f, encryptiontest.Build(f, xor.Block(), refs("one", "two")), keys, nil, `{}`,
		`{"a":"key_provider.static.three"}`)
}
