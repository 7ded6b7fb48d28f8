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

// These are the ends of the names of objects beside a state.
const (
	LockSuffix  = ".tflock"
	ProofSuffix = LockSuffix + "-proof"
)

// IsBeside reports whether an object is a lock or a proof, or stands for a folder.
func IsBeside(name string) bool {
	return strings.HasSuffix(name, LockSuffix) || strings.HasSuffix(name, ProofSuffix) || strings.HasSuffix(name, "/")
}

// LockRequests sends the requests about the object of a lock.
type LockRequests interface {
	// Get returns an object of at most limit bytes and its version, and no version if there is none.
	Get(ctx context.Context, name string, limit int64) (data []byte, version string, err error)

	// Create stores an object that must not exist, and returns its version. If it exists, the error is a [TakenError].
	Create(ctx context.Context, name string, data []byte) (version string, err error)

	// Delete deletes the object if it is still this version.
	Delete(ctx context.Context, name, version string) error

	// IsOwn reports whether the cloud's own servers answer, which keep what they say.
	IsOwn(ctx context.Context) (bool, error)

	// Prove returns an error if the store ignores conditions.
	Prove(ctx context.Context) error
}

// Beside is a lock in an object beside a state. Its mark is the version of the object.
type Beside struct {
	LockRequests
	Name string // the name of the object
}

// Look returns the lock in the object.
func (b Beside) Look(ctx context.Context) (by *store.Lock, mark string, err error) {
	data, version, err := b.Get(ctx, b.Name, source.MaxLock)
	if err != nil || version == "" {
		return nil, "", err
	}
	by, err = store.LockIn(data, "object", outside.Quoted(b.Name, 300))
	return by, version, err
}

// Add creates the object. On servers other than the cloud's own, which may ignore conditions, it first looks for a
// lock.
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

// Drop removes the object. On servers other than the cloud's own, it checks that the object is gone.
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
		err = fmt.Errorf("the store says that it has removed the object %s, and it is still there", outside.Quoted(b.Name, 300))
	}
	return err
}

// ProofText is the content of an object beside the lock, on which a store shows that it obeys conditions. The object
// stays.
const ProofText = "statecrypt has shown here that this store refuses to replace an object that must not be there. You may delete it.\n"

// Trial stores the object of the proof under conditions. If the store refuses a condition, the error is
// [store.ErrChanged].
type Trial struct {
	Look    func(ctx context.Context) (version string, err error) // returns the version of the object
	Create  func(ctx context.Context) (version string, err error) // requires that there is no object
	Replace func(ctx context.Context, version string) (next string, err error)
}

// Prove returns an error if the store ignores conditions, or refuses a condition that is met. A test with the lock
// would come too late, because a store that ignores conditions would replace the lock of another run.
func (t Trial) Prove(ctx context.Context) error {
	version, err := t.Create(ctx)
	if err == nil { // the object did not exist before
		_, err = t.Create(ctx)
	}
	switch {
	case err == nil:
		return errors.New("the store replaces an object although the request says that there must be none: two runs would both hold the " +
			"lock, and each would release that of the other. Keep the state elsewhere")
	case !errors.Is(err, store.ErrChanged):
		return err
	}
	if version, err = t.replace(ctx, version); err != nil {
		return err
	}
	switch _, err = t.Replace(ctx, version); {
	case err == nil:
		return errors.New("the store replaces an object although the request names another version: a run would write over the state of " +
			"another one. Keep the state elsewhere")
	case !errors.Is(err, store.ErrChanged):
		return err
	}
	return nil
}

// replace replaces a version that is there, and returns it. If the store refuses, another run may have replaced it just
// before; of several runs that try at once, one succeeds in each round.
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
	return "", errors.New("the store refuses to replace an object, although the request names the version that is there. Keep the state " +
		"elsewhere")
}
