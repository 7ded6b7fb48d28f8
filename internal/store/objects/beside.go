package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// These suffixes name the objects next to a state: its lock and its proof.
const (
	LockSuffix  = ".tflock"
	ProofSuffix = LockSuffix + "-proof"
)

// IsBeside reports whether name belongs to a lock, a proof, or a folder marker.
func IsBeside(name string) bool {
	return strings.HasSuffix(name, LockSuffix) || strings.HasSuffix(name, ProofSuffix) || strings.HasSuffix(name, "/")
}

// LockRequests sends the requests for a state object and its lock object.
type LockRequests interface {
	Requests

	// Create stores a new object and returns its version. If the object exists already, Create returns a [TakenError].
	Create(ctx context.Context, name string, data []byte) (version string, err error)

	// IsOwn reports whether the store is run by the cloud provider, so that its success reports can be trusted.
	IsOwn(ctx context.Context) (bool, error)
}

// Beside is a lock in an object next to a state. Its mark is the version of that object.
type Beside struct {
	LockRequests
	Name string // the name of the lock object
}

// Look returns the lock stored in the object.
func (b Beside) Look(ctx context.Context) (by *store.Lock, mark string, err error) {
	data, version, err := b.Get(ctx, b.Name, source.MaxLock)
	if err != nil || version == "" {
		return nil, "", err
	}
	by, err = store.LockIn(data, "object", outside.Quoted(b.Name, 300))
	return by, version, err
}

// Add creates the lock object. Servers other than the cloud provider's may ignore conditions, so Add first checks them
// for an existing lock.
func (b Beside) Add(ctx context.Context, lock store.Lock) (mark string, err error) {
	own, err := b.IsOwn(ctx)
	if err != nil {
		return "", err
	}
	if !own {
		if by, _, err := b.Look(ctx); err != nil || by != nil {
			return "", cmp.Or(err, error(TakenError{&store.HeldError{By: by}}))
		}
	}
	if err := b.Prove(ctx); err != nil {
		return "", err
	}
	return b.Create(ctx, b.Name, lock.JSON())
}

// Drop removes the lock object. On servers other than the cloud provider's, Drop checks that the object is gone.
func (b Beside) Drop(ctx context.Context, mark string) error {
	own, err := b.IsOwn(ctx)
	if err == nil {
		err = b.Delete(ctx, b.Name, mark)
	}
	if err != nil || own {
		return err
	}
	by, now, err := b.Look(ctx)
	if err == nil && by != nil && now == mark {
		err = fmt.Errorf("the store confirmed the removal of the object %s, but the object is still there", outside.Quoted(b.Name, 300))
	}
	return err
}

// ProofText is the content of the proof object, which is used to test whether a store obeys conditions. The object is
// not deleted afterwards.
const ProofText = "statecrypt has shown here that this store refuses to replace an object that must not be there. You may delete it.\n"

// Trial writes the proof object under conditions. Its functions return [store.ErrChanged] if the store refuses a
// condition.
type Trial struct {
	Look    func(ctx context.Context) (version string, err error) // returns the object's version
	Create  func(ctx context.Context) (version string, err error) // fails if the object exists
	Replace func(ctx context.Context, version string) (next string, err error)
}

// Prove returns an error if the store ignores conditions, or refuses a condition that is met. It must run before the
// lock is taken: a store that ignores conditions would overwrite another run's lock.
func (t Trial) Prove(ctx context.Context) error {
	version, err := t.Create(ctx)
	if err == nil { // the object did not exist before
		_, err = t.Create(ctx)
	}
	switch {
	case err == nil:
		return errors.New("the store ignores the condition that an object must not exist, so two runs could both hold the lock; keep the state " +
			"on another store")
	case !errors.Is(err, store.ErrChanged):
		return err
	}
	if version, err = t.replace(ctx, version); err != nil {
		return err
	}
	switch _, err = t.Replace(ctx, version); {
	case err == nil:
		return errors.New("the store ignores the condition that an object must have a certain version, so one run could overwrite the state of " +
			"another run; keep the state on another store")
	case !errors.Is(err, store.ErrChanged):
		return err
	}
	return nil
}

// replace overwrites the current version of the proof object, and returns the version that it overwrote. The store may
// refuse because another run has just replaced the object, so replace tries again. Of several runs that try at once,
// one succeeds in each round.
func (t Trial) replace(ctx context.Context, version string) (old string, err error) {
	const most = 50
	for range most {
		old = version
		if old == "" {
			if old, err = t.Look(ctx); err != nil {
				return "", err
			}
		}
		if _, err = t.Replace(ctx, old); !errors.Is(err, store.ErrChanged) {
			return old, err
		}
		if version, err = t.Look(ctx); err != nil {
			return "", err
		}
		if version == old {
			break
		}
	}
	return "", errors.New("the store refuses to replace an object, although the request names the current version; keep the state on " +
		"another store")
}
