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

// With returns the reason with advice. It returns the reason itself if advice is "", and nil if
// reason is nil. The advice follows the reason after a semicolon, unless it begins with a
// punctuation mark of its own. An error that wraps driver.ErrNoKey must not have advice in its
// text: if a fallback opens the file, there is nothing to do.
func With(reason error, advice string) error {
	if advice == "" {
		return reason
	}
	return Known(reason, Advice(advice))
}

// Known returns the reason with a fact, and nil if reason is nil.
func Known(reason error, fact Fact) error {
	if reason == nil {
		return nil
	}
	return &advised{reason, func() Fact { return fact }}
}

// Later returns the reason with the first fact of find that the reason does not contain already,
// and nil if reason is nil. Find is called when the text or the facts of the error are needed, so
// it is never called for a method whose fallback opens the file.
func Later(reason error, find func() []Fact) error {
	if reason == nil {
		return nil
	}
	return &advised{reason, sync.OnceValue(func() Fact { return firstUnsaid(reason, find()) })} // once for all calls
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

// In returns the facts of an error and of all errors that it wraps, the outermost first.
func In(err error) (facts []Fact) {
	if e, ok := err.(*advised); ok { // the loop looks at the reason
		if f := e.fact(); f != nil {
			facts = append(facts, f)
		}
	}
	for _, part := range parts(err) {
		facts = append(facts, In(part)...)
	}
	return facts
}

// Find returns the first fact of a type in an error and in the errors that it wraps.
func Find[T Fact](err error) (found T, ok bool) {
	for _, f := range In(err) {
		if found, ok = f.(T); ok {
			return found, true
		}
	}
	return found, false
}

// Has reports whether [Find] finds a fact of a type.
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

// List holds the errors that one pass finds.
type List []error

func (e List) Error() string { return e.Tell(error.Error) }

// Tell returns the texts of the errors, each on a line of its own.
func (e List) Tell(text func(error) string) string {
	var lines []string
	for _, err := range e {
		lines = append(lines, text(err))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors, for [errors.Is] and [errors.As].
func (e List) Unwrap() []error { return e }

// Err returns nil for an empty list, and the error itself for a list of one.
func (e List) Err() error {
	switch len(e) {
	case 0:
		return nil
	case 1:
		return e[0]
	}
	return e
}

// All returns the errors of the [List] that err is or wraps. Without a list, it returns err alone,
// and nil if err is nil.
func All(err error) (all List) {
	if err != nil && !errors.As(err, &all) {
		all = List{err}
	}
	return all
}

// Odd is a peculiarity of a user's text, such as "ends with a line break", as a part of a reason.
// [Later] leaves out a [Suspect] with the same words.
type Odd string

func (o Odd) Error() string { return string(o) }
