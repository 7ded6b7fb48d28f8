package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// A lock is what anybody has written who can write to the store.
func TestCosts(t *testing.T) {
	locks := []amplification.Grammar{{
		Name: "lock",
		Productions: []amplification.Production{
			{Name: "members"}, {Name: "length of names"}, {Name: "length of texts"}, {Name: "depth", Most: 9000},
		},
		File: func(n amplification.Counts) string {
			var text strings.Builder
			text.WriteString(`{"ID":"1","Who":"` + strings.Repeat("x", n["length of texts"]) + `"`)
			for i := range n["members"] {
				fmt.Fprintf(&text, `,"%d%s":null`, i, strings.Repeat("x", n["length of names"]))
			}
			return text.String() + `,"deep":` + strings.Repeat("[", n["depth"]) + strings.Repeat("]", n["depth"]) + "}"
		},
	}}
	amplification.Grow(t, 300, locks, func(_ *testing.T, file string) func() error {
		return func() error {
			lock, ok := ParseLock([]byte(file))
			if !ok || lock.Holder() == "" {
				return errors.New("it is no lock")
			}
			return nil
		}
	})
}
