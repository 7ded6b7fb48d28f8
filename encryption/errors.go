package encryption

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// These are the reasons that a program can tell apart with [errors.Is]. An error wraps at most
// one of them; most other errors concern the settings or a key service.
var (
	// ErrNoKey means that the settings have no key for this file: a wrong key, nothing
	// stored, or a key service that denies the key, has disabled it or does not know it. A
	// changed bit of the ciphertext cannot be told from a wrong key. If a key provider or a
	// method returns it, the next method may be tried, so a timeout, a network failure or a
	// wrong setting must not wrap it.
	ErrNoKey = driver.ErrNoKey

	// ErrNotConfigured means that a file is encrypted and no method for it is selected or, when
	// a file is sealed, that no method is selected.
	ErrNotConfigured = errors.New("no method for this file")

	// ErrPlaintext means that the file is not encrypted, and that the settings do
	// not allow that.
	ErrPlaintext = errors.New("unencrypted data is refused")

	// ErrDamaged means that the file or its plaintext does not have the form that it should
	// have: it is empty or cut off, its envelope is broken, or the serial or the lineage in the
	// envelope differs from the one in the plaintext.
	ErrDamaged = driver.ErrDamaged

	// ErrOtherKind means that the file is a plan and a state is required, or the other
	// way round.
	ErrOtherKind = errors.New("the file is of another kind")

	// ErrBackendRecord means that the file is .terraform/terraform.tfstate, which names a
	// backend and holds no state. That backend keeps the state.
	ErrBackendRecord = errors.New("the file is the record of a backend")
)

// reasonError wraps a reason whose text is not part of its own text.
type reasonError struct {
	error
	reason error
}

func (e *reasonError) Unwrap() []error { return []error{e.error, e.reason} }

// Tell returns the text of the error, without the reason.
func (e *reasonError) Tell(text func(error) string) string { return text(e.error) }

// because returns an error with a text of its own that wraps reason.
func because(reason error, format string, args ...any) error {
	return &reasonError{fmt.Errorf(format, args...), reason}
}

// Attempt describes a method that did not open a file.
type Attempt struct {
	Method string // the address of the method
	Err    error  // the reason; if it wraps ErrNoKey, the next method was tried
}

// Step is a step of opening or sealing a file.
type Step string

// These are the steps of opening a file, in order.
const (
	StepConfiguration Step = "configuration" // a method does not exist or cannot be used, or enforced forbids it
	StepEnvelope      Step = "envelope"      // the file is damaged, or the settings do not cover files of its kind
	StepKey           Step = "key"           // a key provider gave no key; Err names it
	StepDecrypt       Step = "decrypt"       // a method failed to open or seal, or gave plaintext of a wrong kind
)

// Error is a failure to open or seal a file, with the step that failed and the methods that
// were tried. Its text contains no plaintext and no key.
type Error struct {
	Step     Step
	Attempts []Attempt // every method that was tried, in order
	Err      error     // the reason; the text of Error adds the attempts
}

func (e *Error) Error() string { return e.Tell(func(err error) string { return fmt.Sprint(err) }) }

// Tell returns the text of Error with the given texts for the reason and the errors of the attempts.
func (e *Error) Tell(text func(error) string) string {
	var b strings.Builder
	if e.Err != nil {
		b.WriteString(text(e.Err))
	}
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "\n  - %s: %s", a.Method, indented(text(a.Err)))
	}
	return b.String()
}

// indented returns a text of several lines for an entry of a list, with its further lines below the entry.
func indented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i > 0 && line != "" && line[0] != ' ' {
			lines[i] = "    " + line
		}
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns Err. It wraps the error of the last attempt if that attempt was final.
func (e *Error) Unwrap() error { return e.Err }

// failure returns an error at the step of the last attempt. If ctx has ended, the reason is the
// error of ctx, and not the error of the attempt, because a program that is stopped may claim that
// it has no key.
func failure(ctx context.Context, attempts []Attempt, text string) error {
	last := attempts[len(attempts)-1].Err
	step := stepOf(last)
	if err := ended(ctx); err != nil {
		return &Error{Step: step, Attempts: attempts, Err: fmt.Errorf("%w:", err)} //nolint:staticcheck // the attempts follow
	}
	return &Error{Step: step, Attempts: attempts, Err: &reasonError{errors.New(text), last}}
}

// ended returns an error if ctx has ended. It wraps the error of ctx, and the cause if the
// program gave one.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	text := "the call was cancelled"
	if errors.Is(err, context.DeadlineExceeded) {
		text = "the deadline of the call has passed"
	}
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		return because(err, "%s (%w)", text, cause)
	}
	return because(err, "%s", text)
}

func stepOf(err error) Step {
	if e, ok := errors.AsType[*thenError](err); ok {
		return e.step
	}
	if errors.Is(err, errContent) {
		return StepEnvelope
	}
	if _, ok := errors.AsType[*providerError](err); ok {
		return StepKey
	}
	return StepDecrypt
}

// isForAnother reports whether the next method may open the file.
func isForAnother(err error) bool {
	return errors.Is(err, errContent) || errors.Is(err, ErrNoKey)
}

// describeAll returns the text for attempts whose errors all let the next method try.
func describeAll(attempts []Attempt) string {
	if errors.Is(attempts[len(attempts)-1].Err, ErrNoKey) {
		return "no selected method has the key for this file:"
	}
	return "the file was decrypted, but its content is not valid:"
}
