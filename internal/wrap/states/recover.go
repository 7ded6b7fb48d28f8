package states

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

// Recovery holds the user's options for writing a state that an earlier run could not write.
type Recovery struct {
	File   string                     // the file with the state; "" searches the places where Terraform and wrap leave states
	Force  bool                       // replaces a state that the run did not start from, if it is older, or a file that is not a state
	Unlock string                     // the ID of the lock that the run left behind; "" to ask the user
	Ask    func(question string) bool // asks the user a question; nil if nobody can answer
}

// Write writes the state of an earlier run to the backend, if the state there is still older. It releases the lock of
// the earlier run, and takes its own lock.
func (r Recovery) Write(ctx context.Context, g *Guard, l *Leftover, u *Unused) error {
	m := &recovery{Arrival: Arrival{Guard: g, Backend: g.Backend}, asked: r, leftover: l, unused: u}
	if err := m.find(ctx); err != nil {
		return err
	}
	err := m.underLock(ctx)
	if held, ok := errors.AsType[*store.HeldError](err); ok && !m.locked {
		if err = m.release(context.WithoutCancel(ctx), held.By); err == nil {
			err = m.underLock(ctx)
		}
	}
	ctx = context.WithoutCancel(ctx)
	err = errors.Join(err, g.Backend.LookAgain(ctx))
	if m.done {
		g.Memory.written(ctx, m.content, r.File != "")
		err = errors.Join(err, m.remove())
	}
	return err
}

// recovery writes the state in a leftover file to the backend.
type recovery struct {
	Arrival
	asked    Recovery
	leftover *Leftover
	unused   *Unused

	path    string // the path of the leftover file
	name    string // its name for messages
	content []byte // the content of the leftover file
	plain   []byte // the decrypted state
	named   []byte // the state with a new lineage, if it has none; see withLineage
	label   label
	damaged []byte // the file in the backend, if it is not a state

	locked bool // whether recover has taken its own lock
	done   bool // whether the state is in the backend
}

func (m *recovery) underLock(ctx context.Context) error {
	return m.Backend.underLock(ctx, "statecrypt recover", func() error {
		m.locked = true
		err := m.write(ctx)
		m.done = err == nil
		return err
	})
}

// find reads and decrypts the leftover file.
func (m *recovery) find(ctx context.Context) error {
	m.path, m.name = m.asked.File, outside.Line(m.asked.File, 300)
	if m.asked.File == "" {
		var err error
		if m.path, m.name, err = m.leftover.locate(); err != nil {
			return err
		}
	}
	content, err := files.ReadFile(m.path)
	m.content = content
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", m.name, keyfile.Explain(m.path, err))
	case m.Backend.Keeps(m.path):
		return errors.New(m.name + " is the state in the backend; give the name of the file that the run left behind")
	}
	switch info, err := encryption.Inspect(content); {
	case err != nil:
		return fmt.Errorf("%s: %w", m.name, err)
	case info.Kind == encryption.KindState:
		m.plain = content
	default:
		opened, err := m.Guard.Target.Decrypt(ctx, content)
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("%s: %s", m.name, words.State(err))
		}
		m.plain = opened.Data
	}
	m.label.Serial, m.label.Lineage, err = store.Label(m.plain)
	if err == nil && m.label.Lineage == "" {
		m.named, err = withLineage(m.plain, newLineage())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	return nil
}

// release releases the lock of the run that left the file, if the user confirms this.
func (m *recovery) release(ctx context.Context, by *store.Lock) error {
	switch {
	case by == nil || by.ID == "":
		return errors.New("the state is locked, but the backend does not say by whom; if the run that left " + m.name + " took the lock, " +
			"and has ended, remove the lock in the backend")
	case by.OfProcess:
		return errors.New(by.Describe() + "; the lock is released when that process ends")
	case m.asked.Unlock != "" && m.asked.Unlock != by.ID:
		return errors.New(by.Describe() + ", but -unlock names another lock")
	case m.asked.Unlock == by.ID:
	case m.asked.Ask == nil || !m.asked.Ask(by.Describe()+".\nIs that the run that left "+m.name+", and has it ended?"):
		named := ""
		if m.asked.File != "" {
			named = " " + m.name
		}
		return fmt.Errorf("%s. If that is the run that left %s, and it has ended, run %s%s", by.Describe(), m.name,
			store.Proposed(recovers+" -unlock", by.ID, recovers+" -unlock ID"), named)
	}
	if _, err := m.compare(ctx); err != nil { // the lock stays if the state must not be written
		return err
	}
	if err := m.Backend.Unlock(ctx, by.ID); errors.Is(err, store.ErrMissing) {
		return errors.New("someone else has released the lock in the meantime; run the command again")
	} else if err != nil {
		return fmt.Errorf("the lock was not released: %w", err)
	}
	m.Guard.Say("the lock " + outside.Quoted(by.ID, 100) + " is released")
	return nil
}

// write writes the state to the backend, unless it is already there.
func (m *recovery) write(ctx context.Context) error {
	there, err := m.compare(ctx)
	switch {
	case err != nil:
		return err
	case there != nil:
		m.Guard.Say("the state in " + m.name + " is already in the backend")
		if err := m.Backend.settle(ctx, there); err != nil {
			return err
		}
	default:
		if err := m.keepDamaged(ctx); err != nil {
			return err
		}
		if (m.there == "" || m.damaged != nil) && m.named != nil {
			m.Guard.Say("the state in " + m.name + " has no lineage, so it gets a new lineage")
			m.plain = m.named
		}
		if err := m.seal(ctx, m.plain, "the state in "+m.name, "written"); err != nil {
			return err
		}
		m.Guard.Say("the state in " + m.name + " is now encrypted in the backend")
	}
	return nil
}

// keepDamaged copies the file in the backend to the module folder if the file is not a state.
func (m *recovery) keepDamaged(ctx context.Context) error {
	if m.damaged == nil {
		return nil
	}
	name, err := m.leftover.keep(ctx, m.damaged, ".replaced")
	if err != nil {
		return fmt.Errorf("the file in the backend is not a state. It was not replaced, because it could not be saved in %s: %w", name, err)
	}
	m.Guard.Say("the file in the backend is not a state, and was saved in " + name)
	return nil
}

// keep saves a file from the backend in the folder of the module, and returns its name there. The copy is complete,
// even if the process is killed. A copy of an earlier attempt stays.
func (l *Leftover) keep(ctx context.Context, file []byte, suffix string) (name string, err error) {
	name = copyName(file, suffix)
	path := files.Join(l.dir, name)
	_, err = os.Lstat(path)
	switch kept, failed := files.ReadFile(path); {
	case errors.Is(err, os.ErrNotExist):
		err = replace.Name(ctx, path, file)
	case err == nil && (failed != nil || !bytes.Equal(kept, file)):
		err = os.ErrExist
	}
	return name, keyfile.Reason(err)
}

func copyName(file []byte, suffix string) string {
	return "terraform.tfstate." + string(DigestOf(file)[:8]) + suffix
}

// remove deletes the leftover file, because the file would block the next run. If the user named the file, remove tells
// the user to delete it instead.
func (m *recovery) remove() error {
	if m.asked.File != "" {
		m.Guard.Say(m.name + " is no longer needed; delete it")
		return nil
	}
	others := replace.OtherNames(m.path)
	if to, err := filepath.EvalSymlinks(m.path); err == nil && filepath.Base(to) != filepath.Base(m.path) {
		others = "it was a link; also delete its target: " + outside.Line(to, 300)
	}
	now, err := files.ReadFile(m.path)
	if err == nil && !bytes.Equal(now, m.content) {
		return errors.New("someone has written another state to " + m.name + " in the meantime; run the command again")
	}
	if err == nil {
		err = os.Remove(m.path)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is no longer needed, but could not be deleted: %w", m.name, keyfile.Reason(err))
	}
	m.Guard.Say(m.name + " is deleted")
	if others != "" {
		m.Guard.Say("warning: " + m.name + ": " + others)
	}
	return nil
}

// compare returns the state in the backend if it equals the leftover, or nil if the leftover may replace it.
func (m *recovery) compare(ctx context.Context) ([]byte, error) {
	there, version, err := m.Backend.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("the state in the backend: %w", err)
	}
	m.there, m.damaged = version, nil
	m.Guard.readers.Store(int64(Recipients(there)))
	var opened *encryption.Opened
	var now *label
	if there == nil {
		if _, err = m.Guard.AcceptNone(ctx, nil); err == nil {
			err = m.unused.ExpectNone()
		}
		now = &label{Lineage: m.label.Lineage}
	} else {
		opened, now, err = m.Guard.decrypt(ctx, bytes.Clone(there))
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && m.asked.Force && isNoState(there, err):
		m.damaged = there
		m.Backend.open.Store(false) // nobody can use such a file, with or without wrap
		return nil, nil
	case err != nil && isNoState(there, err):
		return nil, fmt.Errorf("the state in the backend: %s. To replace that file, add -force. A copy of the file "+
			"is then saved in the module's folder", words.State(err))
	case err != nil:
		return nil, fmt.Errorf("the state in the backend: %s", words.State(err))
	case there != nil && m.isThere(opened.Data, now):
		return there, nil
	}
	return nil, m.mayReplace(now, DigestOf(there))
}

// isThere reports whether there, the state in the backend, is the state of the leftover file. If the leftover has no
// lineage, the same state with a lineage added by an earlier attempt counts as equal.
func (m *recovery) isThere(there []byte, its *label) bool {
	if bytes.Equal(there, m.plain) {
		return true
	}
	if m.label.Lineage != "" || its.Lineage == "" {
		return false
	}
	named, err := withLineage(m.plain, its.Lineage)
	return err == nil && bytes.Equal(there, named)
}

// mayReplace returns an error if the state in the backend has another lineage, is not older than the leftover, or is
// not one that the run started from or sent. In the last case, another run has written to the backend since. The serial
// alone does not show this, because Terraform and OpenTofu increment it with each attempt. With -force, the last
// condition does not apply.
func (m *recovery) mayReplace(there *label, digest store.Version) error {
	const stay = ". Nothing was written"
	base := m.Guard.Memory.base(m.content, m.asked.File != "")
	switch {
	case there.Lineage != m.label.Lineage:
		return fmt.Errorf("%s belongs to another state: its lineage is %s, but the lineage in the backend is %s"+stay, m.name,
			outside.Quoted(m.label.Lineage, 100), outside.Quoted(there.Lineage, 100))
	case m.there != "" && (there.Serial == nil || m.label.Serial == nil):
		return fmt.Errorf("%s or the state in the backend has no serial, so it is unknown which is newer"+stay, m.name)
	case m.there != "" && *there.Serial >= *m.label.Serial:
		return fmt.Errorf("the state in the backend (serial %d) is not older than %s (serial %d), so it was written later"+stay+
			". Move the file elsewhere, and import the resources that only the file contains", *there.Serial, m.name, *m.label.Serial)
	case m.asked.Force, slices.Contains(base, digest), digest == "" && !m.Guard.Memory.knowsOthers(): // without a state, nothing can be lost
		return nil
	case base != nil:
		return fmt.Errorf("the state in the backend was changed, or encrypted with another key, after the run that left %s had read it"+
			stay+". Check that nothing is lost, then add -force", m.name)
	}
	return fmt.Errorf("this folder does not record which state at this address the run that left %s had read, so the state in the backend "+
		"may have changed since"+stay+". Run this command in the folder of that run, on that machine, and with its address. Otherwise, "+
		"check that nothing is lost, then add -force", m.name)
}
