package wrap

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

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
	var held lockInfo
	if a == nil || a.status != http.StatusLocked && a.status != http.StatusConflict || json.Unmarshal(a.body, &held) != nil {
		return err
	}
	return fmt.Errorf("%w: %s has the lock %s since %s, for %s", err, outside.Quoted(cmp.Or(held.Who, "somebody"), 100),
		outside.Quoted(held.ID, 100), outside.Quoted(held.Created, 100), outside.Quoted(held.Operation, 100))
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

// store puts a sealed state into the backend, unless ctx has ended.
func (b *backend) store(ctx context.Context, id string, sealed []byte) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	_, err := b.send(ctx, b.write, id, sealed)
	return err
}

// Rotate replaces the state in the backend by what change makes of it, under the lock.
// If that is nil, the state stays.
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
			err = b.store(ctx, id, changed)
		}
		return err
	})
}
