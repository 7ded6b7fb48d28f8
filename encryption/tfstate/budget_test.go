package tfstate

import (
	"errors"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// Charges do not wrap around, not even where an int has 32 bits: one that did
// would pay into the budget.
func TestChargesDoNotWrapAround(t *testing.T) {
	for name, charge := range map[string]func(b *budget) error{
		"type":       func(b *budget) error { return b.typ(3<<20, 900) },
		"large type": func(b *budget) error { return b.typ(500<<20, 1000) },
		"set": func(b *budget) error {
			return b.set(slices.Repeat([]cty.Value{cty.True}, 1000), 150_000_000)
		},
	} {
		b := newBudget(1 << 20)
		if err := charge(b); !errors.Is(err, ErrCost) || b.left != 0 {
			t.Errorf("%s: got %v, and %d units are left", name, err, b.left)
		}
	}
}
