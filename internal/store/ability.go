package store

import (
	"context"
	"os"
)

// Addressed is a state whose String leaves out parts of its address.
type Addressed interface {
	// Address returns the full address, which identifies the state. It must not be shown, because the parts that
	// String leaves out may be secret.
	Address() string
}

// Prover is a state in a store that may break its promises.
type Prover interface {
	// Ready returns an error if the store would not take a state. It is called before a run makes anything that the
	// state must record.
	Ready(ctx context.Context) error
}

// Local is a state in files of this machine.
type Local interface {
	// Keeps reports whether a file is the state, or its backup.
	Keeps(path string) bool

	// Lend returns a file for a child to inherit: if this process is killed while it has the lock, the child keeps
	// the lock until its own end. The child can only read the file. The caller closes it. Lend returns nil if locks
	// cannot be inherited.
	Lend() *os.File

	// Reverts reports whether it is normal that an older state comes back.
	Reverts(ctx context.Context) bool
}

// Digested is a state with a digest beside it, which other programs compare with the state.
type Digested interface {
	// IsSettled reports whether the digest belongs to the state that was read.
	IsSettled(ctx context.Context, read []byte) (bool, error)

	// Settle writes the digest if an earlier write could not. The caller has the lock.
	Settle(ctx context.Context, read []byte) error
}

// Shared is a state in a place that a backend of Terraform and OpenTofu can also use.
type Shared interface {
	// IsStateOf reports whether a backend of this kind with these arguments has the same state. It returns an error
	// if the lock of the store would not exclude users of that backend.
	IsStateOf(kind string, arguments map[string]any) (same bool, err error)
}

// Renamer is a state whose lock people name by another ID than the one that it was taken with.
type Renamer interface {
	// NameOf returns the ID by which people name our lock that was taken with an ID.
	NameOf(id string) string
}

// Decorator is a state that adds something to another one.
type Decorator interface{ Unwrap() State }

// As returns an ability of a state, or of a state that it decorates.
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
