package proxy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/cmdline"
)

// childLock is the lock of this run. If the real backend has locks, it is one of them;
// if it has none, other programs that find this address are still kept out.
type childLock struct {
	mu    sync.Mutex
	given bool        // to somebody, at any time
	id    string      // of the last one
	held  *store.Lock // as it was asked for, nil if nobody has it
	stuck bool        // it was to be given back, and that failed

	forced string // the ID that force-unlock names
}

// refuseAll gives the lock to nobody, and so none to the child.
func (l *childLock) refuseAll() { l.id, l.held = rand.Text(), &store.Lock{} }

// check refuses a write of somebody who does not have the lock that was given out.
func (l *childLock) check(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given && id != l.id {
		return errors.New("it comes from another program than the one that holds the lock")
	}
	return nil
}

// isHeld reports whether the child has the lock. If the real backend has locks, it is one of them.
func (l *childLock) isHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.given && l.held != nil
}

// lockID is the ID of the lock in a request that changes the state.
func lockID(r *http.Request) string { return r.URL.Query().Get("ID") }

// giveLock does not go on if the child does not wait for it: nobody would give the lock
// back.
func (p *Proxy) giveLock(w http.ResponseWriter, r *http.Request) {
	body, ok := p.receive(w, r)
	if !ok {
		return
	}
	l := &p.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != nil {
		pass(w, http.StatusLocked, shown(*l.held))
		return
	}
	lock, _ := store.ParseLock(body) // an invalid document has an empty ID, as a write without a lock has
	err := p.backend.Lock(r.Context(), lock)
	if err != nil {
		if p.noteHolder(err) {
			p.answer(r.Context(), w, err)
		} else {
			p.refuse(r.Context(), w, err)
		}
		return
	}
	l.given, l.id, l.held = true, lock.ID, &lock
	pass(w, http.StatusOK, nil)
}

// noteHolder says who has the lock, if that is told.
func (p *Proxy) noteHolder(err error) bool {
	held, ok := errors.AsType[*store.HeldError](err)
	if !ok || held.By == nil {
		return false
	}
	p.tell(held.By.Holder())
	return true
}

func (p *Proxy) takeBack(w http.ResponseWriter, r *http.Request) {
	body, ok := p.receive(w, r)
	if !ok {
		return
	}
	id := p.lock.forced // Terraform sends no ID
	if len(body) > 0 {
		given, _ := store.ParseLock(body) // as above
		id = given.ID
	}
	l := &p.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != nil && id != l.id {
		pass(w, http.StatusConflict, shown(*l.held))
		return
	}
	ctx := context.WithoutCancel(r.Context())
	err := p.backend.Unlock(ctx, id)
	if held, ok := errors.AsType[*store.HeldError](err); ok && held.By != nil && held.By.ID != id && outside.Line(held.By.ID, longest) == id {
		err = p.backend.Unlock(ctx, held.By.ID) // which the user has named as it was shown
	}
	if l.stuck = err != nil; l.stuck {
		p.refuse(r.Context(), w, err)
		return
	}
	l.held = nil
	pass(w, http.StatusOK, nil)
}

// Settle handles a lock that the child has left. It releases the lock of a command that only reads,
// which protects nothing. It keeps other locks, because the changes of the command may be in no state,
// and only the lock tells that. It also reports a missing lock. If the child was to take no lock, only
// a signal shows that it ended early.
func (p *Proxy) Settle(ctx context.Context, code int) error {
	const signalled = 128
	l := &p.lock
	there := l.given && p.backend.HasLocks
	switch {
	case l.held == nil || !l.given && code <= signalled || !there && p.effect == cmdline.Reads:
		return nil
	case !there:
		return errors.New("the program was stopped before it finished, so its changes may be missing from the state. Check the " +
			"resources before the next run")
	case l.stuck:
		if err := p.backend.GiveBack(ctx, l.id); !errors.Is(err, store.ErrMissing) { // or it was given back, and the answer was lost
			return err
		}
		return nil
	case p.effect == cmdline.Reads:
		return p.backend.GiveBack(ctx, l.id)
	case p.backend.EndsWithProcess:
		return errors.Join(p.backend.GiveBack(ctx, l.id), errors.New("the program ended without releasing its lock, so its changes "+
			"may be missing from the state. Check the resources before the next run"))
	}
	const left = "the program ended without releasing the lock%s, so its changes may be missing from the state. Check the resources first"
	if l.id == "" {
		return fmt.Errorf(left+", then remove the lock where the backend keeps it", "")
	}
	return fmt.Errorf(left+"; then %s", " "+outside.Quoted(l.id, 100), store.Unlocking(l.id))
}
