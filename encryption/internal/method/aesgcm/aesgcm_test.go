package aesgcm_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/aesgcm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func keys(length int, fill byte) driver.Keys {
	return func(context.Context, string) ([]byte, error) { return bytes.Repeat([]byte{fill}, length), nil }
}

func TestSuite(t *testing.T) {
	t.Parallel()
	address := cty.StringVal("key_provider.static.k")
	numbers := func(n ...float64) cty.Value {
		out := make([]cty.Value, len(n))
		for i := range n {
			out[i] = cty.NumberFloatVal(n[i])
		}
		return cty.ListVal(out)
	}
	for _, length := range []int{16, 24, 32} {
		encryptiontest.Method{
			Block: aesgcm.Block(),
			Attrs: map[string]cty.Value{"keys": address, "aad": numbers(0, 7, 255)},
			Bad: []map[string]cty.Value{
				{},
				{"keys": cty.StringVal("not an address")},
				{"keys": address, "aad": numbers(256)},
				{"keys": address, "aad": numbers(-1)},
				{"keys": address, "aad": numbers(0.5)},
				{"keys": address, "aad": cty.StringVal("text")},
			},
			Keys:      keys(length, 1),
			OtherKeys: keys(length, 2),
		}.Run(t)
	}
}

func TestKeyLength(t *testing.T) {
	t.Parallel()
	method := encryptiontest.Build(t, aesgcm.Block(), testkit.Attrs{}.With("keys", "key_provider.static.k"))
	says := testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "method aes_gcm, bytes of a key")
	for _, length := range []int{0, 1, 15, 17, 31, 33, 64} {
		_, err := method.Decrypt(t.Context(), keys(length, 1), make([]byte, 64))
		says.Error(t, fmt.Sprint(length), err)
	}
}
