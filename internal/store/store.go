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
	"bytes"
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
	Looks    bool     // some servers read the serial and the lineage of a state, and refuse a state without them
	Withhold []string // variables with credentials of this store; programs of the user do not get them
	Open     func(Settings) (Store, error)
}

// Settings holds the settings that open a store.
type Settings struct {
	attr.Values

	Folder string // the folder of the file with the block; its relative paths begin there
	Module string // the folder of the module

	Limit    int64         // the most bytes of a state
	Patience time.Duration // the limit for one request

	// Seal returns the encrypted form of a file that the store has found, for a backup. It returns nil for a file
	// that is no state; the store then keeps an older backup.
	Seal func(ctx context.Context, found []byte) ([]byte, error)
}

// Voice returns the words of errors for the block of the settings.
func (s Settings) Voice() fault.Voice {
	block := "the block " + s.Values.Address()
	return fault.Voice{Words: map[string]string{"credentials": block, "settings": block}}
}

// Store keeps states. Opening a store and naming a state contact nothing.
type Store interface {
	Properties() Properties
	State(name string) (State, error)

	// List returns the names of states that begin with a prefix. Other files may be among them.
	// Listing requires a right of its own.
	List(ctx context.Context, prefix string) ([]string, error)

	Close() error // releases the locks that end with the process
}

// Version identifies the bytes that were read. It is opaque. It is "" if there was no state, although an empty object
// may have a version.
type Version string

// Properties holds facts about a store. The zero value is a store without locks, whose report of a write cannot be
// relied on.
type Properties struct {
	HasLocks        bool             // locks keep others out
	Verifies        bool             // Write and Remove check the store's report themselves
	EndsWithProcess bool             // locks end with their process, so nobody can leave one
	Retries         map[string]int64 // arguments for repetitions in the child's backend, by name
	Unkept          error            // the error in place of [ErrUnkept]; nil if that fits
}

// State is one state in a store. Its methods return the errors of this package where one fits. A state may
// have further abilities, such as [Prover], which [As] finds.
type State interface {
	// String returns the place of the state for people. It identifies the state, unless the state is [Addressed].
	String() string

	// Read returns the state and its version, and nil if there is none.
	Read(ctx context.Context) ([]byte, Version, error)

	// Write replaces the state if it is still the version that was read, and otherwise returns [ErrChanged]. It
	// returns no version if only a read can tell whether the store has the new state.
	Write(ctx context.Context, data []byte, read Version) (Version, error)

	// Remove deletes the state if it is still the version that was read.
	Remove(ctx context.Context, read Version) error

	// Lock takes the lock, which excludes others. If another run has it, the error is a [HeldError]. If the lock has
	// the same ID, an earlier request succeeded although its answer was lost, so there is no error.
	Lock(ctx context.Context, lock Lock) error

	// Holder returns nil if nobody holds the lock, and [ErrHolderUnknown] if the store reveals the holder
	// only to a failed Lock.
	Holder(ctx context.Context) (*Lock, error)

	// Unlock releases the lock with this ID, of this run or another one.
	Unlock(ctx context.Context, id string) error
}

// Lock is a lock in the format of Terraform and OpenTofu (LockInfo), which all stores use.
type Lock struct {
	ID        string
	Operation string
	Info      string
	Who       string
	Version   string
	Created   string `json:",omitempty"` // the CLIs parse it as a time, and reject an empty one
	Path      string

	OfProcess bool `json:"-"` // whether the lock ends with its process, so that nobody can leave it

	text []byte // the JSON text from which the lock was parsed
}

// ParseLock returns the lock in a JSON text, and false if the text is no lock.
func ParseLock(text []byte) (Lock, bool) {
	var l Lock
	err := json.Unmarshal(text, &l)
	l.text = text
	return l, err == nil
}

// LockIn returns the lock in a text beside a state. Errors name its place by kind and name, such as "branch" and the
// name of the branch.
func LockIn(text []byte, kind, name string) (*Lock, error) {
	lock, ok := ParseLock(text)
	if !ok || lock.ID == "" {
		return nil, fmt.Errorf("the state is locked, and the %s %s does not say by whom; if nobody holds the lock, delete that %[1]s", kind, name)
	}
	return &lock, nil
}

// JSON returns the lock as it was sent, or else as the CLIs would send it.
func (l Lock) JSON() []byte {
	if l.text != nil {
		return l.text
	}
	text, _ := json.Marshal(l) // cannot fail: all fields are strings and a bool
	return text
}

// NewLock returns a new lock for an operation of this program.
func NewLock(operation string) Lock {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // cannot fail
	return Lock{ID: UUID(random), Operation: operation, Who: Me(), Created: time.Now().UTC().Format(time.RFC3339)}
}

// UUID returns a UUID that depends on the first 16 bytes, for locks: the CLIs' are UUIDs, and Azure takes no others.
func UUID(of []byte) string {
	b := bytes.Clone(of[:16])
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // version 8: any way to make one
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Me returns the user of this machine as the CLIs write it: login@host.
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

// Pause waits for a duration, in which another process may finish. It returns an error if ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Digest returns the SHA-256 of data in hexadecimal, as a version for stores that have none.
func Digest(data []byte) Version {
	sum := sha256.Sum256(data)
	return Version(hex.EncodeToString(sum[:]))
}
