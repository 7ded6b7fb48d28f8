// Package store defines the stores in which wrap keeps states: bytes under a name. A store knows only
// whether the bytes are still the version that was read.
//
// These words have one meaning in all stores:
//
//   - version: a text that identifies the bytes of a state, such as an ETag or a digest.
//   - lock: a document that names a run, in the format of Terraform and OpenTofu. It is held by that run, which is
//     its holder, and found, lost or given back by its ID.
//   - property: a fact about a store, which its code states, and wrap relies on.
//   - ability: a method that only some states have, see [As].
//   - identity: a version that is the same however a server writes the JSON of a state, see [Identity].
//   - unkept, unremoved, unseen: a store has reported success, and the state is not there, is still there, or cannot
//     be read.
//   - unfinished: the state is written, and a digest beside it is not.
package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// Kind is a kind of store. Its table declares the block backend "<kind>".
type Kind struct {
	attr.Table

	Named    string   // the attribute that names a state
	Older    string   // where old versions remain; they open with the keys that they were encrypted with
	Counts   bool     // encrypting with another key increases the serial, as the CLIs do with this backend
	Looks    bool     // some servers look into a state, and refuse one without serial and lineage
	Withhold []string // variables of credentials that are for this store alone: no program of the user's gets them
	Open     func(Settings) (Store, error)
}

// Settings are the settings that open a store.
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
	Properties() Properties
	State(name string) (State, error)

	// List returns the names of states that begin with a prefix. Other files may be among them.
	// Listing requires a right of its own.
	List(ctx context.Context, prefix string) ([]string, error)

	Close() error // gives up the locks that end with the process
}

// Version identifies the bytes that were read. It is opaque, and "" if there was no state; an empty object may have
// one.
type Version string

// Properties are facts about a store. The zero value is a store without locks whose report of a write cannot be
// checked.
type Properties struct {
	HasLocks        bool             // locks keep others out
	Verifies        bool             // Write and Remove find out whether the store's report is true
	EndsWithProcess bool             // nobody can leave a lock
	Retries         map[string]int64 // :: argument of the child's backend → how often, and when, it tries again
	Unkept          error            // replaces [ErrUnkept], the error if the store reported a write and the state is not there
}

// State is one state in a store. Its methods return the errors of this package where one fits. A state may
// have further abilities, such as [Prover], which [As] finds.
type State interface {
	// String says where it is, for people. It tells the state from any other, unless the state is [Addressed].
	String() string

	// Read returns nil if there is none.
	Read(ctx context.Context) ([]byte, Version, error)

	// Write replaces the state if it is still the one that was read, and otherwise
	// returns [ErrChanged]. Without an error, the version is "" if only a look can tell whether
	// the state is there.
	Write(ctx context.Context, data []byte, read Version) (Version, error)

	// Remove deletes the state if it is still the one that was read.
	Remove(ctx context.Context, read Version) error

	// Lock excludes others. If another run holds the lock, the error is a [HeldError]. If the lock
	// has the same ID, an earlier request succeeded although its answer was lost, so there is no
	// error.
	Lock(ctx context.Context, lock Lock) error

	// Holder returns nil if nobody holds the lock, and [ErrHolderUnknown] if the store reveals the holder
	// only to a failed Lock.
	Holder(ctx context.Context) (*Lock, error)

	// Unlock releases the lock with this ID, of this run or another one.
	Unlock(ctx context.Context, id string) error
}

// Lock is the LockInfo of Terraform and OpenTofu, which every lock holds.
type Lock struct {
	ID        string
	Operation string
	Info      string
	Who       string
	Version   string
	Created   string `json:",omitempty"` // the CLIs parse it as a time, and reject an empty one
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

// LockIn returns the lock in a place beside a state, such as the branch of a name.
func LockIn(text []byte, kind, name string) (*Lock, error) {
	lock, ok := ParseLock(text)
	if !ok || lock.ID == "" {
		return nil, fmt.Errorf("the state is locked, and the %s %s does not say by whom; if nobody holds the lock, delete that %[1]s", kind, name)
	}
	return &lock, nil
}

// JSON is the lock as it was sent, or as the CLIs would send it.
func (l Lock) JSON() []byte {
	if l.text != nil {
		return l.text
	}
	text, _ := json.Marshal(l) // cannot fail: all fields are strings and a bool
	return text
}

// NewLock returns a new lock for an operation of this program.
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

// At returns a copy of l with path, for stores that record it.
func (l Lock) At(path string) Lock {
	l.Path, l.text = path, nil
	return l
}

// Pause waits for another process to finish, unless ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Digest is a version for stores that have none.
func Digest(data []byte) Version {
	sum := sha256.Sum256(data)
	return Version(hex.EncodeToString(sum[:]))
}
