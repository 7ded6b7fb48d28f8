package store

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// These errors may come from any store. Users see their wording.
var (
	ErrChanged = errors.New("someone else changed the state after it was read, so it was not overwritten")
	ErrLost    = errors.New("the lock was lost, so nothing more is written: someone removed the lock or replaced the locked file, or the " +
		"store did not keep the lock")
	ErrMissing       = errors.New("nobody holds this lock; it was released already")
	ErrDenied        = errors.New("access is denied")
	ErrHolderUnknown = errors.New("the server names the lock holder only to a program that requests the lock")

	// ErrUnseen means that a store reported success, but the state cannot be read back. ErrUnkept and ErrUnremoved mean
	// that the report was false.
	ErrUnseen    = errors.New("the store confirmed the write, but the state cannot be read back")
	ErrUnkept    = errors.New("the store confirmed the write, but now holds a different state or no state")
	ErrUnremoved = errors.New("the store confirmed the removal, but the state is still there")

	// ErrUnlisted means that this kind of store cannot list states.
	ErrUnlisted = errors.New("the http backend cannot list states, because it knows only one state; remove -prefix")

	// ErrNoHistory means that this kind of store cannot list versions of a state.
	ErrNoHistory = errors.New("the http backend cannot list or read older versions of a state; restore and diff can read a file instead")

	// ErrNoVersion means that the store has no version of the state with the given ID.
	ErrNoVersion = errors.New("the store has no such version of the state, and there is no such file; run statecrypt history to list the " +
		"versions")

	// ErrUnfinished means that the state was written, but its digest was not. It is never treated as a lost response.
	ErrUnfinished = errors.New("the state was written, but its digest was not")
)

// Denied returns an error that wraps [ErrDenied], but has only the text of err.
func Denied(err error) error { return denied{err} }

type denied struct{ error }

// Unwrap returns the original error and [ErrDenied].
func (d denied) Unwrap() []error { return []error{d.error, ErrDenied} }

// HeldError means that another run or user holds the lock.
type HeldError struct {
	By *Lock // nil if the holder is unknown
}

// Error names the lock holder, the time, the operation, and the command that releases the lock.
func (e *HeldError) Error() string {
	if e.By == nil {
		return "someone holds the lock"
	}
	return e.By.Holder()
}

// AliveError means that the lock belongs to a running process, and is released only when that process ends.
type AliveError struct {
	Process int   // 0 if unknown
	By      *Lock // the description of the lock
}

// Error names the process, if known, and the user, the time and the operation of the lock.
func (e *AliveError) Error() string {
	process := "a process"
	if e.Process > 0 {
		process = fmt.Sprintf("the process %d", e.Process)
	}
	return fmt.Sprintf("%s holds the file's lock until it ends; the lock was taken by %s at %s for %s", process,
		outside.Quoted(cmp.Or(e.By.Who, "someone"), 100), e.By.since(), outside.Quoted(e.By.Operation, 100))
}

// Holder returns a text about the lock holder and the command that releases the lock.
func (l *Lock) Holder() string {
	text := l.Describe()
	if l.ID != "" && !l.OfProcess {
		text += "; if that run has ended, " + Unlocking(l.ID)
	}
	return text
}

// Describe returns a text about the lock holder.
func (l *Lock) Describe() string {
	text := outside.Quoted(cmp.Or(l.Who, "someone"), 100) + " holds the lock " + outside.Quoted(l.ID, 100)
	if l.Created != "" {
		text += ", taken at " + l.since()
	}
	if l.Operation != "" {
		text += " for " + outside.Quoted(l.Operation, 100)
	}
	return text
}

// since returns the time at which the lock was taken, and its age.
func (l *Lock) since() string {
	text := outside.Quoted(l.Created, 100)
	if at, err := time.Parse(time.RFC3339, l.Created); err == nil {
		text += Age(at)
	}
	return text
}

// Age returns how long ago a time was, as the end of a text, for example " (12 minutes ago)". It returns an empty
// string for a time in the future, because one of two clocks is wrong, and for a time that is unknown.
func Age(at time.Time) string {
	const day = 24 * time.Hour
	age := time.Since(at)
	switch {
	case at.IsZero() || age < 0:
		return ""
	case age < time.Minute:
		return " (less than a minute ago)"
	case age < time.Hour:
		return ago(age/time.Minute, "minute")
	case age < 2*day:
		return ago(age/time.Hour, "hour")
	}
	return ago(age/day, "day")
}

func ago(count time.Duration, unit string) string {
	if count != 1 {
		unit += "s"
	}
	return fmt.Sprintf(" (%d %s ago)", count, unit)
}

// Unlocking returns a text with the command that releases an abandoned lock.
func Unlocking(id string) string {
	const command = "statecrypt wrap -config " + fault.Config + " -- terraform force-unlock"
	return "release the lock with " + Proposed(command, id, "force-unlock and its ID")
}

// Proposed returns the command followed by the lock ID, or the text in otherwise if the ID is unsafe in a shell. An
// attacker may have chosen the ID, and users may paste the command.
func Proposed(command, id, otherwise string) string {
	if !harmless.MatchString(id) {
		return otherwise
	}
	return command + " " + outside.Quoted(id, 100)
}

var harmless = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z._:-]{0,99}$`)

// UnansweredError means that a store did not respond properly, so another attempt may succeed.
type UnansweredError struct{ Err error }

func (e *UnansweredError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UnansweredError) Unwrap() error { return e.Err }

// DamagedError means that an unfinished write has left a file that is no state. Nobody else is writing it, because the
// caller holds the lock.
type DamagedError struct {
	Err     error
	File    []byte
	Version Version // for a write that replaces the file
}

func (e *DamagedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *DamagedError) Unwrap() error { return e.Err }

// AnswerError is a response from a server that uses the protocol of Terraform's http backend. The child receives the
// response unchanged, and handles it.
type AnswerError struct {
	Status int
	Body   []byte
	Text   string
	Err    error // the error of this package that corresponds to the response, or nil
}

func (e *AnswerError) Error() string {
	if held, ok := e.Err.(*HeldError); ok && held.By != nil {
		return e.Text + ": " + held.Error()
	}
	return e.Text
}

// Unwrap returns Err.
func (e *AnswerError) Unwrap() error { return e.Err }
