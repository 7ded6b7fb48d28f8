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

// childLock is the child's lock for this run. If the real backend has locks, the child's lock is also a lock there.
// Otherwise, childLock still keeps out other programs that find the address of the proxy.
type childLock struct {
	mu    sync.Mutex
	given bool        // whether the child was ever given a lock
	id    string      // the ID of the last lock given to the child
	held  *store.Lock // the lock as it was requested, or nil if it is free
	stuck bool        // whether the last release failed

	forced string // the lock ID in the arguments of force-unlock
}

// refuseAll makes every lock request fail, so that the child gets no lock.
func (l *childLock) refuseAll() { l.id, l.held = rand.Text(), &store.Lock{} }

// check returns an error if id, sent with a write, differs from the ID of the last lock given to the child.
func (l *childLock) check(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given && id != l.id {
		return errors.New("the request does not come from the program that holds the lock")
	}
	return nil
}

// isHeld reports whether the child holds the lock. If the real backend has locks, the child then holds a lock there
// too.
func (l *childLock) isHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.given && l.held != nil
}

// lockID returns the lock ID in a request that changes the state.
func lockID(r *http.Request) string { return r.URL.Query().Get("ID") }

// giveLock acquires the backend lock for the child. It gives up when the child stops waiting, because nobody would
// release the lock.
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
	lock, _ := store.ParseLock(body) // an invalid document has an empty ID, like a write without a lock
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

// noteHolder tells the user who holds the lock. It returns false if err does not name the holder.
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
		err = p.backend.Unlock(ctx, held.By.ID) // the user copied the lock ID from an error message, where it was escaped
	}
	if l.stuck = err != nil; l.stuck {
		p.refuse(r.Context(), w, err)
		return
	}
	l.held = nil
	pass(w, http.StatusOK, nil)
}

// Settle handles a lock that the child has not released. It releases the lock if the command only reads, because that
// lock protects nothing, or if locks of this backend end with the process. It retries a failed release. It keeps all
// other locks, because only such a lock shows that the command may have made changes that are in no state. Settle also
// returns an error if the child exited before it took a lock. If the child was not meant to take a lock, only an exit
// code above 128 shows that it was stopped early.
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
		if err := p.backend.GiveBack(ctx, l.id); !errors.Is(err, store.ErrMissing) { // the failed request had released it
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
		return fmt.Errorf(left+". Then remove the lock in the backend", "")
	}
	id := p.backend.NameOf(l.id)
	return fmt.Errorf(left+". Then %s", " "+outside.Quoted(id, 100), store.Unlocking(id))
}
