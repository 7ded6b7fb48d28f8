// Package meter bounds what a stranger's file may cost. A meter is made from the
// size of what was fetched and goes with it, from the first byte to the last
// value. Whatever costs more than reading the bytes is charged before it is done,
// so that no list of tricks is needed.
package meter

import (
	"context"
	"errors"
	"fmt"
)

// Meter says how much work is left. The unit is what one plain value costs: about
// a microsecond and 300 bytes, and never more than 600. A value takes at least two
// bytes of a file, so that plain values always fit, however many there are.
type Meter struct{ left int64 }

const (
	// Free is what a file of any size may cost, in units: 48 MB at most, and less than
	// a tenth of a second. Less of it would refuse honest sets: to sort one of 1,000
	// numbers, which has 4 kB, package cty allocates 3 MB.
	Free = 80_000

	// Rebuilt is what a value costs that is made, written and read again: by itself,
	// or as a step of a path to it. Its text is extra.
	Rebuilt = 8

	bytesPerUnit = 2
)

// ErrCost means that something is refused because of what it would cost.
var ErrCost = errors.New("far more work than a file of its size should")

// New returns a meter for size bytes.
func New(size int) *Meter { return Of(Free + Earned(size)) }

// Of returns a meter with this many units.
func Of(units int64) *Meter { return &Meter{units} }

// Earned is what size bytes allow, beyond what is free.
func Earned(size int) int64 { return int64(size) / bytesPerUnit }

// Add is for what was fetched in addition.
func (m *Meter) Add(size int) { m.left += Earned(size) }

// Left is how many units are left, and never negative.
func (m *Meter) Left() int64 { return m.left }

// Charge takes units. What names what costs them, in the plural. Units have 64 bits
// on every machine, so that no product of sizes wraps around.
func (m *Meter) Charge(units int64, what string) error {
	if m.left -= units; m.left < 0 {
		m.left = 0
		return fmt.Errorf("%s cost %w", what, ErrCost)
	}
	return nil
}

// Copies charges for n bytes of text that are written once more, and read again
// by what comes next.
func (m *Meter) Copies(n int, what string) error { return m.Charge(1+int64(n)/64, what) }

type key struct{}

// Into hands a meter down to whoever gets the context.
func Into(ctx context.Context, m *Meter) context.Context { return context.WithValue(ctx, key{}, m) }

// For is the meter that was handed down or, without one, a new one for size bytes.
func For(ctx context.Context, size int) *Meter {
	if m, ok := ctx.Value(key{}).(*Meter); ok {
		return m
	}
	return New(size)
}
