// Package meter limits the cost of decoding an untrusted file. A meter is created with the size of the
// fetched file, and is used until the last value is decoded. All work that costs more than reading the bytes
// is charged before it is done, so there is no need to know every possible attack.
package meter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// Meter counts the remaining units of work. A unit is the cost of one plain value: about a microsecond and
// 300 bytes of memory, but never more than 600 bytes. A value takes at least two bytes in a file, so any
// number of plain values is affordable.
type Meter struct{ left int64 }

const (
	// Free is the number of units for a file of any size. They allow at most 48 MB of memory, and less than a
	// tenth of a second. A lower number would reject legitimate sets: package cty allocates 3 MB to sort a
	// set of 1,000 numbers, which takes 4 kB in a file.
	Free = 80_000

	// Rebuilt is the cost of building a value, writing it and reading it again, either for the value itself
	// or to reach a value inside it. The text of the value is charged separately.
	Rebuilt = 8

	bytesPerUnit = 2
)

// ErrCost means that decoding a value would cost too much.
var ErrCost = errors.New("too much work for a file of this size")

// New returns a meter for a file of the given size, in bytes.
func New(size int) *Meter { return Of(Free + Earned(size)) }

// Of returns a meter with the given number of units.
func Of(units int64) *Meter { return &Meter{units} }

// Earned returns the number of units that size bytes add to [Free].
func Earned(size int) int64 { return int64(size) / bytesPerUnit }

// Add adds the units for another size bytes that were fetched.
func (m *Meter) Add(size int) { m.left += Earned(size) }

// Left returns the number of remaining units. It is never negative.
func (m *Meter) Left() int64 { return m.left }

// Charge subtracts units, and returns [ErrCost] if too few remain. The parameter what names the values that
// are charged, in the plural. The type int64 prevents overflows in products of sizes on all machines.
func (m *Meter) Charge(units int64, what string) error {
	if m.left -= units; m.left < 0 {
		m.left = 0
		return fmt.Errorf("%s need %w", what, ErrCost)
	}
	return nil
}

// Copies charges the meter for n bytes of text that are copied and then read again.
func (m *Meter) Copies(n int, what string) error { return m.Charge(1+int64(n)/64, what) }

type key struct{}

// Into returns a context that carries m.
func Into(ctx context.Context, m *Meter) context.Context { return context.WithValue(ctx, key{}, m) }

// For returns the meter that ctx carries, or else a new meter for a file of the given size, in bytes.
func For(ctx context.Context, size int) *Meter {
	if m, ok := ctx.Value(key{}).(*Meter); ok {
		return m
	}
	return New(size)
}

const (
	// perMark is the cost of one mark for a YAML parser: the node that it starts or ends, with its tokens and
	// events.
	perMark = 3

	// perDocument is the cost of a document, which gets a separate parser with its own buffers.
	perDocument = 40
)

// YAML charges for everything that a parser can create from a YAML text. The parser itself has no limit, and
// needs hundreds of bytes for each node. There is at most one node for each of the marks counted here. Marks
// inside strings are counted as well, because legitimate files contain few.
func (m *Meter) YAML(text []byte) error {
	marks := 0
	for _, mark := range []byte("\n,:-?[{#&!") {
		marks += bytes.Count(text, []byte{mark})
	}
	if err := m.Charge(perDocument+perMark*int64(marks), "its YAML collections and values"); err != nil {
		return err
	}
	return m.tags(text)
}

// tags charges for YAML tag handles, which are abbreviations. The parser compares each tag with all handles,
// and copies the expanded text for each tag.
func (m *Meter) tags(text []byte) error {
	const what = "the handles of its YAML tags"
	uses := int64(bytes.Count(text, []byte("%TAG"))) * int64(bytes.Count(text, []byte("!")))
	if err := m.Charge(uses, what); err != nil || uses == 0 { // first, so that the product below cannot overflow
		return err
	}
	return m.Charge(uses*int64(len(text))/64, what)
}
