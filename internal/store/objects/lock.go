package objects

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// Slot stores a lock: in an object next to the state, in a lease, or in a table item. Each stored lock has a mark that
// identifies it.
type Slot interface {
	// Look returns the lock and its mark, or nil if the slot is free.
	Look(ctx context.Context) (by *store.Lock, mark string, err error)

	// Add stores a lock and returns its mark. If there is a lock already, Add returns a [TakenError].
	Add(ctx context.Context, lock store.Lock) (mark string, err error)

	// Drop removes the lock with this mark.
	Drop(ctx context.Context, mark string) error
}

// TakenError means that there is a lock already. Its text is shown only if the holder cannot be found.
type TakenError struct{ Err error }

func (e TakenError) Error() string { return e.Err.Error() }

// Lock is the lock in one slot. It remembers whether this process holds the lock.
type Lock struct {
	Slot

	// ByMark means that users and other programs identify a lock by its mark, not by the lock ID.
	ByMark bool

	mu   sync.Mutex
	held *held // nil if we do not hold the lock
}

// held is a lock that we hold.
type held struct {
	store.Lock
	mark string
}

// shown returns a copy of the lock with the ID that users see.
func (l *Lock) shown(by store.Lock, mark string) *store.Lock {
	if l.ByMark {
		by = by.At(by.Path)
		by.ID = mark
	}
	return &by
}

// is reports whether id identifies the lock. It may be the lock ID or the ID that users see.
func (l *Lock) is(by *store.Lock, mark, id string) bool {
	return by != nil && (by.ID == id || l.ByMark && mark == id)
}

func (l *Lock) take(ctx context.Context, lock store.Lock) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.held != nil && l.held.ID != lock.ID:
		return &store.HeldError{By: l.shown(l.held.Lock, l.held.mark)}
	case l.held != nil:
		return nil
	}
	for try := 0; ; try++ {
		mark, err := l.Add(ctx, lock)
		if err == nil {
			l.held = &held{lock, mark}
			return nil
		}
		if ctx.Err() != nil { // the request may have succeeded, and nobody would release the lock
			return errors.Join(context.Cause(ctx), l.takeBack(ctx, lock.ID))
		}
		taken, isTaken := errors.AsType[TakenError](err)
		by, mark, failed := l.Look(ctx)
		switch {
		case failed != nil && isTaken:
			return failed
		case failed != nil:
			return err
		case by != nil && (by.ID != lock.ID || lock.ID == ""):
			return &store.HeldError{By: l.shown(*by, mark)}
		case by != nil:
			l.held = &held{lock, mark}
			return nil
		case !isTaken:
			return err
		case try == MaxTries:
			return taken.Err
		}
		if err := Pause(ctx); err != nil { // the other lock has been released
			return err
		}
	}
}

// takeBack removes our lock after the caller has stopped waiting for it.
func (l *Lock) takeBack(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	by, mark, err := l.Look(ctx)
	if err == nil && by != nil && by.ID == id {
		err = l.Drop(ctx, mark)
	}
	return err
}

// giveBack releases the lock with this ID, even if it belongs to another run. It reports whether the lock was ours.
func (l *Lock) giveBack(ctx context.Context, id string) (ours bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ours = l.held != nil && l.is(&l.held.Lock, l.held.mark, id)
	by, mark, err := l.Look(ctx)
	switch {
	case err != nil:
		return ours, err
	case l.is(by, mark, id):
		if err = l.remove(ctx, by.ID, mark); err != nil {
			return ours, err
		}
	case by == nil:
		err = store.ErrMissing
	case ours:
		err = store.ErrLost
	default:
		return false, &store.HeldError{By: l.shown(*by, mark)}
	}
	if ours {
		l.held = nil
	}
	return ours, err
}

// remove removes the lock with this mark. If an attempt fails but the lock is gone, only the response was lost, and
// remove returns nil.
func (l *Lock) remove(ctx context.Context, id, mark string) error {
	for try := 0; ; try++ {
		err := l.Drop(ctx, mark)
		if err == nil {
			return nil
		}
		by, now, failed := l.Look(ctx)
		if failed == nil && (by == nil || by.ID != id) {
			return nil
		}
		if _, unanswered := errors.AsType[*store.UnansweredError](err); failed != nil || !unanswered || try == MaxTries {
			return err
		}
		if stopped := Pause(ctx); stopped != nil {
			return stopped
		}
		mark = now
	}
}

// mayChange returns an error if another run holds the lock, or if we have lost ours.
func (l *Lock) mayChange(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	by, mark, err := l.Look(ctx)
	switch {
	case err != nil:
		return err
	case l.held != nil && (by == nil || mark != l.held.mark):
		return store.ErrLost
	case l.held == nil && by != nil:
		return &store.HeldError{By: l.shown(*by, mark)}
	}
	return nil
}

// Locks holds the locks of a state, in the order in which they are taken.
type Locks []*Lock

// Take takes all locks, or none if one fails.
func (l Locks) Take(ctx context.Context, lock store.Lock) error {
	for i, one := range l {
		err := one.take(ctx, lock)
		if err == nil {
			continue
		}
		for _, taken := range slices.Backward(l[:i]) {
			_, failed := taken.giveBack(context.WithoutCancel(ctx), lock.ID)
			err = errors.Join(err, failed)
		}
		return err
	}
	return nil
}

// Unlock releases the locks with this ID, the last one first.
func (l Locks) Unlock(ctx context.Context, id string) (err error) {
	for i, one := range slices.Backward(l) {
		ours, failed := one.giveBack(ctx, id)
		if i > 0 && !ours && errors.Is(failed, store.ErrMissing) {
			continue // the holder's run ended before it took this lock
		}
		err = errors.Join(err, failed)
		if failed != nil && !ours {
			break
		}
	}
	return err
}

// Holder returns the first lock that it finds, or nil if all are free. If the state has no locks, it returns
// [store.ErrHolderUnknown].
func (l Locks) Holder(ctx context.Context) (by *store.Lock, err error) {
	err = store.ErrHolderUnknown
	for _, one := range slices.Backward(l) {
		var mark string
		if by, mark, err = one.Look(ctx); by != nil && err == nil {
			return one.shown(*by, mark), nil
		}
		if err != nil {
			break
		}
	}
	return nil, err
}

// MayChange returns an error if another run holds one of the locks, or if we have lost one of ours.
func (l Locks) MayChange(ctx context.Context) error {
	for _, one := range l {
		if err := one.mayChange(ctx); err != nil {
			return err
		}
	}
	return nil
}

// NameOf returns the ID that users see for our lock with this ID.
func (l Locks) NameOf(id string) string {
	for _, one := range l {
		one.mu.Lock()
		if one.held != nil && one.held.ID == id {
			id = one.shown(one.held.Lock, one.held.mark).ID
		}
		one.mu.Unlock()
	}
	return id
}
