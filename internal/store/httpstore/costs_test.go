package httpstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// What a server answers is read for its label.
func TestCosts(t *testing.T) {
	states := []amplification.Grammar{{
		Name: "state",
		Productions: []amplification.Production{
			{Name: "members"}, {Name: "length of names"}, {Name: "length of texts"}, {Name: "depth", Most: 9000},
		},
		File: func(n amplification.Counts) string {
			var text strings.Builder
			text.WriteString(`{"serial":1,"lineage":"` + strings.Repeat("x", n["length of texts"]) + `"`)
			for i := range n["members"] {
				fmt.Fprintf(&text, `,"%d%s":null`, i, strings.Repeat("x", n["length of names"]))
			}
			return text.String() + `,"deep":` + strings.Repeat("[", n["depth"]) + strings.Repeat("]", n["depth"]) + "}"
		},
	}}
	amplification.Grow(t, 300, states, func(_ *testing.T, file string) func() error {
		return func() error {
			label([]byte(file))
			return nil
		}
	})
}
