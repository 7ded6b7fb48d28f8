package wrap

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// lockInfo is what Terraform says of a lock.
type lockInfo struct {
	ID        string
	Operation string
	Who       string `json:",omitempty"` // of others; it would name the machine and its user
	Created   string
}

// holder is who has a lock by the answer of a backend, "" if the answer does not say so.
func holder(answer []byte) string {
	var held lockInfo
	if json.Unmarshal(answer, &held) != nil {
		return ""
	}
	text := fmt.Sprintf("%s has the lock %s since %s, for %s", outside.Quoted(cmp.Or(held.Who, "somebody"), 100),
		outside.Quoted(held.ID, 100), outside.Quoted(held.Created, 100), outside.Quoted(held.Operation, 100))
	if held.ID != "" {
		text += "; if that has ended, " + unlocking(held.ID)
	}
	return text
}

// unlocking says how a lock is given back that somebody has left.
func unlocking(id string) string {
	return "statecrypt wrap -config FILE -- terraform force-unlock " + outside.Quoted(id, 100) + " gives it back"
}

// childLock is the lock of this run. If the real backend has locks, it is one of them;
// if it has none, other programs that find this address are still kept out.
type childLock struct {
	mu    sync.Mutex
	given bool   // to somebody, at any time
	id    string // of the last one
	held  []byte // as it was asked for, nil if nobody has it
	known string // the last holder that the user was told of

	forced string // the ID that force-unlock names
}

// begin takes what the child is told of locks on its command line. If it takes none, nobody
// else gets one.
func (l *childLock) begin(call *invocation) {
	if call.name == "force-unlock" && len(call.args) > 0 {
		l.forced = call.args[0]
	}
	if call.isOff("lock") {
		l.id, l.held = rand.Text(), []byte("{}")
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
	a := &answer{status: http.StatusOK}
	switch {
	case l.held != nil:
		a = &answer{status: http.StatusLocked, body: l.held}
	case p.backend.lock.url != nil:
		a = p.ask(r.Context(), w, p.backend.lock, "", body)
	}
	if a == nil {
		return
	}
	if who := holder(a.body); a.isHeld() && l.held == nil && who != "" && who != l.known { // a child that waits asks again and again
		say(p.stderr, who)
		l.known = who
	}
	if a.succeeded() {
		var info lockInfo
		_ = json.Unmarshal(body, &info) // of what is none, the ID is empty, as that of a write without one
		l.given, l.id, l.held = true, info.ID, body
	}
	p.pass(w, a, a.isHeld())
}

func (p *proxy) takeBack(w http.ResponseWriter, r *http.Request) {
	body, ok := p.receive(w, r)
	if !ok {
		return
	}
	if len(body) == 0 && p.lock.forced != "" { // as OpenTofu does by itself
		body, _ = json.Marshal(struct{ ID string }{p.lock.forced})
	}
	l := &p.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	var info lockInfo
	_ = json.Unmarshal(body, &info) // as above
	a := &answer{status: http.StatusOK}
	switch {
	case l.held != nil && info.ID != l.id:
		a = &answer{status: http.StatusConflict, body: l.held}
	case p.backend.unlock.url != nil && (l.held == nil || p.backend.lock.url != nil):
		a = p.ask(context.WithoutCancel(r.Context()), w, p.backend.unlock, lockID(r), body)
	}
	if a == nil {
		return
	}
	if a.succeeded() {
		l.held = nil
	}
	p.pass(w, a, a.isHeld())
}

// settle is about a lock that the child has left: the one of a command that only reads
// protects nothing. Any other stays, because what the command has changed may be in no
// state, and nothing else says so.
func (p *proxy) settle(ctx context.Context, call *invocation) error {
	l := &p.lock
	switch {
	case l.held == nil || !l.given || p.backend.lock.url == nil:
		return nil
	case call.effect() == reads:
		return p.backend.giveBack(ctx, l.id, l.held)
	}
	const left = "the program has ended without giving back the lock%s, which stays: what it has changed may be in no state"
	if l.id == "" {
		return fmt.Errorf(left+". When you have looked, remove it where the backend keeps it", "")
	}
	return fmt.Errorf(left+". When you have looked, %s", " "+outside.Quoted(l.id, 100), unlocking(l.id))
}

// underLock does work while it has the lock, if there are locks. Work gets its ID.
func (b *backend) underLock(ctx context.Context, operation string, work func(id string) error) (err error) {
	if b.lock.url == nil {
		return work("")
	}
	id := rand.Text()
	lock, err := json.Marshal(lockInfo{ID: id, Operation: operation, Created: time.Now().UTC().Format(time.RFC3339)})
	if err == nil {
		err = b.takeLock(ctx, lock)
	}
	if err != nil {
		return fmt.Errorf("the state cannot be locked: %w", err)
	}
	defer func() { err = errors.Join(err, b.giveBack(ctx, id, lock)) }()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return work(id)
}

func (b *backend) giveBack(ctx context.Context, id string, lock []byte) error {
	if b.unlock.url == nil {
		return nil
	}
	if _, err := b.send(ctx, b.unlock, "", lock); err != nil {
		return fmt.Errorf("the lock %s was not given back, and force-unlock of the CLI does it: %w", id, err)
	}
	return nil
}

// takeLock says who has the lock, if somebody has.
func (b *backend) takeLock(ctx context.Context, lock []byte) error {
	a, err := b.send(ctx, b.lock, "", lock)
	if a != nil && a.isHeld() {
		if who := holder(a.body); who != "" {
			err = fmt.Errorf("%w: %s", err, who)
		}
	}
	return err
}

// send sends a request that has to succeed. An interrupt does not end it: a server may
// go on with what it has got, after the lock was given back.
func (b *backend) send(ctx context.Context, to endpoint, id string, body []byte) (*answer, error) {
	a, err := b.ask(context.WithoutCancel(ctx), to, id, body)
	if err == nil && !a.succeeded() {
		err = errors.New(b.answered(a.status))
	}
	return a, err
}

// state returns what is in the backend, nil if that is nothing.
func (b *backend) state(ctx context.Context) ([]byte, error) {
	a, err := b.ask(ctx, b.read, "", nil)
	switch {
	case err != nil:
		return nil, err
	case a.isAbsent():
		return nil, nil
	case a.status != http.StatusOK:
		return nil, errors.New(b.answered(a.status))
	}
	return a.body, nil
}

// errNotReadBack is about a state that was sent, and may be in the backend or not.
var errNotReadBack = errors.New("it was written to the backend, and cannot be read back, so keep what there was")

// store puts a sealed state into the backend, unless ctx has ended, and looks whether it is
// there: many a server answers 200 to whatever it gets, and the user may delete the old state.
func (b *backend) store(ctx context.Context, id string, target encryption.Target, sealed []byte) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if _, err := b.send(ctx, b.write, id, sealed); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	there, err := b.state(ctx)
	if err == nil && !bytes.Equal(there, sealed) {
		err = expectSame(ctx, target, there, sealed)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errNotReadBack, err)
	}
	return err
}

// expectSame compares what is in two files: a backend may keep JSON in another form.
func expectSame(ctx context.Context, target encryption.Target, there, sealed []byte) error {
	found, err := target.Decrypt(ctx, there)
	wanted, errWanted := target.Decrypt(ctx, sealed)
	if err != nil || errWanted != nil || !found.Encrypted || !bytes.Equal(found.Data, wanted.Data) {
		return errors.New("the backend has something else than what was written")
	}
	return nil
}

// Rotate replaces the state in the backend by what change makes of it, under the lock.
// If that is nil, the state stays. The target of the options opens what change makes.
func Rotate(ctx context.Context, o Options, change func(state []byte) ([]byte, error)) error {
	noteVariables(o)
	b, err := newBackend(o.Backend, world.Lookup(o.Environ))
	if err != nil {
		return err
	}
	if b.lock.url == nil {
		say(o.Stderr, "warning: the backend has no lock_address; nobody may write the state meanwhile")
	}
	return b.underLock(ctx, "statecrypt rotate", func(id string) error {
		state, err := b.state(ctx)
		switch {
		case err != nil:
			return err
		case state == nil:
			return fmt.Errorf("there is none at %s; check the address", outside.Line(source.Public(b.read.url), 300))
		}
		changed, err := change(state)
		if err == nil && changed != nil {
			err = b.store(ctx, id, o.State, changed)
		}
		return err
	})
}
