// Package fact has what an error knows beside its reason, which is a line that says what is
// so: values, from which internal/explain says what to do, because that depends on who reads
// the error, and advice that does not.
package fact

import (
	"errors"
	"slices"
	"strings"
	"sync"
)

// Fact is a value of one of the types of this package.
type Fact any

// Error is an error with facts beside it. Its text is that of the reason.
type Error struct {
	reason error
	find   func() []Fact
}

// With returns the reason with facts beside it, and nil for none.
func With(reason error, facts ...Fact) error { return Later(reason, func() []Fact { return facts }) }

// Later is [With] for facts that are only about words: they are found if somebody explains
// the error, and never if nobody does, as that of a method whose fallback opens the file.
func Later(reason error, find func() []Fact) error {
	if reason == nil {
		return nil
	}
	return &Error{reason, sync.OnceValue(func() []Fact { return unsaid(reason, find()) })} // somebody who explains asks several times
}

// unsaid leaves out each [Suspect] about what the reason, or a fact before it, says to be odd.
func unsaid(reason error, facts []Fact) (left []Fact) {
	said := In(reason)
	isSaid := func(what string) bool {
		odd, ok := errors.AsType[Odd](reason)
		same := func(f Fact) bool { s, ok := f.(Suspect); return ok && s.What == what }
		return ok && string(odd) == what || slices.ContainsFunc(said, same) || slices.ContainsFunc(left, same)
	}
	for _, f := range facts {
		if s, ok := f.(Suspect); !ok || !isSaid(s.What) {
			left = append(left, f)
		}
	}
	return left
}

func (e *Error) Error() string { return e.reason.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.reason }

// Facts are those beside the reason, in the order in which they are said.
func (e *Error) Facts() []Fact { return e.find() }

// In returns the facts of an error and of all that it wraps, the outermost first.
func In(err error) (facts []Fact) {
	if e, ok := err.(*Error); ok { // what it wraps comes below
		facts = e.Facts()
	}
	for _, part := range Parts(err) {
		facts = append(facts, In(part)...)
	}
	return facts
}

// Has reports whether there is a fact of a type in an error, or in what it wraps.
func Has[T Fact](err error) bool {
	_, ok := Find[T](err)
	return ok
}

// Find returns the first fact of a type in an error, and in what it wraps.
func Find[T Fact](err error) (found T, ok bool) {
	for _, f := range In(err) {
		if found, ok = f.(T); ok {
			return found, true
		}
	}
	return found, false
}

// Parts are the errors that an error wraps itself.
func Parts(err error) []error {
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

// Odd is what is odd about a text that somebody gave, such as "ends with a line break", as
// a part of the reason. A [Suspect] that is the same is not said again.
type Odd string

func (o Odd) Error() string { return string(o) }

// Indented is a text of several lines in a list: what begins a line of its own stays below
// what the list has it for.
func Indented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i > 0 && line != "" && line[0] != ' ' {
			lines[i] = "    " + line
		}
	}
	return strings.Join(lines, "\n")
}

// List has the errors that are found in one pass.
type List []error

func (e List) Error() string { return errors.Join(e...).Error() }

// Unwrap returns them, for [errors.Is] and [errors.As].
func (e List) Unwrap() []error { return e }

// All are the errors of the list that an error is or wraps; another error alone, and none for nil.
func All(err error) (all List) {
	if err != nil && !errors.As(err, &all) {
		all = List{err}
	}
	return all
}

// Err returns nil if there are none, and the error itself if it is the only one.
func (e List) Err() error {
	switch len(e) {
	case 0:
		return nil
	case 1:
		return e[0]
	}
	return e
}
