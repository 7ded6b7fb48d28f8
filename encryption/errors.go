package encryption

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// These errors can be told apart with [errors.Is]. An error wraps at most one of them. Most other
// errors concern the settings or a key service.
var (
	// ErrNoKey means that the settings have no key for the file. The key may be wrong, or the file
	// may store no metadata, or a key service may deny the key, have disabled it or not know it. A
	// modified ciphertext looks the same as a wrong key.
	//
	// If a key provider or a method returns ErrNoKey, the next method may be tried. A timeout, a
	// network failure or a wrong setting must therefore not wrap it.
	ErrNoKey = driver.ErrNoKey

	// ErrNotConfigured means that the file is encrypted and no selected method handles such files.
	// When a file is sealed, it means that no method is selected.
	ErrNotConfigured = errors.New("no method for this file")

	// ErrPlaintext means that the file is not encrypted, and the settings do not allow that.
	ErrPlaintext = errors.New("unencrypted data is refused")

	// ErrDamaged means that the file or its plaintext is malformed. It may be empty or cut off, its
	// envelope may be broken, or the serial or lineage in the envelope may differ from the one in
	// the plaintext.
	ErrDamaged = driver.ErrDamaged

	// ErrOtherKind means that the file is a plan and a state is required, or the other way round.
	ErrOtherKind = errors.New("the file is of another kind")

	// ErrBackendRecord means that the file is .terraform/terraform.tfstate, which names a backend
	// but contains no state. The state is in that backend.
	ErrBackendRecord = errors.New("the file is the record of a backend")
)

// reasonError wraps a reason that [errors.Is] finds but the message does not show.
type reasonError struct {
	error
	reason error
}

func (e *reasonError) Unwrap() []error { return []error{e.error, e.reason} }

// Tell returns the message of the error, without the reason.
func (e *reasonError) Tell(text func(error) string) string { return text(e.error) }

// because returns an error that wraps reason and has its own message.
func because(reason error, format string, args ...any) error {
	return &reasonError{fmt.Errorf(format, args...), reason}
}

// Attempt describes a method that could not open a file.
type Attempt struct {
	Method string // the address of the method
	Err    error  // why the method failed; if it wraps ErrNoKey, the next method was tried
}

// Step is a step in opening or sealing a file.
type Step string

// These are the steps of opening or sealing a file, in order.
const (
	StepConfiguration Step = "configuration" // a method does not exist or cannot be used, or enforced forbids it
	StepEnvelope      Step = "envelope"      // the file is damaged, or the settings do not allow files of its kind
	StepKey           Step = "key"           // a key provider returned no key; Err names the key provider
	StepDecrypt       Step = "decrypt"       // a method failed to open or seal the file, or returned the wrong kind of plaintext
)

// Error is a failure to open or seal a file. It says which step failed and which methods were
// tried. Its message contains no plaintext and no key.
type Error struct {
	Step     Step
	Attempts []Attempt // every method that was tried, in order
	Err      error     // the reason; the message of Error adds the attempts
}

func (e *Error) Error() string { return e.Tell(func(err error) string { return fmt.Sprint(err) }) }

// Tell returns the message of Error. It calls text to format the reason and the error of each
// attempt.
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

// indented indents all lines of a text after the first, so that they line up below an entry of a
// list.
func indented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i > 0 && line != "" && line[0] != ' ' {
			lines[i] = "    " + line
		}
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns Err. It wraps the error of the last attempt, unless the context ended or the next
// method could not be tried.
func (e *Error) Unwrap() error { return e.Err }

// failure returns an [*Error] with the step of the last attempt. If ctx has ended, the reason is
// the error of ctx instead of the attempt's error, because a stopped program may claim that it has
// no key.
func failure(ctx context.Context, attempts []Attempt, text string) error {
	last := attempts[len(attempts)-1].Err
	step := stepOf(last)
	if err := ended(ctx); err != nil {
		return &Error{Step: step, Attempts: attempts, Err: fmt.Errorf("%w:", err)} //nolint:staticcheck // the list of attempts follows
	}
	return &Error{Step: step, Attempts: attempts, Err: &reasonError{errors.New(text), last}}
}

// ended returns an error if ctx has ended. The error wraps the error of ctx, and the cause if the
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

// isForAnother reports whether another method may be able to open the file.
func isForAnother(err error) bool {
	return errors.Is(err, errContent) || errors.Is(err, ErrNoKey)
}

// describeAll returns the message for attempts that all allowed the next method to be tried.
func describeAll(attempts []Attempt) string {
	if errors.Is(attempts[len(attempts)-1].Err, ErrNoKey) {
		return "no selected method has the key for this file:"
	}
	return "the file was decrypted, but its content is not valid:"
}
