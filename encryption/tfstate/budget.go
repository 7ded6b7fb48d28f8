package tfstate

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// budget limits the cost of decoding several values together. All work beyond reading the text is
// charged before it is done.
//
// The charges were measured for decoding and sending together, and rounded up. TestHostileFiles and
// "make bench" compare the costs of hostile and honest files.
type budget struct{ *meter.Meter }

// ErrCost means that decoding and sending a value would cost too much. The limit depends on the
// size of all values that are read together. The other values can still be read without this one.
var ErrCost = meter.ErrCost

// newBudget returns the budget for values that take size bytes of the file, including their types.
func newBudget(size int) *budget { return &budget{meter.New(size)} }

// shared holds the types of a state's outputs, and the costs of decoding outputs one at a time.
// Each output may cost as much as its own size allows. In addition, all outputs together may cost
// [meter.Free].
type shared struct {
	types sync.Map // maps the JSON text of a type to its cty.Type

	mu   sync.Mutex
	used int64            // how much of the free budget is used
	paid map[string]int64 // costs of the outputs that used part of the free budget, by name
}

// value decodes an output. Only the first time is charged, so a program may decode the same output
// again and again.
func (s *shared) value(o Output) (cty.Value, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cost, ok := s.paid[o.name]; ok {
		return o.valueWithin(&budget{meter.Of(cost)})
	}
	own := meter.Earned(o.Size())
	before := own + meter.Free - s.used
	b := &budget{meter.Of(before)}
	v, err := o.valueWithin(b)
	cost := before - b.Left()
	s.used += max(0, cost-own)
	if cost > own && !errors.Is(err, ErrCost) {
		if s.paid == nil {
			s.paid = map[string]int64{}
		}
		s.paid[o.name] = cost
	}
	return v, err
}

// number charges for a number that becomes text when it is sent. The digits of a fraction are found
// by repeated division, so the work grows with the square of the number of digits.
func (b *budget) number(digits int, fraction bool) error {
	units := int64(digits) / 16
	if fraction {
		units += 50 + int64(digits)*int64(digits)/1000
	}
	return b.Charge(units, "its long numbers")
}

// text charges for a text by its length, because the elements of a set are read repeatedly.
func (b *budget) text(length int) error { return b.Charge(int64(length)/16, "its long texts") }

// typ charges for a type by the length and the nesting of its JSON, because reading, comparing and
// sending a type copies the rest of it at each level. It returns an error if the nesting is too
// deep.
func (b *budget) typ(length, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("it %w", errNesting)
	}
	return b.Charge(1+int64(length)/16+int64(length)*int64(depth)/50, "its types")
}

// vacant charges for a value for which the file contains no data: a null, an empty collection or an
// absent attribute. The whole type counts, because each surrounding collection compares the type
// with others.
func (b *budget) vacant(ty cty.Type, depth int) error {
	return b.Charge(int64(weight(ty))*int64(depth)/50, "its nulls, empty collections and absent attributes")
}

// absent charges for an attribute that the file leaves out, and for its name.
func (b *budget) absent(name string, ty cty.Type, depth int) error {
	if err := b.vacant(ty, depth); err != nil {
		return err
	}
	return b.Charge(1+int64(len(name))/64, "its absent attributes")
}

// wrapped charges for a value of dynamic type, whose text is read a second time.
func (b *budget) wrapped(length int) error {
	return b.Charge(1+int64(length)/32, "its values of dynamic type")
}

// set charges for a set. Work is the cost of decoding all its elements. The elements are hashed,
// compared if their hashes are equal, and sorted each time the set is iterated. Package cty hashes
// only ten digits of a number, so many long numbers have the same hash.
func (b *budget) set(values []cty.Value, work int64) error {
	n := int64(len(values))
	sorting := work * int64(bits.Len(uint(len(values))))
	switch typ := values[0].Type(); {
	case typ == cty.String:
		sorting /= 3
	case typ.IsSetType(): // hashing a set iterates it
		sorting = 2*work + 2*sorting/3
	case !typ.IsPrimitiveType(): // each lookup hashes the elements again
		sorting = 2*work + sorting/2
	}
	const what = "the elements of its sets"
	if err := b.Charge(sorting, what); err != nil {
		return err
	}
	each := work/n + 1
	sameHash := make(map[int]int64, len(values))
	for _, v := range values {
		hash := v.Hash()
		if err := b.Charge(20*each*sameHash[hash], what); err != nil {
			return err
		}
		sameHash[hash]++
	}
	return nil
}
