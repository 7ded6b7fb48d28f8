// Package store is where wrap keeps states: bytes under a name, of which a store knows
// nothing but whether they are still those that were read.
package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"sync"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// Kind is a kind of store. Its table is that of the block backend "<kind>".
type Kind struct {
	attr.Table

	Place    string   // the attribute that names a state
	Older    string   // where older states stay, for whoever has the keys of then
	Counts   bool     // a state that gets another key gets the next serial, as the CLIs' own backends do it there
	Looks    bool     // some servers look into a state, and refuse one without serial and lineage
	Withhold []string // variables of credentials that are for this store alone: no program of the user's gets them
	Open     func(Settings) (Store, error)
}

// Settings are what a store is opened with.
type Settings struct {
	attr.Values

	Folder string // of the file that has the block, where its relative paths begin
	Module string // the folder of the module

	Limit    int64         // bytes of a state
	Patience time.Duration // for one request

	// Seal returns the encrypted form of a file that the store has found, for a copy of it. It returns nil
	// if the file is no state; then, no copy replaces an older one.
	Seal func(ctx context.Context, found []byte) ([]byte, error)
}

// Voice has the words for the block of the settings.
func (s Settings) Voice() fault.Voice {
	block := "the block " + s.Values.Address()
	return fault.Voice{Words: map[string]string{"credentials": block, "settings": block}}
}

// Store keeps states. Opening it, and naming a state, contacts nothing.
type Store interface {
	State(name string) (State, error)

	// List returns the names that begin with a prefix of what may be states; other files may
	// be among them. It is a right of its own.
	List(ctx context.Context, prefix string) ([]string, error)

	Close() error // gives up the locks that end with the process
}

// Version says which bytes were read. It is opaque, and "" if there were none.
type Version string

// State is one state in a store. Errors are those of this package where it has one.
type State interface {
	// String says where it is, for people.
	String() string

	// Address says where it is, and tells it from any other state. Nobody shows it: the parts that String
	// leaves out may be secret.
	Address() string

	// Read returns nil if there is none.
	Read(ctx context.Context) ([]byte, Version, error)

	// Write replaces the state if it is still the one that was read, and otherwise
	// returns [ErrChanged]. Without an error, the version is "" if only a look can tell whether
	// the state is there.
	Write(ctx context.Context, data []byte, read Version) (Version, error)

	// Lock keeps others out. If somebody has the lock, the error is a [HeldError]. A lock
	// with the same ID is the one that is asked for: an earlier answer was lost.
	Lock(ctx context.Context, lock Lock) error

	// Holder returns nil if nobody has the lock, and [ErrUntold] where only locking tells.
	Holder(ctx context.Context) (*Lock, error)

	// Unlock gives the lock with this ID back, whoever has taken it.
	Unlock(ctx context.Context, id string) error

	// Remove leaves no state, if there is still the one that was read.
	Remove(ctx context.Context, read Version) error

	// The rest is as in [Usual], as a rule.

	// Ready finds out, before anything is made that a state has to hold, whether the store takes one.
	Ready(ctx context.Context) error

	// Unkept is the error about a state that the store has called written, and has not stored. It is nil if
	// Write and Remove find that out by themselves.
	Unkept() error

	// HasLocks reports whether locks keep others out, rather than nobody.
	HasLocks() bool

	// Retries are variables that tell the child how often to try again.
	Retries() []string

	// Keeps reports whether a file of this machine is the state, or belongs to it. Nobody else
	// opens it.
	Keeps(path string) bool

	// EndsWithProcess reports whether nobody can leave the lock.
	EndsWithProcess() bool

	// Lend returns a file for a program to inherit, so that the lock, once it is taken, ends with
	// that program if this one is killed. Nobody can write to it. The caller closes it. It is nil
	// where there is none.
	Lend() *os.File

	// Reverts reports whether it is usual that an older state comes back.
	Reverts(ctx context.Context) bool

	// IsSettled reports whether what others compare a state with, such as a digest beside it, is that
	// of the one that was read.
	IsSettled(ctx context.Context, read []byte) (bool, error)

	// Settle makes it so, for whoever has the lock, if an earlier write could not.
	Settle(ctx context.Context, read []byte) error

	// Former compares the state with the backend that the module had without wrap, by its kind and
	// arguments: whether it is the same state. The error is that wrap may not have the lock of
	// those who go on without it.
	Former(kind string, arguments map[string]any) (same bool, err error)
}

// Lock is the LockInfo of Terraform and OpenTofu, which every lock holds.
type Lock struct {
	ID        string
	Operation string
	Info      string
	Who       string
	Version   string
	Created   string `json:",omitempty"` // which the CLIs read as a time, and not if it is empty
	Path      string

	OfProcess bool `json:"-"` // whether it ends with its process, and nobody can leave it

	text []byte // as it was sent
}

// ParseLock returns false if text is no lock.
func ParseLock(text []byte) (Lock, bool) {
	var l Lock
	err := json.Unmarshal(text, &l)
	l.text = text
	return l, err == nil
}

// JSON is the lock as it was sent, or as the CLIs would send it.
func (l Lock) JSON() []byte {
	if l.text != nil {
		return l.text
	}
	text, _ := json.Marshal(l) // of texts
	return text
}

// NewLock is one of this program.
func NewLock(operation string) Lock {
	return Lock{ID: rand.Text(), Operation: operation, Who: Me(), Created: time.Now().UTC().Format(time.RFC3339)}
}

// Me is the user of this machine, as the CLIs write it.
func Me() string {
	login, host := "statecrypt", "localhost"
	if u, err := user.Current(); err == nil {
		login = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return login + "@" + host
}

// At is the lock in a store that records where the state is.
func (l Lock) At(path string) Lock {
	l.Path, l.text = path, nil
	return l
}

// Careful looks once more after a failure of a lock or a write: the answer may have been
// lost, or be that to a repetition. If the lock is ours by then, or the state is the one
// that was sent, it was a success.
//
// It also looks, once in each run, whether a state is there that the store calls written: the
// first one, and the first one that replaces another, which some servers take for other requests. It
// looks each time if the store leaves that open, and after a state was removed.
//
// What was sent when nobody could look may be there by the time of the next write, and is what
// this run has written, not somebody else.
func Careful(s State) State { return &careful{State: s, proven: map[bool]bool{}} }

type careful struct {
	State

	mu     sync.Mutex
	sent   []Version     // the states that were sent since the last success, and may be there, by their [Identity]
	proven map[bool]bool // whether a state was found there that was written, by whether it has replaced one
}

func (c *careful) Lock(ctx context.Context, lock Lock) error {
	err := c.State.Lock(ctx, lock)
	if err != nil && lock.ID != "" && isAmbiguous(err) && c.State.Lock(ctx, lock) == nil { // the same ID: no second one
		return nil
	}
	return err
}

// isAmbiguous reports whether a request may have succeeded that has failed.
func isAmbiguous(err error) bool {
	answer, isAnswer := errors.AsType[*AnswerError](err)
	_, isUnanswered := errors.AsType[*UnansweredError](err)
	return isUnanswered || isAnswer && answer.Status >= 500
}

func (c *careful) Write(ctx context.Context, data []byte, read Version) (Version, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.sent, Identity(data)) { // the caller tries again
		if now, ours, _ := c.isThere(ctx, Identity(data)); ours {
			c.sent = nil
			return now, nil
		}
	}
	if now, ours, _ := c.isThere(ctx, c.sent...); ours {
		read = now
	}
	next, err := c.State.Write(ctx, data, read)
	if !errors.Is(err, ErrUnfinished) && (err != nil || next == "" || c.Unkept() != nil && !c.proven[read != ""]) {
		now, ours, unread := c.isThere(ctx, Identity(data))
		switch {
		case ours:
			next, err = now, nil
			c.proven[read != ""] = true
		case err != nil:
		case unread != nil:
			err = fmt.Errorf("%w: %w", ErrUnseen, unread)
		default:
			err = c.Unkept()
		}
	}
	switch {
	case err == nil:
		c.sent = nil
	case isAmbiguous(err), errors.Is(err, ErrUnfinished):
		c.sent = append(c.sent, Identity(data))
	}
	return next, err
}

func (c *careful) Remove(ctx context.Context, read Version) error {
	if err := c.State.Remove(ctx, read); err != nil || c.Unkept() == nil {
		return err
	}
	there, _, err := c.State.Read(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("the state was removed, and whether it is gone cannot be told: %w", err)
	case len(there) > 0:
		return ErrUnremoved
	}
	return nil
}

// isThere reports whether the state is one of these, by their [Identity].
func (c *careful) isThere(ctx context.Context, states ...Version) (Version, bool, error) {
	if len(states) == 0 {
		return "", false, nil
	}
	there, now, err := c.State.Read(ctx)
	if err != nil || len(there) == 0 || !slices.Contains(states, Identity(there)) {
		return "", false, err
	}
	return now, true, nil
}

// Digest is a version for stores that have none.
func Digest(data []byte) Version {
	sum := sha256.Sum256(data)
	return Version(hex.EncodeToString(sum[:]))
}

// Usual is what most states do, of what [State] asks for.
type Usual struct{}

func (Usual) Ready(context.Context) error                     { return nil }
func (Usual) Unkept() error                                   { return ErrUnkept }
func (Usual) HasLocks() bool                                  { return true }
func (Usual) Retries() []string                               { return nil }
func (Usual) Keeps(string) bool                               { return false }
func (Usual) EndsWithProcess() bool                           { return false }
func (Usual) Lend() *os.File                                  { return nil }
func (Usual) Reverts(context.Context) bool                    { return false }
func (Usual) IsSettled(context.Context, []byte) (bool, error) { return true, nil }
func (Usual) Settle(context.Context, []byte) error            { return nil }
func (Usual) Former(string, map[string]any) (bool, error)     { return false, nil }
