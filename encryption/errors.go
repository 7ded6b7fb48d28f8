package encryption

import (
	"errors"
	"fmt"
	"strings"
)

// Attempt is a method that did not open a file.
type Attempt struct {
	Method string // address
	Err    error
}

// Step is where opening a file failed.
type Step string

// The steps of opening a file, in order.
const (
	StepConfiguration Step = "configuration"
	StepEnvelope      Step = "envelope"
	StepKey           Step = "key"
	StepDecrypt       Step = "decrypt"
)

// Error says at which step opening or sealing a file failed, and what was tried
// before. Its text holds no plaintext and no key.
type Error struct {
	Step     Step
	Attempts []Attempt // every method that was tried, in order
	Err      error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Err.Error())
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "\n  - %s: %v", a.Method, a.Err)
	}
	return b.String()
}

// Unwrap returns the reason and those of all attempts.
func (e *Error) Unwrap() []error {
	errs := []error{e.Err}
	for _, a := range e.Attempts {
		errs = append(errs, a.Err)
	}
	return errs
}

// failure is an error at the step of the last attempt.
func failure(attempts []Attempt, text string) error {
	return &Error{Step: stepOf(attempts[len(attempts)-1].Err), Attempts: attempts, Err: errors.New(text)}
}

func stepOf(err error) Step {
	if e, ok := errors.AsType[*thenError](err); ok {
		return e.step
	}
	if _, ok := errors.AsType[*contentError](err); ok {
		return StepEnvelope
	}
	if _, ok := errors.AsType[*KeyError](err); ok {
		return StepKey
	}
	return StepDecrypt
}

// isForAnother reports whether the next method may open the file.
func isForAnother(err error) bool {
	_, other := errors.AsType[*contentError](err)
	return other || errors.Is(err, ErrNoKey)
}

// describeAll is the text for attempts that all failed with isForAnother.
func describeAll(attempts []Attempt) string {
	if errors.Is(attempts[len(attempts)-1].Err, ErrNoKey) {
		return "no method in effect has the key for this file:"
	}
	return "the file was decrypted, and what is inside is not what was expected:"
}
