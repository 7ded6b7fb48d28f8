package tfstate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
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
		if err := charge(b); !errors.Is(err, ErrCost) || b.Left() != 0 {
			t.Errorf("%s: got %v, and %d units are left", name, err, b.Left())
		}
	}
}

// TestSameHash: elements of a set with one hash are compared with each other.
func TestSameHash(t *testing.T) {
	for first, want := range map[int64]error{0: nil, 1e15: ErrCost} {
		numbers := make([]cty.Value, 1000)
		for i := range numbers {
			numbers[i] = cty.NumberIntVal(first + int64(i))
		}
		if err := newBudget(1<<20).set(numbers, int64(len(numbers))); !errors.Is(err, want) {
			t.Errorf("from %d on: got %v, want %v", first, err, want)
		}
	}
}

// TestLargeSets: what is not plain may cost something in a file of any size.
func TestLargeSets(t *testing.T) {
	testkit.OneGoroutine(t)
	for typ, c := range map[string]struct {
		fits, refused int // elements; 0 for none that are tried
		element       string
	}{
		`"string"`:         {20_000, 0, `"subnet-%017[1]d"`},
		`["set","string"]`: {3000, 5000, `["%d"]`},
		`"number"`:         {6000, 10_000, `%d`},
		`["object",{"id":"string","from":"number","to":"number","cidr":"string"}]`: {4000, 0, `{"id":"sg-%08[1]d","from":%[1]d,"to":%[1]d,"cidr":"10.0.0.0/8"}`},
	} {
		of := func(n int) error {
			elements := make([]string, n)
			for i := range elements {
				elements[i] = fmt.Sprintf(c.element, i)
			}
			s := parsed(t, []byte(`{"version":4,"outputs":{"o":{"value":[`+strings.Join(elements, ",")+`],"type":["set",`+typ+`]}}}`))
			_, err := s.Outputs["o"].Value()
			return err
		}
		if err := of(c.fits); err != nil {
			t.Errorf("%d of %s: %v", c.fits, typ, err)
		}
		if c.refused > 0 && !errors.Is(of(c.refused), ErrCost) {
			t.Errorf("%d of %s are not refused", c.refused, typ)
		}
	}
}

// dear is an output that costs more than half of meter.Free, in few bytes.
const dear = `{"value":[%s],"type":["list","number"]}`

// Whoever decodes all outputs one at a time pays no more than for all at once.
//
// Promise: Cost
func TestOutputsOneAtATime(t *testing.T) {
	var file strings.Builder
	numbers := strings.Repeat("1e-999,", 39) + "1e-999"
	file.WriteString(`{"version":4,"outputs":{"plain":{"value":["a","b"],"type":["list","string"]}`)
	for i := range 50 {
		fmt.Fprintf(&file, `,"o%d":`+dear, i, numbers)
	}
	file.WriteString("}}")
	s := parsed(t, []byte(file.String()))
	decoded := func() (names []string) {
		for name, o := range s.Outputs {
			switch _, err := o.Value(); {
			case err == nil:
				names = append(names, name)
			case !errors.Is(err, ErrCost) || !strings.Contains(err.Error(), strconv.Quote(name)):
				t.Error(err)
			}
		}
		slices.Sort(names)
		return names
	}
	first := decoded()
	if len(first) != 2 || first[1] != "plain" {
		t.Errorf("got %v, want one that is dear, and the plain one", first)
	}
	for range 3 {
		if again := decoded(); !slices.Equal(again, first) {
			t.Errorf("got %v, and before %v", again, first)
		}
	}
	for name := range s.Outputs {
		if _, err := s.Values(name); err != nil {
			t.Errorf("on its own: %v", err)
		}
	}
}

// A program that reads one state again and again never runs out of budget.
func TestValueAgain(t *testing.T) {
	s := parsed(t, fmt.Appendf(nil, `{"version":4,"outputs":{"a":`+dear+`}}`, strings.Repeat("1e-999,", 39)+"1e-999"))
	for range 20 {
		if _, err := s.Outputs["a"].Value(); err != nil {
			t.Fatal(err)
		}
	}
	s = parsed(t, fmt.Appendf(nil, `{"version":4,"outputs":{"a":`+dear+`}}`, strings.Repeat("1e-999,", 39)+"true"))
	for range 20 {
		if _, err := s.Outputs["a"].Value(); err == nil || errors.Is(err, ErrCost) {
			t.Fatalf("got %v", err)
		}
	}
}
