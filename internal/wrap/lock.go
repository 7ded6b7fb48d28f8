package wrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
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

// begin takes what the child is told of locks on its command line. If it takes none, nobody
// else gets one.
func (l *childLock) begin(call *invocation) {
	if call.Name == "force-unlock" && len(call.args) > 0 {
		l.forced = call.args[0]
	}
	if call.isOff("lock") {
		l.id, l.held = rand.Text(), &store.Lock{}
	}
}

// check refuses a write of somebody who does not have the lock that was given out.
func (l *childLock) check(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given && id != l.id {
		return errors.New("it comes from another program than the one that has the lock")
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
func (p *proxy) giveLock(w http.ResponseWriter, r *http.Request) {
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
	lock, _ := store.ParseLock(body) // of what is none, the ID is empty, as that of a write without one
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
func (p *proxy) noteHolder(err error) bool {
	held, ok := errors.AsType[*store.HeldError](err)
	if !ok || held.By == nil {
		return false
	}
	p.tell(held.By.Holder())
	return true
}

func (p *proxy) takeBack(w http.ResponseWriter, r *http.Request) {
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

// settle is about a lock that the child has left: the one of a command that only reads
// protects nothing. Any other stays, because what the command has changed may be in no
// state, and nothing else says so. If it is not in the backend, that is said, too;
// of a child that was to take none, only a signal tells that it has not come to its end.
func (p *proxy) settle(ctx context.Context, code int) error {
	const signalled = 128
	l := &p.lock
	there := l.given && p.backend.HasLocks
	switch {
	case l.held == nil || !l.given && code <= signalled || !there && p.call.effect() == reads:
		return nil
	case !there:
		return errors.New("the program has ended before it was done: what it has changed may be in no state. Look at it before the next run")
	case l.stuck:
		if err := p.backend.giveBack(ctx, l.id); !errors.Is(err, store.ErrMissing) { // or it was given back, and the answer was lost
			return err
		}
		return nil
	case p.call.effect() == reads:
		return p.backend.giveBack(ctx, l.id)
	case p.backend.EndsWithProcess:
		return errors.Join(p.backend.giveBack(ctx, l.id), errors.New("the program has ended without giving back its lock: what it has changed "+
			"may be in no state. Look at it before the next run"))
	}
	const left = "the program has ended without giving back the lock%s, which stays: what it has changed may be in no state"
	if l.id == "" {
		return fmt.Errorf(left+". When you have looked, remove it where the backend keeps it", "")
	}
	return fmt.Errorf(left+". When you have looked, %s", " "+outside.Quoted(l.id, 100), store.Unlocking(l.id))
}

// underLock does work while it has the lock, if there are locks. An interrupt does not end
// a request: a server may go on with what it has got, after the lock was given back.
func (b *backend) underLock(ctx context.Context, operation string, work func() error) (err error) {
	if !b.HasLocks {
		return work()
	}
	lock := store.NewLock(operation)
	if err := b.Lock(context.WithoutCancel(ctx), lock); err != nil {
		return fmt.Errorf("the state cannot be locked: %w", err)
	}
	defer func() {
		stuck := b.giveBack(context.WithoutCancel(ctx), lock.ID)
		if err == nil && stuck != nil {
			stuck = &StuckError{stuck}
		}
		err = errors.Join(err, stuck)
	}()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return work()
}

// StuckError is that all was done under a lock, and that it was not given back.
type StuckError struct{ Err error }

func (e *StuckError) Error() string { return e.Err.Error() }

// Unwrap returns what went wrong.
func (e *StuckError) Unwrap() error { return e.Err }

func (b *backend) giveBack(ctx context.Context, id string) error {
	if err := b.Unlock(ctx, id); err != nil {
		return fmt.Errorf("the lock %s was not given back, and force-unlock of the CLI does it: %w", id, err)
	}
	return nil
}

// keep puts a sealed state into the backend, unless ctx has ended. As the first write of a run, it is
// looked at, see [careful.New]: many servers answer 200 to anything, and the user may
// delete the old state.
func (b *backend) keep(ctx context.Context, sealed []byte, read store.Version) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	_, err := b.Write(context.WithoutCancel(ctx), sealed, read)
	if errors.Is(err, store.ErrUnseen) {
		err = fmt.Errorf("%w; keep what there was", err)
	}
	return err
}

// Look reads a state, "" for that of the block, and who has its lock, as far as that is told.
func (s *States) Look(ctx context.Context, name string) (state []byte, holder *store.Lock, err error) {
	b, err := s.state(name)
	if err == nil {
		state, _, err = b.Read(ctx)
	}
	if err == nil && state == nil {
		err = b.none()
	}
	if err != nil {
		return nil, nil, err
	}
	if holder, err = b.Holder(ctx); err != nil && !errors.Is(err, store.ErrUntold) {
		say(s.options.Stderr, "warning: who has the lock cannot be told: "+err.Error())
	}
	return state, holder, nil
}

// IsSettled reports whether others who compare a state with something accept it.
func (s *States) IsSettled(ctx context.Context, name string, state []byte) (bool, error) {
	b, err := s.state(name)
	if err != nil {
		return false, err
	}
	if d, ok := store.As[store.Digested](b.State); ok {
		return d.IsSettled(ctx, state)
	}
	return true, nil
}

// ErrNone is that there is no state.
var ErrNone = errors.New("there is none")

func (b *backend) none() error {
	return fmt.Errorf("%w at %s; check the address", ErrNone, outside.Line(b.String(), 300))
}

// Rotate replaces a state, "" for that of the block, by what change makes of it, under the
// lock. If that is nil, the state stays, and change has left it as it was.
func (s *States) Rotate(ctx context.Context, name string, change func(state []byte) ([]byte, error)) error {
	b, err := s.state(name)
	if err != nil {
		return err
	}
	if !b.HasLocks {
		say(s.options.Stderr, "warning: the backend has no lock; nobody may write the state meanwhile")
	}
	err = b.underLock(ctx, "statecrypt rotate", func() error {
		state, version, err := b.Read(ctx)
		switch {
		case err != nil:
			return err
		case state == nil:
			return b.none()
		}
		labelled := isLabelled(state)
		changed, err := change(state)
		switch {
		case err != nil:
			return err
		case changed == nil:
			return b.settle(ctx, state)
		}
		if labelled { // or the server takes others
			b.noteForm(s.options.Stderr, changed)
		}
		return b.keep(ctx, changed, version)
	})
	return errors.Join(err, b.lookAgain(context.WithoutCancel(ctx)))
}
