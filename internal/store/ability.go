package store

import (
	"context"
	"os"
)

// Addressed is a state whose String leaves out parts of its address.
type Addressed interface {
	// Address tells the state from any other. Nobody shows it: the parts that String leaves out may be secret.
	Address() string
}

// Prover is a state in a store that may break its promises.
type Prover interface {
	// Ready finds out, before anything is made that a state has to hold, whether the store takes one.
	Ready(ctx context.Context) error
}

// Local is a state in files of this machine.
type Local interface {
	// Keeps reports whether a file is the state, or belongs to it. Nobody else opens it.
	Keeps(path string) bool

	// Lend returns a file for a program to inherit, so that the lock, once it is taken, ends with
	// that program if this one is killed. Nobody can write to it. The caller closes it. It is nil
	// where there is none.
	Lend() *os.File

	// Reverts reports whether it is usual that an older state comes back.
	Reverts(ctx context.Context) bool
}

// Digested is a state that others compare with a digest beside it.
type Digested interface {
	// IsSettled reports whether the digest belongs to the state that was read.
	IsSettled(ctx context.Context, read []byte) (bool, error)

	// Settle writes that digest if an earlier write could not. The caller has the lock.
	Settle(ctx context.Context, read []byte) error
}

// Shared is a state in a place that a backend of Terraform and OpenTofu uses as well.
type Shared interface {
	// IsStateOf compares the state with the backend that the module had without wrap, by its kind and
	// arguments: whether it is the same state. It returns an error if the lock of the store does not keep out
	// those who go on without wrap.
	IsStateOf(kind string, arguments map[string]any) (same bool, err error)
}

// Decorator is a state that adds something to another one.
type Decorator interface{ Unwrap() State }

// As returns an ability of a state, or of the one that it decorates.
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
