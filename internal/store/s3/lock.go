package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	s3source "github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// slot stores a lock, either in an object next to the state or in a table item. A mark identifies each lock there.
type slot interface {
	// look returns the lock and its mark, or nil if the lock is free.
	look(ctx context.Context) (by *store.Lock, mark string, err error)

	// add stores a lock, and returns its mark. If there already is a lock, the error is a [takenError].
	add(ctx context.Context, lock store.Lock) (mark string, err error)

	// drop removes the lock with this mark.
	drop(ctx context.Context, mark string) error
}

// takenError means that there already is a lock. Its text is shown if look never finds the holder.
type takenError struct{ error }

// lockIn is the lock in one slot.
type lockIn struct {
	slot

	mu   sync.Mutex
	held *held // our lock, or nil
}

// held is our lock.
type held struct {
	store.Lock
	mark string
}

func (l *lockIn) take(ctx context.Context, lock store.Lock) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.held != nil && l.held.ID != lock.ID:
		return &store.HeldError{By: &l.held.Lock}
	case l.held != nil:
		return nil
	}
	for try := 0; ; try++ {
		mark, err := l.add(ctx, lock)
		if err == nil {
			l.held = &held{lock, mark}
			return nil
		}
		if ctx.Err() != nil { // the store may have the lock, but nobody would use it
			return errors.Join(context.Cause(ctx), l.takeBack(ctx, lock.ID))
		}
		taken, isTaken := errors.AsType[takenError](err)
		by, mark, failed := l.look(ctx)
		switch {
		case failed != nil && isTaken:
			return failed
		case failed != nil:
			return err
		case by != nil && (by.ID != lock.ID || lock.ID == ""):
			return &store.HeldError{By: by}
		case by != nil:
			l.held = &held{lock, mark}
			return nil
		case !isTaken:
			return err
		case try == maxTries:
			return taken.error
		}
		if err := pause(ctx); err != nil { // the other lock has been released in the meantime
			return err
		}
	}
}

// takeBack removes a lock whose requester has stopped waiting.
func (l *lockIn) takeBack(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	by, mark, err := l.look(ctx)
	if err == nil && by != nil && by.ID == id {
		err = l.drop(ctx, mark)
	}
	return err
}

// giveBack releases the lock with this ID, even if it belongs to another run. It reports whether the lock was ours.
func (l *lockIn) giveBack(ctx context.Context, id string) (ours bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ours = l.held != nil && l.held.ID == id
	by, mark, err := l.look(ctx)
	switch {
	case err != nil:
		return ours, err
	case by != nil && by.ID == id:
		if err = l.remove(ctx, id, mark); err != nil {
			return ours, err
		}
	case by == nil:
		err = store.ErrMissing
	case ours:
		err = store.ErrLost
	default:
		return false, &store.HeldError{By: by}
	}
	if ours {
		l.held = nil
	}
	return ours, err
}

// remove removes the lock with this mark. If there was an error but the lock is gone, the response was lost, and remove
// returns nil.
func (l *lockIn) remove(ctx context.Context, id, mark string) error {
	for try := 0; ; try++ {
		err := l.drop(ctx, mark)
		if err == nil {
			return nil
		}
		by, now, failed := l.look(ctx)
		if failed == nil && (by == nil || by.ID != id) {
			return nil
		}
		if _, unanswered := errors.AsType[*store.UnansweredError](err); failed != nil || !unanswered || try == maxTries {
			return err
		}
		if stopped := pause(ctx); stopped != nil {
			return stopped
		}
		mark = now
	}
}

// mayChange returns an error if someone else holds the lock, or if our lock is gone.
func (l *lockIn) mayChange(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	by, mark, err := l.look(ctx)
	switch {
	case err != nil:
		return err
	case l.held != nil && (by == nil || mark != l.held.mark):
		return store.ErrLost
	case l.held == nil && by != nil:
		return &store.HeldError{By: by}
	}
	return nil
}

// pause waits for 100 ms, so that another process may finish.
func pause(ctx context.Context) error { return store.Pause(ctx, 100*time.Millisecond) }

// lockObject is the lock in an object next to a state.
type lockObject struct{ *state }

func (o lockObject) look(ctx context.Context) (by *store.Lock, mark string, err error) {
	c, err := o.get(ctx, o.key+lockSuffix, source.MaxLock)
	if err != nil || c == nil {
		return nil, "", err
	}
	by, err = store.LockIn(c.Data, "object", outside.Quoted(o.key+lockSuffix, 300))
	return by, c.ETag, err
}

// add creates the lock object. On stores other than AWS, which may ignore conditions, it first looks for an existing
// lock.
func (o lockObject) add(ctx context.Context, lock store.Lock) (mark string, err error) {
	client, err := o.client(ctx)
	if err != nil {
		return "", err
	}
	if !s3source.IsAWS(client) {
		if by, _, err := o.look(ctx); err != nil || by != nil {
			return "", cmp.Or(err, error(takenError{&store.HeldError{By: by}}))
		}
	}
	if err := o.prove(ctx); err != nil {
		return "", err
	}
	mark, err = o.put(ctx, o.key+lockSuffix, lock.JSON(), condition{none: true, lock: true})
	if err == nil && o.unproven { // another run may have replaced the lock
		var by *store.Lock
		if by, mark, err = o.look(ctx); err == nil && (by == nil || by.ID != lock.ID) {
			err = store.ErrLost
		}
	}
	answer, _ := errors.AsType[*object.Answer](err)
	if answer != nil && (answer.Status == http.StatusPreconditionFailed || isConflict(answer)) {
		err = takenError{fmt.Errorf("the store refuses the lock although nobody has it (%d), as some do in a bucket that keeps versions once a "+
			"lock was released; keep the state in a bucket without versions, or on another store", answer.Status)}
	}
	return mark, err
}

// drop removes the lock object. On stores other than AWS, it checks that the object is gone.
func (o lockObject) drop(ctx context.Context, mark string) error {
	client, err := o.client(ctx)
	if err == nil {
		err = o.remove(ctx, o.key+lockSuffix, mark)
	}
	if err != nil || s3source.IsAWS(client) {
		return err
	}
	by, now, err := o.look(ctx)
	if err == nil && by != nil && now == mark {
		err = fmt.Errorf("the store says that it has removed the object %s, and it is still there", outside.Quoted(o.key+lockSuffix, 300))
	}
	return err
}

// Lock takes all locks that the block names, or none if one fails.
func (s *state) Lock(ctx context.Context, lock store.Lock) error {
	for i, l := range s.locks {
		err := l.take(ctx, lock.At(s.id()))
		if err == nil {
			continue
		}
		for _, taken := range slices.Backward(s.locks[:i]) {
			_, failed := taken.giveBack(context.WithoutCancel(ctx), lock.ID)
			err = errors.Join(err, failed)
		}
		return err
	}
	return nil
}

// Unlock releases the locks with this ID, in reverse order.
func (s *state) Unlock(ctx context.Context, id string) (err error) {
	for i, l := range slices.Backward(s.locks) {
		ours, failed := l.giveBack(ctx, id)
		if i > 0 && !ours && errors.Is(failed, store.ErrMissing) {
			continue // the holder of the other lock exited before it took this one
		}
		err = errors.Join(err, failed)
		if failed != nil && !ours {
			break
		}
	}
	return err
}

// Holder returns the holder of one of the locks, or [store.ErrHolderUnknown] if the block names no locks.
func (s *state) Holder(ctx context.Context) (by *store.Lock, err error) {
	err = store.ErrHolderUnknown
	for _, l := range slices.Backward(s.locks) {
		if by, _, err = l.look(ctx); by != nil || err != nil {
			break
		}
	}
	return by, err
}

// mayChange proves the conditions on which a write relies, and checks the locks.
func (s *state) mayChange(ctx context.Context) error {
	err := s.prove(ctx)
	for _, l := range s.locks {
		if err == nil {
			err = l.mayChange(ctx)
		}
	}
	return err
}
