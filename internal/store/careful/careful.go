// Package careful decorates a state with checks for lost responses, and for servers that report success without keeping
// the state.
package careful

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// New returns a state that checks a failed lock or write again, because the response may have been lost, or may answer
// a repeated request. It requests the lock again with the same ID, or reads the state. If the lock is ours, or the
// store has the state that was sent, the call succeeded.
//
// Unless the store verifies its own success reports, the returned state also reads back the first state that a run
// creates and the first state that it replaces, and checks that a removed state is gone. Some servers report success,
// although they misunderstood the request. The returned state reads back every write for which the store returns no
// version.
//
// If the store cannot be read after a write, the sent state may show up before the next write. That write then
// attributes it to this run, and not to another writer.
func New(s store.State, p store.Properties) store.State {
	return &careful{State: s, known: p, proven: map[bool]bool{}}
}

type careful struct {
	store.State
	known store.Properties

	mu     sync.Mutex
	sent   []store.Version // the [store.Identity] of each state sent since the last success, which the store may have
	proven map[bool]bool   // whether a written state was read back; the key tells whether it replaced a state
}

// Unwrap returns the decorated state.
func (c *careful) Unwrap() store.State { return c.State }

func (c *careful) Lock(ctx context.Context, lock store.Lock) error {
	err := c.State.Lock(ctx, lock)
	if err != nil && lock.ID != "" && isAmbiguous(err) && c.State.Lock(ctx, lock) == nil { // the same ID, so this takes no second lock
		return nil
	}
	return err
}

// isAmbiguous reports whether a request may have succeeded despite its error.
func isAmbiguous(err error) bool {
	answer, isAnswer := errors.AsType[*store.AnswerError](err)
	_, isUnanswered := errors.AsType[*store.UnansweredError](err)
	return isUnanswered || isAnswer && answer.Status >= 500
}

func (c *careful) Write(ctx context.Context, data []byte, read store.Version) (store.Version, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.sent, store.Identity(data)) { // the caller tries again
		if now, ours, _ := c.isThere(ctx, store.Identity(data)); ours {
			c.sent = nil
			return now, nil
		}
	}
	if now, ours, _ := c.isThere(ctx, c.sent...); ours {
		read = now
	}
	next, err := c.State.Write(ctx, data, read)
	if !errors.Is(err, store.ErrUnfinished) && (err != nil || next == "" || !c.known.Verifies && !c.proven[read != ""]) {
		now, ours, unread := c.isThere(ctx, store.Identity(data))
		switch {
		case ours:
			next, err = now, nil
			c.proven[read != ""] = true
		case err != nil:
		case unread != nil:
			err = fmt.Errorf("%w: %w", store.ErrUnseen, unread)
		default:
			err = cmp.Or(c.known.Unkept, store.ErrUnkept)
		}
	}
	switch {
	case err == nil:
		c.sent = nil
	case isAmbiguous(err), errors.Is(err, store.ErrUnfinished):
		c.sent = append(c.sent, store.Identity(data))
	}
	return next, err
}

func (c *careful) Remove(ctx context.Context, read store.Version) error {
	if err := c.State.Remove(ctx, read); err != nil || c.known.Verifies {
		return err
	}
	there, _, err := c.State.Read(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("could not check that the state was removed: %w", err)
	case len(there) > 0:
		return store.ErrUnremoved
	}
	return nil
}

// isThere reports whether the [store.Identity] of the state in the store is in states, and returns the version of that
// state.
func (c *careful) isThere(ctx context.Context, states ...store.Version) (store.Version, bool, error) {
	if len(states) == 0 {
		return "", false, nil
	}
	there, now, err := c.State.Read(ctx)
	if err != nil || len(there) == 0 || !slices.Contains(states, store.Identity(there)) {
		return "", false, err
	}
	return now, true, nil
}
