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

// childLock is the lock of this run. If the real backend has locks, it is one of them; if it has none, childLock
// still keeps out other programs that find the address of the proxy.
type childLock struct {
	mu    sync.Mutex
	given bool        // whether the lock was ever given out
	id    string      // the ID of the last lock that was given out
	held  *store.Lock // the lock as it was requested; nil if nobody has it
	stuck bool        // whether the last release failed

	forced string // the ID that force-unlock names
}

// refuseAll makes every request for the lock fail, so the child gets none.
func (l *childLock) refuseAll() { l.id, l.held = rand.Text(), &store.Lock{} }

// check returns an error for a write whose ID is not the ID of the last lock that was given out.
func (l *childLock) check(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given && id != l.id {
		return errors.New("it comes from another program than the one that holds the lock")
	}
	return nil
}

// isHeld reports whether the child has the lock, which is also a lock of the real backend if that has locks.
func (l *childLock) isHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.given && l.held != nil
}

// lockID returns the ID of the lock in a request that changes the state.
func lockID(r *http.Request) string { return r.URL.Query().Get("ID") }

// giveLock takes the lock of the backend and gives it to the child. It stops when the child stops waiting, because
// nobody would release that lock.
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
	lock, _ := store.ParseLock(body) // an invalid document has an empty ID, and so has a write without a lock
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

// noteHolder tells the user who has the lock. It returns false if err does not name the holder.
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
		given, _ := store.ParseLock(body) // an invalid document has an empty ID
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
		err = p.backend.Unlock(ctx, held.By.ID) // the user named the lock as an error showed it
	}
	if l.stuck = err != nil; l.stuck {
		p.refuse(r.Context(), w, err)
		return
	}
	l.held = nil
	pass(w, http.StatusOK, nil)
}

// Settle handles a lock that the child has not released. It releases the lock of a command that only reads, which
// protects nothing, and locks that end with the process, and it tries again to release a lock that could not be
// released. It keeps all other locks, because only they show that changes of the command may be in no state. It also
// returns an error if the child ended before it took a lock. If the child was to take no lock, only an exit code
// above 128 shows that it ended early.
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
		if err := p.backend.GiveBack(ctx, l.id); !errors.Is(err, store.ErrMissing) { // or only the answer was lost
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
	id := p.backend.NameOf(l.id)
	return fmt.Errorf(left+"; then %s", " "+outside.Quoted(id, 100), store.Unlocking(id))
}
