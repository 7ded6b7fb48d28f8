package store

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// These are the failures that any store may have, with the texts that users read.
var (
	ErrChanged = errors.New("the state has changed since it was read: somebody else wrote it, and it stays as it is")
	ErrLost    = errors.New("the lock was lost, so nothing is written any more: somebody removed it or replaced the locked file " +
		"or object, or the store never kept it")
	ErrMissing       = errors.New("nobody holds this lock; it was released already")
	ErrDenied        = errors.New("access is denied")
	ErrHolderUnknown = errors.New("the server says who holds the lock only to a program that asks for the lock")

	// ErrUnseen means that a store reported success and the state cannot be read back. ErrUnkept and
	// ErrUnremoved mean that the report was false.
	ErrUnseen    = errors.New("the store answered that the state is written, but it cannot be read back")
	ErrUnkept    = errors.New("the store answered that the state is written, but another state, or none, is there")
	ErrUnremoved = errors.New("the store answered that the state is removed, but it is still there")

	// ErrUnlisted is that the kind of store knows one state only.
	ErrUnlisted = errors.New("the states cannot be listed: the http backend knows one state only; name files in its place")

	// ErrUnfinished is never taken for a lost answer.
	ErrUnfinished = errors.New("the state was written, but not the data that belongs to it")
)

// Denied makes an error one of [ErrDenied] without its words.
func Denied(err error) error { return denied{err} }

type denied struct{ error }

// Unwrap returns both.
func (d denied) Unwrap() []error { return []error{d.error, ErrDenied} }

// HeldError is returned if somebody else holds the lock.
type HeldError struct {
	By *Lock // nil if nobody says who
}

// Error names the holder of the lock, the time, the operation, and the command that releases it.
func (e *HeldError) Error() string {
	if e.By == nil {
		return "somebody holds the lock"
	}
	return e.By.Holder()
}

// AliveError is that nobody can break a lock, because it ends with its process.
type AliveError struct {
	Process int   // 0 if it is not known
	By      *Lock // the lock's own description
}

// Error names the process, or the operation that it was started for.
func (e *AliveError) Error() string {
	process := "a process"
	if e.Process > 0 {
		process = fmt.Sprintf("the process %d", e.Process)
	}
	return fmt.Sprintf("%s holds the lock of the file until it ends: the lock was taken by %s, at %s, for %s", process,
		outside.Quoted(cmp.Or(e.By.Who, "somebody"), 100), outside.Quoted(e.By.Created, 100), outside.Quoted(e.By.Operation, 100))
}

// Holder is who has the lock, and how it is given back.
func (l *Lock) Holder() string {
	text := l.Describe()
	if l.ID != "" && !l.OfProcess {
		text += "; if that has ended, " + Unlocking(l.ID)
	}
	return text
}

// Describe is who has the lock.
func (l *Lock) Describe() string {
	return fmt.Sprintf("%s has held the lock %s since %s, for %s", outside.Quoted(cmp.Or(l.Who, "somebody"), 100),
		outside.Quoted(l.ID, 100), outside.Quoted(l.Created, 100), outside.Quoted(l.Operation, 100))
}

// Unlocking says how to release a lock that an ended run has left.
func Unlocking(id string) string {
	return Proposed("statecrypt wrap -config FILE -- terraform force-unlock", id, "force-unlock with its ID") + " releases it"
}

// Proposed returns a command with the ID of a lock, and the text otherwise for an ID that is unsafe in a
// shell: the maker of the lock chose the ID, and users may paste the command.
func Proposed(command, id, otherwise string) string {
	if !harmless.MatchString(id) {
		return otherwise
	}
	return command + " " + outside.Quoted(id, 100)
}

var harmless = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z._:-]{0,99}$`)

// UnansweredError is that a store did not answer: another try may succeed.
type UnansweredError struct{ Err error }

func (e *UnansweredError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UnansweredError) Unwrap() error { return e.Err }

// AnswerError is the answer of a store that speaks the protocol of Terraform's http backend. The child
// receives it unchanged, and handles it.
type AnswerError struct {
	Status int
	Body   []byte
	Text   string
	Err    error // one of the others, nil if it is none
}

func (e *AnswerError) Error() string {
	if held, ok := e.Err.(*HeldError); ok && held.By != nil {
		return e.Text + ": " + held.Error()
	}
	return e.Text
}

// Unwrap returns the error that the answer stands for.
func (e *AnswerError) Unwrap() error { return e.Err }
