// Package store defines the stores in which wrap keeps states. A store keeps bytes under a name. The only other thing
// it knows is whether the bytes are still the version that was read.
//
// These words have one meaning in all stores:
//
//   - version: a text that identifies the bytes of a state, such as an ETag or a digest.
//   - kept version: a state of some time, which the store still has, see [Historian].
//   - lock: a document that names a run, in the format of Terraform and OpenTofu. That run is the lock holder. The lock
//     ID is used to find and release the lock, and to notice its loss.
//   - property: a fact about a store, declared in its code, on which wrap relies.
//   - ability: a method that only some states have, see [As].
//   - identity: a version that does not depend on how a server formats the JSON of a state, see [Identity].
//   - unkept, unremoved, unseen: a store reported success, but the state is not there, is still there, or cannot be
//     read.
//   - unfinished: the state was written, but its digest was not.
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

	Named    string   // the attribute that names the state
	Older    string   // where old versions remain that the old keys can still decrypt
	Counts   bool     // encrypting with another key increments the serial, as Terraform and OpenTofu do with this backend
	Looks    bool     // some servers read the serial and lineage of a state, and refuse states without them
	Withhold []string // environment variables with store credentials; the user's programs do not get them
	Open     func(Settings) (Store, error)
}

// Settings holds the settings for opening a store.
type Settings struct {
	attr.Values

	Folder string // the folder of the file with the block; relative paths in the block start there
	Module string // the folder of the module

	Limit    int64         // the maximum size of a state, in bytes
	Patience time.Duration // the time limit for one request

	// Seal returns the encrypted form of a file found in the store, for use as a backup. It returns nil if the file is
	// not a state. The store then keeps the older backup.
	Seal func(ctx context.Context, found []byte) ([]byte, error)
}

// Voice returns the wording that errors use for the settings block.
func (s Settings) Voice() fault.Voice {
	block := "the block " + s.Values.Address()
	return fault.Voice{Words: map[string]string{"credentials": block, "settings": block}}
}

// Store keeps states. Opening a store and calling State make no network requests.
type Store interface {
	Properties() Properties
	State(name string) (State, error)

	// List returns the names of states that begin with prefix. The result may include other files. Listing may require
	// additional permissions.
	List(ctx context.Context, prefix string) ([]string, error)

	Close() error // releases locks that end with the process
}

// Version identifies the bytes that were read. It is opaque. It is empty if there was no state, except that an empty
// object may have a version.
type Version string

// Properties holds facts about a store. The zero value describes a store without locks, whose success reports are not
// reliable.
type Properties struct {
	HasLocks        bool             // locks keep other users out
	KeepsAll        bool             // every state that a write replaces remains as an older version, see [Historian]
	Verifies        bool             // Write and Remove verify the store's success reports themselves
	EndsWithProcess bool             // locks end with their process, so a lock cannot be left behind
	Retries         map[string]int64 // retry arguments for the child's backend, by argument name
	Unkept          error            // the error to use instead of [ErrUnkept], or nil
}

// State is one state in a store. Its methods return the errors of this package where one applies. A state may have
// additional abilities, such as [Prover], which [As] finds.
type State interface {
	// String returns the place of the state, for messages. It identifies the state, unless the state is [Addressed].
	String() string

	// Read returns the state and its version, or nil if there is no state.
	Read(ctx context.Context) ([]byte, Version, error)

	// Write replaces the state if it is still the version that was read. Otherwise, it returns [ErrChanged]. The
	// returned version is empty if only a read can show whether the store has the new state.
	Write(ctx context.Context, data []byte, read Version) (Version, error)

	// Remove deletes the state if it is still the version that was read.
	Remove(ctx context.Context, read Version) error

	// Lock acquires the lock, which keeps others out. If another run holds it, the error is a [HeldError]. If the
	// existing lock has the same ID, Lock succeeds: an earlier request got the lock, but its response was lost.
	Lock(ctx context.Context, lock Lock) error

	// Holder returns the lock holder, or nil if the lock is free. It returns [ErrHolderUnknown] if the store reveals
	// the holder only when Lock fails.
	Holder(ctx context.Context) (*Lock, error)

	// Unlock releases the lock with this ID, even if it belongs to another run.
	Unlock(ctx context.Context, id string) error
}

// Lock is a lock in the format that Terraform and OpenTofu call LockInfo. All stores use this format.
type Lock struct {
	ID        string
	Operation string
	Info      string
	Who       string
	Version   string
	Created   string `json:",omitempty"` // Terraform and OpenTofu parse it as a time, and reject an empty string
	Path      string

	OfProcess bool `json:"-"` // whether the lock ends with its process, and so cannot be left behind

	text []byte // the JSON text from which the lock was parsed
}

// ParseLock returns the lock in a JSON text, or false if the text is not a lock.
func ParseLock(text []byte) (Lock, bool) {
	var l Lock
	err := json.Unmarshal(text, &l)
	l.text = text
	return l, err == nil
}

// LockIn returns the lock in a text stored next to a state. Errors name the place of the text by kind and name, for
// example "branch" and the branch name.
func LockIn(text []byte, kind, name string) (*Lock, error) {
	lock, ok := ParseLock(text)
	if !ok || lock.ID == "" {
		return nil, fmt.Errorf("the state is locked, but the %s %s does not say by whom; if nobody holds the lock, delete that "+
			"%[1]s", kind, name)
	}
	return &lock, nil
}

// JSON returns the lock as it was received or, for a new lock, as Terraform and OpenTofu would send it.
func (l Lock) JSON() []byte {
	if l.text != nil {
		return l.text
	}
	text, _ := json.Marshal(l) // cannot fail, because all fields are strings or a bool
	return text
}

// NewLock returns a new lock for an operation of this program.
func NewLock(operation string) Lock {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // cannot fail
	return Lock{ID: UUID(random), Operation: operation, Who: Me(), Created: time.Now().UTC().Format(time.RFC3339)}
}

// UUID returns a UUID derived from the first 16 bytes of its argument, for use as a lock ID. The CLIs use UUIDs, and
// Azure accepts nothing else.
func UUID(of []byte) string {
	b := bytes.Clone(of[:16])
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // version 8 allows any derivation
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Me returns the local user as Terraform and OpenTofu write it: login@host.
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

// At returns a copy of l with the given path, for stores that record the path.
func (l Lock) At(path string) Lock {
	l.Path, l.text = path, nil
	return l
}

// Pause waits for d, so that another process may finish. It returns an error if ctx ends first.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Digest returns the SHA-256 digest of data in hexadecimal. Stores without their own versions use it as the version.
func Digest(data []byte) Version {
	sum := sha256.Sum256(data)
	return Version(hex.EncodeToString(sum[:]))
}
