package fault

import (
	"errors"
	"slices"
	"strings"
	"sync"
)

// advised is a reason with a fact beside it.
type advised struct {
	reason error
	fact   func() Fact
}

// With returns the reason with an advice beside it; the reason itself for "", and nil for no
// reason. The advice follows the reason behind a semicolon, unless it begins with a comma or a
// colon. An error that wraps driver.ErrNoKey has its advice nowhere else: a fallback that opens
// the file shows that there is nothing to do.
func With(reason error, advice string) error {
	if advice == "" {
		return reason
	}
	return Known(reason, Advice(advice))
}

// Known returns the reason with a fact beside it, and nil for no reason.
func Known(reason error, fact Fact) error {
	if reason == nil {
		return nil
	}
	return &advised{reason, func() Fact { return fact }}
}

// Later returns the reason with the first fact beside it that the reason does not say itself.
// The facts are found if somebody asks for the text of the error, and never if nobody does, as
// for a method whose fallback opens the file.
func Later(reason error, find func() []Fact) error {
	if reason == nil {
		return nil
	}
	return &advised{reason, sync.OnceValue(func() Fact { return firstUnsaid(reason, find()) })} // a text asks several times
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

// parts are the errors that an error wraps itself.
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

// List has the errors that are found in one pass.
type List []error

func (e List) Error() string { return e.Tell(error.Error) }

// Tell puts each error on a line of its own.
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

// All returns the errors of the list that an error is or wraps; another error alone, and none
// for nil.
func All(err error) (all List) {
	if err != nil && !errors.As(err, &all) {
		all = List{err}
	}
	return all
}

// Odd is a peculiarity of a text that somebody gave, such as "ends with a line break", as a part
// of a reason. A [Suspect] with the same words is not said again.
type Odd string

func (o Odd) Error() string { return string(o) }
