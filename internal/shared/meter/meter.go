// Package meter limits the costs of decoding a stranger's file. A meter is made from the size of
// a fetched file, and stays with the file from the first byte to the last value. All work that
// costs more than reading the bytes is charged before it is done, so that attacks need not be
// listed one by one.
package meter

import (
	"context"
	"errors"
	"fmt"
)

// Meter counts the remaining units of work. A unit is the cost of one plain value: about a
// microsecond and 300 bytes of memory, and never more than 600. A value takes at least two bytes
// of a file, so any number of plain values fits.
type Meter struct{ left int64 }

const (
	// Free is the number of units that a file of any size may cost: at most 48 MB, and less than
	// a tenth of a second. A lower number would refuse honest sets: package cty allocates 3 MB to
	// sort a set of 1,000 numbers, which takes 4 kB.
	Free = 80_000

	// Rebuilt is the cost of a value that is made, written and read again, for itself or on the way
	// to a value inside it. Its text is charged in addition.
	Rebuilt = 8

	bytesPerUnit = 2
)

// ErrCost means that a value is refused because decoding it would cost too much.
var ErrCost = errors.New("far more work than a file of its size should")

// New returns a meter for a file of size bytes.
func New(size int) *Meter { return Of(Free + Earned(size)) }

// Of returns a meter with the given number of units.
func Of(units int64) *Meter { return &Meter{units} }

// Earned returns the units that size bytes of a file allow in addition to [Free].
func Earned(size int) int64 { return int64(size) / bytesPerUnit }

// Add adds the units for size bytes that were fetched in addition.
func (m *Meter) Add(size int) { m.left += Earned(size) }

// Left returns the number of remaining units, which is never negative.
func (m *Meter) Left() int64 { return m.left }

// Charge takes units, and returns [ErrCost] if too few remain. The text what names the values that
// cost them, in the plural. Units have 64 bits on every machine, so that no product of sizes
// overflows.
func (m *Meter) Charge(units int64, what string) error {
	if m.left -= units; m.left < 0 {
		m.left = 0
		return fmt.Errorf("%s cost %w", what, ErrCost)
	}
	return nil
}

// Copies charges n bytes of text that are copied, and read again by the next step.
func (m *Meter) Copies(n int, what string) error { return m.Charge(1+int64(n)/64, what) }

type key struct{}

// Into returns a context that carries the meter.
func Into(ctx context.Context, m *Meter) context.Context { return context.WithValue(ctx, key{}, m) }

// For returns the meter that ctx carries or, if it carries none, a new meter for a file of size bytes.
func For(ctx context.Context, size int) *Meter {
	if m, ok := ctx.Value(key{}).(*Meter); ok {
		return m
	}
	return New(size)
}
