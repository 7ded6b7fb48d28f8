package states

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/all"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
)

// Backend is a module's state in a store.
type Backend struct {
	store.State
	store.Properties
	store store.Store
	kind  store.Kind

	recorded module.Recorded // the backend that the module used without wrap
	unread   error           // the error from reading the record
	unlocked bool            // whether the user turned locking off
	say      func(text string)

	open   atomic.Bool // whether the last file read is not an OpenTofu envelope
	plain  atomic.Bool // whether the last file read was a plaintext state
	sealed atomic.Bool // whether an encrypted state has replaced a plaintext state
}

// Read reads the state, and records whether programs can use it without wrap.
func (b *Backend) Read(ctx context.Context) ([]byte, store.Version, error) {
	state, version, err := b.State.Read(ctx)
	if err == nil {
		info, _ := encryption.Inspect(state) // if Inspect returns an error, the kind is unknown
		b.open.Store(state != nil && info.Kind != encryption.KindEncrypted)
		b.plain.Store(info.Kind == encryption.KindState)
	}
	return state, version, err
}

// Write writes an encrypted state, unless [Backend.mayEncrypt] returns an error. Only Write may replace a plaintext
// state with an encrypted one.
func (b *Backend) Write(ctx context.Context, sealed []byte, read store.Version) (store.Version, error) {
	if err := b.mayEncrypt(); err != nil {
		return "", err
	}
	next, err := b.State.Write(ctx, sealed, read)
	if err == nil && b.plain.Load() {
		b.sealed.Store(true)
	}
	return next, err
}

// mayEncrypt returns an error if Write would encrypt the state in place, but no lock keeps out users who work without
// wrap.
func (b *Backend) mayEncrypt() error {
	if !b.open.Load() {
		return nil
	}
	err := b.unread
	if err == nil || errors.Is(err, fs.ErrNotExist) { // without a record, the block shows which lock other users take
		_, err = b.succeeds(b.recorded)
	}
	if err == nil && b.unlocked && b.HasLocks {
		err = errors.New("with -lock=false, someone who works without wrap could write the state at the same time; remove -lock=false")
	}
	if err != nil {
		err = fmt.Errorf("it is not encrypted, and was not changed: %w", err)
	}
	return err
}

// succeeds reports whether this state is the one that the module used without wrap, in the backend r. It returns an
// error if our lock would not keep out users of that backend.
func (b *Backend) succeeds(r module.Recorded) (same bool, err error) {
	if s, ok := store.As[store.Shared](b.State); ok {
		return s.IsStateOf(r.Backend.Type, r.Backend.Config)
	}
	return false, nil
}

// settle writes the digest that other programs compare with the state, if the store has digests.
func (b *Backend) settle(ctx context.Context, state []byte) error {
	if s, ok := store.As[store.Digested](b.State); ok {
		return s.Settle(ctx, state)
	}
	return nil
}

// Keeps reports whether the file at path belongs to the state.
func (b *Backend) Keeps(path string) bool {
	local, ok := store.As[store.Local](b.State)
	return ok && local.Keeps(path)
}

// Lend returns a file for the child to inherit, so that the lock lasts until the child exits. It returns nil if there
// is no such file.
func (b *Backend) Lend() *os.File {
	if local, ok := store.As[store.Local](b.State); ok {
		return local.Lend()
	}
	return nil
}

// LookAgain returns an error if another user has overwritten the encrypted state in plaintext. This can happen if that
// user read the old state before it was encrypted, and took no lock.
func (b *Backend) LookAgain(ctx context.Context) error {
	if !b.sealed.Load() {
		return nil
	}
	there, _, err := b.State.Read(ctx)
	if err != nil {
		return fmt.Errorf("the state in the backend: %w", err)
	}
	if info, err := encryption.Inspect(there); err == nil && info.Kind == encryption.KindState {
		return errors.New("someone overwrote the encrypted state in the backend with plaintext, without the lock; make sure that " +
			"everybody uses wrap, then run " + moves + " again")
	}
	return nil
}

// noteForm prints a note if some servers would refuse the encrypted state, because it shows neither its serial nor its
// lineage.
func (b *Backend) noteForm(sealed []byte) {
	if b.kind.Looks && !isLabelled(sealed) {
		b.say("note: sops and age also encrypt the serial and the lineage of the state. Gitea and other servers that require " +
			"them will refuse the new state, and keep the old state")
	}
}

// isLabelled reports whether a file has its serial or lineage in plaintext.
func isLabelled(state []byte) bool {
	serial, lineage, err := store.Label(state)
	return err == nil && (serial != nil || lineage != "")
}

// Close releases locks that end with the process.
func (b *Backend) Close() error { return b.store.Close() }

// Backends returns the attribute tables of the block kinds that [Where] accepts.
func Backends() (tables []attr.Table) {
	for _, k := range all.Kinds() {
		tables = append(tables, k.Table)
	}
	return tables
}

// underLock calls work while holding the lock, if the store has locks. An interrupt does not cancel the lock and
// unlock requests, because a server may still execute a canceled request later.
func (b *Backend) underLock(ctx context.Context, operation string, work func() error) (err error) {
	if !b.HasLocks {
		return work()
	}
	lock := store.NewLock(operation)
	told := make(chan struct{})
	tell := func() {
		defer close(told)
		b.say("interrupted; waiting for the backend to answer about the lock, so that no lock is left")
	}
	quiet := context.AfterFunc(ctx, tell)
	err = b.Lock(context.WithoutCancel(ctx), lock)
	if !quiet() {
		<-told
	}
	if err != nil {
		return fmt.Errorf("the state cannot be locked: %w", err)
	}
	defer func() {
		stuck := b.GiveBack(context.WithoutCancel(ctx), lock.ID)
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

// StuckError means that the work under a lock succeeded, but the lock could not be released.
type StuckError struct{ Err error }

func (e *StuckError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *StuckError) Unwrap() error { return e.Err }

// LockLeftError means that our lock could not be released.
type LockLeftError struct {
	ID  string // as users see it
	Err error
}

func (e *LockLeftError) Error() string {
	return fmt.Sprintf("the lock %s was not released, and now requires force-unlock: %v", e.ID, e.Err)
}

// Unwrap returns Err.
func (e *LockLeftError) Unwrap() error { return e.Err }

// GiveBack releases our lock. If it fails, the error is a [LockLeftError].
func (b *Backend) GiveBack(ctx context.Context, id string) error {
	name := b.NameOf(id)
	if err := b.Unlock(ctx, id); err != nil {
		return &LockLeftError{name, err}
	}
	return nil
}

// NameOf returns the ID that users see for our lock.
func (b *Backend) NameOf(id string) string {
	if r, ok := store.As[store.Renamer](b.State); ok {
		return r.NameOf(id)
	}
	return id
}

// keep writes a sealed state to the backend, unless ctx has ended. The first write of a run is read back (see
// [careful.New]), because many servers respond with 200 to anything, and the user may delete the old state afterwards.
func (b *Backend) keep(ctx context.Context, sealed []byte, read store.Version) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	_, err := b.Write(context.WithoutCancel(ctx), sealed, read)
	if errors.Is(err, store.ErrUnseen) {
		err = fmt.Errorf("%w; keep the old state", err)
	}
	return err
}

// rehearse encrypts a small state, so that any failure shows before the run starts.
func rehearse(ctx context.Context, target encryption.Target) error {
	_, _, err := Seal(ctx, target, []byte(`{"version":4,"serial":1,"lineage":"rehearsal"}`), nil)
	return err
}

// Rehearse returns an error if the run's state could not be encrypted or written. If keys are derived from a salt,
// [Guard.Open] tests the encryption later, because the salt is stored in the state.
func (b *Backend) Rehearse(ctx context.Context, target encryption.Target) (err error) {
	if !target.IsSalted() {
		err = rehearse(ctx, target)
	}
	if prover, ok := store.As[store.Prover](b.State); ok && err == nil {
		err = prover.Ready(ctx)
	}
	if err != nil {
		return fmt.Errorf("the run was not started, because it would be unable to write its state at the end: %w", err)
	}
	return nil
}
