package store

import (
	"context"
	"os"
	"time"
)

// Addressed is a state whose String method leaves out parts of its address.
type Addressed interface {
	// Address returns the full address, which identifies the state. It must not be shown, because it may contain
	// secrets that String leaves out.
	Address() string
}

// Prover is a state in a store that may not do what it promises.
type Prover interface {
	// Ready returns an error if the store would not accept a state. It is called before a run creates anything that the
	// state must record.
	Ready(ctx context.Context) error
}

// Local is a state in local files.
type Local interface {
	// Keeps reports whether the file at path is the state or its backup.
	Keeps(path string) bool

	// Lend returns a file for a child to inherit. If this process is killed while it holds the lock, the child keeps
	// the lock until it exits. The child can only read the file. The caller closes the file. Lend returns nil if locks
	// cannot be inherited.
	Lend() *os.File

	// Reverts reports whether older versions of the state may reappear in normal use.
	Reverts(ctx context.Context) bool
}

// Digested is a state with a stored digest that other programs compare with the state.
type Digested interface {
	// IsSettled reports whether the digest matches the state that was read.
	IsSettled(ctx context.Context, read []byte) (bool, error)

	// Settle writes the digest if an earlier write could not. The caller must hold the lock.
	Settle(ctx context.Context, read []byte) error
}

// Shared is a state stored where a Terraform or OpenTofu backend can also use it.
type Shared interface {
	// IsStateOf reports whether a backend of this kind with these arguments uses the same state. It returns an error if
	// the store's lock would not keep out users of that backend.
	IsStateOf(kind string, arguments map[string]any) (same bool, err error)
}

// Renamer is a state whose lock has a different ID for users than the one passed to Lock.
type Renamer interface {
	// NameOf returns the ID that users see for our lock with this ID.
	NameOf(id string) string
}

// Decorator is a state that wraps another state and adds something to it.
type Decorator interface{ Unwrap() State }

// As returns an ability of a state, or of a state it decorates.
func As[Ability any](s State) (able Ability, ok bool) {
	for {
		if able, ok = s.(Ability); ok {
			return able, true
		}
		d, decorates := s.(Decorator)
		if !decorates {
			return able, false
		}
		s = d.Unwrap()
	}
}

// Historian is a state of which the store keeps older versions. Wrap never needs it; only the commands that list,
// compare and restore versions do.
type Historian interface {
	// Versions returns at most limit versions of the state, the newest first, and whether there are more. The list
	// includes the current state, deletions, and versions that must be undeleted before they can be read. Listing may
	// require a permission that nothing else requires.
	Versions(ctx context.Context, limit int) (kept []Kept, more bool, err error)

	// ReadVersion returns length bytes of the version with this ID, starting at offset, or fewer where the version ends.
	// A negative length means everything up to the size limit of the store. If there is no such version, or it was
	// deleted, ReadVersion returns [ErrNoVersion].
	ReadVersion(ctx context.Context, id string, offset, length int64) ([]byte, error)
}

// Kept describes one version of a state in a store. Texts come from the store and are not escaped.
type Kept struct {
	ID      string    // identifies the version in the store: a version ID, generation, snapshot time, commit, or file
	Created time.Time // when the store received the version; zero if unknown
	Size    int64     // in bytes; 0 for a deletion, -1 if unknown
	Author  string    // who created the version; empty if the store does not record it
	Subject string    // the first line of the commit message; empty in other stores
	Status  KeptStatus
}

// KeptStatus tells how a version can be used.
type KeptStatus int

// The statuses of versions.
const (
	KeptOlder    KeptStatus = iota // can be read
	KeptCurrent                    // is the state that Read returns
	KeptDeleted                    // marks the time at which the state was deleted, and has no content
	KeptUndelete                   // has content, but must be undeleted before it can be read
)
