package encryption

import (
	"context"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// inside continues after a method for whole files has decrypted opened.Data. It decrypts the data
// again, with the method whose address is in then. If that is empty, it checks that the data is
// plaintext.
func (t Target) inside(ctx context.Context, then string, opened *Opened) error {
	kind, env, damage := identify(opened.Data)
	switch {
	case kind == KindEmpty:
		return fault.With(because(ErrDamaged, "the decrypted data is empty"), "restore an earlier version")
	case then == "" && kind.isPlain():
		opened.Kind = kind
		return nil
	case then == "":
		return &reasonError{t.refuseInside(kind, opened.Data), errContent}
	}
	t.methods = []string{then}
	candidates := t.choose(kind, opened.Data, env)
	switch {
	case len(candidates) == 0 && damage != nil:
		return &thenError{then, StepEnvelope, damage}
	case len(candidates) == 0:
		reason := ErrNotConfigured
		if kind.isPlain() {
			reason = ErrPlaintext
		}
		err := fault.With(because(reason, "the decrypted data is a %s, but the method %s in the argument then does not read plaintext", kind,
			then),
			"correct the argument then")
		if kind.isPlain() {
			err = fault.Known(err, fault.Plaintext{Plan: kind == KindPlan})
		}
		return &reasonError{err, errContent}
	}
	inner, err := t.try(ctx, candidates, opened.Data, env, room{inPlace: true})
	if err != nil {
		return newThenError(then, err)
	}
	opened.Data, opened.Kind = inner.Data, inner.Kind
	opened.Warnings = append(opened.Warnings, inner.Warnings...)
	return nil
}

// errContent means that a method decrypted the file, but the content does not fit the method's
// "then" argument. Another method may be the right one, so the next one is tried.
var errContent = errors.New("the decrypted data needs another method")

// thenError is the error of a method that another method names in its "then" argument.
type thenError struct {
	address string
	step    Step
	err     error
}

// newThenError returns the error of the method whose address is in then. If only one method was
// tried, it leaves out the line for that attempt, because the error of the outer method already has
// it.
func newThenError(then string, err error) error {
	failed, _ := errors.AsType[*Error](err)
	if len(failed.Attempts) == 1 {
		err = failed.Attempts[0].Err
	}
	return &thenError{then, failed.Step, err}
}

func (e *thenError) Error() string { return fmt.Sprintf("then %s: %v", e.address, e.err) }
func (e *thenError) Unwrap() error { return e.err }
