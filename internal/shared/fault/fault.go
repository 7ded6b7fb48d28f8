package fault

import (
	"errors"
	"slices"
	"strings"
	"sync"
)

// advised is a reason with a fact.
type advised struct {
	reason error
	fact   func() Fact
}

// With returns reason with advice. It returns reason unchanged if advice is empty, and nil if reason is nil.
// In a message, the advice follows the reason after a semicolon, unless it begins with its own punctuation
// mark. Do not add advice to an error that wraps driver.ErrNoKey: if a fallback opens the file, the user need
// not do anything.
func With(reason error, advice string) error {
	if advice == "" {
		return reason
	}
	return Known(reason, Advice(advice))
}

// Known returns reason with a fact, or nil if reason is nil.
func Known(reason error, fact Fact) error {
	if reason == nil {
		return nil
	}
	return &advised{reason, func() Fact { return fact }}
}

// Later returns reason with the first fact from find that reason does not already contain, or nil if reason
// is nil. Later calls find only when the text or the facts of the error are needed, so never for a method
// whose fallback opens the file.
func Later(reason error, find func() []Fact) error {
	if reason == nil {
		return nil
	}
	return &advised{reason, sync.OnceValue(func() Fact { return firstUnsaid(reason, find()) })} // calls find once
}

func firstUnsaid(reason error, facts []Fact) Fact {
	said := In(reason)
	for _, f := range facts {
		suspect, ok := f.(Suspect)
		same := func(f Fact) bool { s, ok := f.(Suspect); return ok && s.What == suspect.What }
		odd, isOdd := errors.AsType[Odd](reason)
		if f != nil && (!ok || !slices.ContainsFunc(said, same) && !(isOdd && string(odd) == suspect.What)) {
			return f
		}
	}
	return nil
}

func (e *advised) Error() string { return e.reason.Error() }

// Unwrap returns the reason.
func (e *advised) Unwrap() error { return e.reason }

// In returns the facts in an error and in all errors that it wraps, outermost first.
func In(err error) (facts []Fact) {
	if e, ok := err.(*advised); ok { // the loop below covers the reason
		if f := e.fact(); f != nil {
			facts = append(facts, f)
		}
	}
	for _, part := range parts(err) {
		facts = append(facts, In(part)...)
	}
	return facts
}

// Find returns the first fact of type T in an error or in an error that it wraps.
func Find[T Fact](err error) (found T, ok bool) {
	for _, f := range In(err) {
		if found, ok = f.(T); ok {
			return found, true
		}
	}
	return found, false
}

// Has reports whether [Find] finds a fact of type T.
func Has[T Fact](err error) bool {
	_, ok := Find[T](err)
	return ok
}

// parts returns the errors that an error wraps directly.
func parts(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	case interface{ Unwrap() error }:
		if part := e.Unwrap(); part != nil {
			return []error{part}
		}
	}
	return nil
}

// List holds all errors found in one pass.
type List []error

func (e List) Error() string { return e.Tell(error.Error) }

// Tell returns the messages for the errors, one per line.
func (e List) Tell(text func(error) string) string {
	var lines []string
	for _, err := range e {
		lines = append(lines, text(err))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors, for [errors.Is] and [errors.As].
func (e List) Unwrap() []error { return e }

// Err returns nil for an empty list, the only error for a list of one, or else the list.
func (e List) Err() error {
	switch len(e) {
	case 0:
		return nil
	case 1:
		return e[0]
	}
	return e
}

// All returns the errors in the [List] that err is or wraps. If there is no list, it returns a list of err
// alone, or nil if err is nil.
func All(err error) (all List) {
	if err != nil && !errors.As(err, &all) {
		all = List{err}
	}
	return all
}

// Odd is a peculiarity of a text that the user wrote, such as "ends with a line break", as part of a reason.
// [Later] skips a [Suspect] with the same wording.
type Odd string

func (o Odd) Error() string { return string(o) }
