package sops_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	filippoage "filippo.io/age"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/method/sops"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// BenchmarkDecrypt opens a state of 1 MiB: one output of that size, or many
// small ones.
func BenchmarkDecrypt(b *testing.B) {
	id, err := filippoage.GenerateX25519Identity()
	if err != nil {
		b.Fatal(err)
	}
	many := map[string]any{}
	for i := range 10_000 {
		many["output_"+strconv.Itoa(i)] = map[string]string{"type": "string", "value": strings.Repeat("x", 60)}
	}
	for name, outputs := range map[string]map[string]any{
		"one":  {"o": map[string]string{"type": "string", "value": strings.Repeat("x", 1<<20)}},
		"many": many,
	} {
		b.Run(name, func(b *testing.B) {
			plain, err := json.Marshal(map[string]any{"version": 4, "outputs": outputs})
			if err != nil {
				b.Fatal(err)
			}
			dataKey := newDataKey()
			file := sealed{plain: string(plain), dataKey: dataKey, groups: groupOf(ageKey(b, id.Recipient().String(), dataKey))}.file(b)
			m := kindtest.Build(b, sops.Block(), attrs{"age_identities": texts(id.String())}, nil)
			b.ReportAllocs()
			b.SetBytes(int64(len(plain)))
			for b.Loop() {
				if _, err := m.Decrypt(b.Context(), nil, bytes.Clone(file)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
