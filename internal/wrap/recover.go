package wrap

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
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

// Recovery is of a state that an earlier run could not write.
type Recovery struct {
	File   string                     // "" looks where Terraform and wrap leave one
	Force  bool                       // replaces another state than the run has begun with, if it is older, and a file that is no state
	Unlock string                     // the ID of the lock that the run has left; "" asks
	Ask    func(question string) bool // nil if there is nobody
}

// Recover writes the state that an earlier run in this module could not write, in place of the
// one in the backend, if that is still older: under a lock of its own, after it has given
// back that of the run. It can be called again after any failure.
func Recover(ctx context.Context, o Options, r Recovery) (err error) {
	call := &invocation{command: command{Name: "recover"}}
	if _, err := call.locateFolders(nil, world.Lookup(o.Environ)); err != nil {
		return err
	}
	if err := checkWorkspace(o); err != nil {
		return err
	}
	noteVariables(o)
	p, err := connect(ctx, o, call)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.backend.Close()) }()
	m := &recovery{move: move{proxy: p}, Recovery: r}
	if err := m.find(ctx); err != nil {
		return err
	}
	err = m.underLock(ctx)
	if held, ok := errors.AsType[*store.HeldError](err); ok && !m.locked {
		if err = m.release(context.WithoutCancel(ctx), held.By); err == nil {
			err = m.underLock(ctx)
		}
	}
	ctx = context.WithoutCancel(ctx)
	err = errors.Join(err, p.backend.lookAgain(ctx))
	if m.done {
		m.memory.written(ctx, m.content, m.File != "")
		err = errors.Join(err, m.remove())
	}
	return err
}

// recovery is a state on its way in, in the end.
type recovery struct {
	move
	Recovery

	path    string // of the file
	name    string // of it, for people
	content []byte // of it
	plain   []byte // the state in it
	named   []byte // the same with a lineage, if it has none; see withLineage
	label   label
	damaged []byte // the file in the backend, if it is no state

	locked bool // a lock of our own was there
	done   bool // the state is where it belongs
}

func (m *recovery) underLock(ctx context.Context) error {
	return m.backend.underLock(ctx, "statecrypt recover", func() error {
		m.locked = true
		err := m.write(ctx)
		m.done = err == nil
		return err
	})
}

// find reads the state that is to be written.
func (m *recovery) find(ctx context.Context) error {
	m.path, m.name = m.File, outside.Line(m.File, 300)
	if m.File == "" {
		var err error
		if m.path, m.name, err = m.call.left(); err != nil {
			return err
		}
	}
	content, err := readFile(m.path)
	m.content = content
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", m.name, keyfile.Explain(m.path, err))
	case m.call.keeps(m.path):
		return errors.New(m.name + " is the state in the backend itself; name the file that the run has left")
	}
	switch info, err := encryption.Inspect(content); {
	case err != nil:
		return fmt.Errorf("%s: %w", m.name, err)
	case info.Kind == encryption.KindState:
		m.plain = content
	default:
		opened, err := m.State.Decrypt(ctx, content)
		if err != nil {
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

// left is where a state is that could not be written.
func (i *invocation) left() (path, name string, err error) {
	var paths, names []string
	for _, path := range []string{filepath.Join(i.dir, errored), i.atHome()} {
		content, err := readFile(path)
		if path == "" || errors.Is(err, os.ErrNotExist) || err == nil && len(content) == 0 || i.keeps(path) {
			continue
		}
		name := outside.Line(path, 300)
		if filepath.Dir(path) == i.dir {
			name = errored
		}
		paths, names = append(paths, path), append(names, name)
	}
	switch len(paths) {
	case 0:
		return "", "", fmt.Errorf("there is no %s here, and the home directory has no state of this module that could not be written; "+
			"if the run has named another file, add that", errored)
	case 1:
		return paths[0], names[0], nil
	}
	return "", "", fmt.Errorf("there are %s and %s: add the name of the one with the higher serial, which statecrypt inspect shows, and "+
		"then delete both", names[0], names[1])
}

// release gives back the lock that the run has left.
func (m *recovery) release(ctx context.Context, by *store.Lock) error {
	switch {
	case by == nil || by.ID == "":
		return errors.New("somebody has the lock, and nobody says who; if it is the run that has left " + m.name + ", and that has ended, " +
			"remove the lock where the backend keeps it")
	case by.OfProcess:
		return errors.New(by.Describe() + "; its end gives it back")
	case m.Unlock != "" && m.Unlock != by.ID:
		return errors.New(by.Describe() + ", which is not the lock in -unlock")
	case m.Unlock == by.ID:
	case m.Ask == nil || !m.Ask(by.Describe()+".\nIs that the run that has left "+m.name+", and has it ended?"):
		named := ""
		if m.File != "" {
			named = " " + m.name
		}
		return fmt.Errorf("%s. If that is the run that has left %s, and it has ended, run %s%s", by.Describe(), m.name,
			store.Proposed(recovers+" -unlock", by.ID, recovers+" -unlock ID"), named)
	}
	if _, err := m.compare(ctx); err != nil { // or the lock is better left
		return err
	}
	if err := m.backend.Unlock(ctx, by.ID); errors.Is(err, store.ErrMissing) {
		return errors.New("somebody else has given the lock back meanwhile; run this again")
	} else if err != nil {
		return fmt.Errorf("the lock was not given back: %w", err)
	}
	say(m.Stderr, "the lock "+outside.Quoted(by.ID, 100)+" is given back")
	return nil
}

// write puts the state into the backend.
func (m *recovery) write(ctx context.Context) error {
	there, err := m.compare(ctx)
	switch {
	case err != nil:
		return err
	case there != nil:
		say(m.Stderr, "the state in "+m.name+" is in the backend already")
		if err := m.backend.settle(ctx, there); err != nil {
			return err
		}
	default:
		if err := m.keepDamaged(); err != nil {
			return err
		}
		if (m.there == "" || m.damaged != nil) && m.named != nil {
			say(m.Stderr, "the state in "+m.name+" has no lineage, and gets one")
			m.plain = m.named
		}
		if err := m.store(ctx, m.plain, "the state in "+m.name, "written"); err != nil {
			return err
		}
		say(m.Stderr, "the state in "+m.name+" is in the backend now, encrypted")
	}
	return nil
}

// keepDamaged copies the file in the backend, if it is no state, to the folder of the module.
func (m *recovery) keepDamaged() error {
	if m.damaged == nil {
		return nil
	}
	name := "terraform.tfstate." + string(digestOf(m.damaged)[:8]) + ".replaced"
	path := join(m.call.dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.Write(m.damaged)
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			_ = os.Remove(path)
		}
	} else if kept, failed := readFile(path); failed == nil && bytes.Equal(kept, m.damaged) { // by an earlier try
		err = nil
	}
	if err != nil {
		return fmt.Errorf("the file in the backend is no state, and cannot be kept in %s, so it is not replaced: %w", name, keyfile.Reason(err))
	}
	say(m.Stderr, "the file in the backend is no state, and is kept in "+name)
	return nil
}

// remove deletes the file, which is in the way of the next run.
func (m *recovery) remove() error {
	if m.File != "" {
		say(m.Stderr, "delete "+m.name+", which nobody needs any more")
		return nil
	}
	others := replace.OtherNames(m.path)
	if to, err := filepath.EvalSymlinks(m.path); err == nil && filepath.Base(to) != filepath.Base(m.path) {
		others = "it was a link; delete what it led to, too: " + outside.Line(to, 300)
	}
	now, err := readFile(m.path)
	if err == nil && !bytes.Equal(now, m.content) {
		return errors.New("somebody has written another state to " + m.name + " meanwhile; run this again")
	}
	if err == nil {
		err = os.Remove(m.path)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s cannot be deleted, which nobody needs any more: %w", m.name, keyfile.Reason(err))
	}
	say(m.Stderr, m.name+" is deleted")
	if others != "" {
		say(m.Stderr, "warning: "+m.name+": "+others)
	}
	return nil
}

// compare returns what the backend has if it is the state already, and nil if it may become that.
func (m *recovery) compare(ctx context.Context) ([]byte, error) {
	there, version, err := m.backend.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("the state in the backend: %w", err)
	}
	m.there, m.damaged = version, nil
	m.readers.Store(int64(Recipients(there)))
	var opened *encryption.Opened
	var now *label
	if there == nil {
		if _, err = m.acceptNone(ctx, nil); err == nil {
			err = m.call.elsewhere()
		}
		now = &label{Lineage: m.label.Lineage}
	} else {
		opened, now, err = m.decrypt(ctx, bytes.Clone(there))
	}
	switch {
	case err != nil && m.Force && isNoState(there, err):
		m.damaged = there
		m.backend.open.Store(false) // nobody can work on it, with wrap or without
		return nil, nil
	case err != nil && isNoState(there, err):
		return nil, fmt.Errorf("the state in the backend: %s. Once you have looked that nothing is lost, add -force, which keeps that file in "+
			"the folder of the module, and replaces it", words.State(err))
	case err != nil:
		return nil, fmt.Errorf("the state in the backend: %s", words.State(err))
	case there != nil && m.isThere(opened.Data, now):
		return there, nil
	}
	return nil, m.mayReplace(now, digestOf(there))
}

// isThere reports whether the state in the backend is the one in the file, with the lineage that an earlier
// try has given it if the file has none.
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

// isNoState reports whether a file that does not open, with this error, is of no kind that anybody knows:
// neither a state, nor the file of a method or of another key.
func isNoState(file []byte, err error) bool {
	info, _ := encryption.Inspect(file)
	return info.Kind == encryption.KindUnknown && errors.Is(err, encryption.ErrDamaged)
}

// mayReplace refuses to replace what is no older state of this lineage, and what is not the one that
// the run has begun with: somebody has gone on. The serial alone does not tell, because the CLIs
// count each try.
func (m *recovery) mayReplace(there *label, digest store.Version) error {
	const stay = ". Both stay as they are"
	base := m.memory.base(m.content, m.File != "")
	switch {
	case there.Lineage != m.label.Lineage:
		return fmt.Errorf("%s is of another state: its lineage is %s, and that in the backend is %s"+stay, m.name,
			outside.Quoted(m.label.Lineage, 100), outside.Quoted(there.Lineage, 100))
	case m.there != "" && (there.Serial == nil || m.label.Serial == nil):
		return fmt.Errorf("%s or the state in the backend has no serial, so nobody can tell which is newer"+stay, m.name)
	case m.there != "" && *there.Serial >= *m.label.Serial:
		return fmt.Errorf("somebody has gone on without the state in %s: its serial is %d, and the backend has %d"+stay+
			". Move the file away, and import what only it has", m.name, *m.label.Serial, *there.Serial)
	case m.Force, slices.Contains(base, digest), digest == "" && !m.memory.knowsOthers(): // in the place of none, nothing is lost
		return nil
	case base != nil:
		return fmt.Errorf("the state in the backend is not the one that the run has begun with which has left %s: somebody has gone on, or "+
			"has given it another key"+stay+". Once you have looked that nothing is lost, add -force", m.name)
	}
	return fmt.Errorf("nobody knows here which state the run has begun with that has left %s, so somebody may have gone on without it"+stay+
		". Run this where that run was, or, once you have looked that nothing is lost, add -force", m.name)
}
