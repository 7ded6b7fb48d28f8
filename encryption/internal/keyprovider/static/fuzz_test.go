package static_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/static"
)

func FuzzKey(f *testing.F) {
	provider := encryptiontest.Build(f, static.Block(), map[string]cty.Value{"key": cty.StringVal("000102030405060708090a0b0c0d0e0f")})
	encryptiontest.FuzzStored(f, provider, nil, nil,
		`{"magic":"Hello world!"}`, `{"Magic":"Hello world!","x":1}`, `{"magic":"Hello world"}`, `{"magic":null}`,
	)
}
