package states

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/overview"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

// Restoration holds the user's options for writing an older version of the state.
type Restoration struct {
	ID      string // the ID of the version in the store; "" if File is set
	File    string // a file with the version
	Replace bool   // replaces a file in the backend that is not an older or newer version of the same state

	// Show shows the difference between the state in the backend and the version. The first is nil if there is no state
	// to compare with. The argument opened says how the version was opened.
	Show func(there, restored *overview.State, opened *encryption.Opened) error

	Ask func(question string) bool // asks the user a question; nil if nobody can answer
}

// Write writes an older version of the state to the backend, with a serial higher than any that is known. It holds the
// state lock while it works.
func (r Restoration) Write(ctx context.Context, g *Guard, l *Leftover) error {
	m := &restoration{Arrival: Arrival{Guard: g, Backend: g.Backend}, asked: r, leftover: l}
	if !g.Backend.HasLocks {
		g.Say("warning: the backend has no locks; make sure that nobody else writes the state now")
	}
	err := m.Backend.underLock(ctx, "statecrypt restore", func() error { return m.write(ctx) })
	return errors.Join(err, g.Backend.LookAgain(context.WithoutCancel(ctx)))
}

// restoration writes an older version of the state to the backend.
type restoration struct {
	Arrival
	asked    Restoration
	leftover *Leftover

	name    string // the name of the version for messages
	file    []byte // the version, as it is stored
	opened  *encryption.Opened
	plain   []byte // the decrypted version
	content *overview.State
	saved   string // the name of the copy of the version; "" if there is none

	found      []byte          // the file in the backend, or nil
	foundPlain []byte          // the decrypted state in the backend; nil if it cannot be opened
	foundOpen  bool            // whether that state is not encrypted
	foundState *overview.State // the content of that state
	reason     string          // why the file in the backend is not a version of the same state; "" if it is one
}

func (m *restoration) write(ctx context.Context) error {
	if err := m.readVersion(ctx); err != nil {
		return err
	}
	if err := m.readThere(ctx); err != nil {
		return err
	}
	if m.reason != "" && !m.asked.Replace {
		return fmt.Errorf("%s\nTo write %s anyway, check the settings and what would be lost, then add -replace", m.reason, m.name)
	}
	if m.reason == "" && !m.foundOpen {
		same, err := store.WithSerial(m.plain, m.foundState.Serial)
		if err != nil {
			return err
		}
		if bytes.Equal(same, m.foundPlain) || bytes.Equal(m.plain, m.foundPlain) {
			m.Guard.Say("the state in the backend already has the content of " + m.name + ", so nothing was written")
			m.forget()
			return m.Backend.settle(ctx, m.found)
		}
	}
	serial, err := m.serial()
	if err == nil {
		err = m.confirm(ctx, serial)
	}
	if err != nil {
		return err
	}
	return m.replace(ctx, serial)
}

// readVersion reads and decrypts the version. Plaintext is accepted only if the settings name it.
func (m *restoration) readVersion(ctx context.Context) (err error) {
	m.name = "the version " + outside.Line(m.asked.ID, 300)
	if m.asked.File != "" {
		m.name = outside.Line(m.asked.File, 300)
	}
	m.file, err = m.readFile(ctx)
	if err == nil && m.asked.File == "" && m.isLocal() {
		err = m.interrupted()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	opened, err := m.Guard.Target.Decrypt(ctx, m.file)
	if err == nil && opened.Kind != encryption.KindState {
		err = errors.New("it is a plan; name a state")
	}
	if err == nil {
		m.opened, m.plain = opened, opened.Data
		m.content, err = overview.Read(bytes.Clone(m.plain))
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, encryption.ErrPlaintext):
		return fmt.Errorf("%s is not encrypted, so it may come from anyone; to restore it, add a fallback with the method unencrypted", m.name)
	case err != nil:
		return fmt.Errorf("%s: %s", m.name, words.State(err))
	case !opened.Encrypted:
		m.Guard.Say("warning: " + m.name + " is not encrypted; the fallback " + opened.Method + " allows that")
	}
	return nil
}

// readFile reads the version, as it is stored.
func (m *restoration) readFile(ctx context.Context) ([]byte, error) {
	if m.asked.File != "" {
		file, err := files.ReadFile(m.asked.File)
		if err != nil {
			err = keyfile.Explain(m.asked.File, err)
		}
		return file, err
	}
	v, err := m.Backend.versions()
	if err != nil {
		return nil, err
	}
	return v.Whole(ctx, m.asked.ID)
}

// readThere reads the file in the backend, and finds out whether it is a version of the same state.
func (m *restoration) readThere(ctx context.Context) (err error) {
	useless := func(reason string) error { // nobody can use the file, with or without wrap
		m.reason = reason
		m.Backend.open.Store(false)
		return nil
	}
	m.found, m.there, err = m.Backend.Read(ctx)
	damaged, isDamaged := errors.AsType[*store.DamagedError](err)
	switch {
	case isDamaged:
		m.found, m.there = damaged.File, damaged.Version
		return useless("the file in the backend is damaged: " + words.State(err))
	case err != nil:
		return fmt.Errorf("the state in the backend: %w", err)
	case m.found == nil:
		return useless("there is no state in the backend: it was deleted or emptied, or the address is wrong")
	case len(m.found) == 0:
		return useless("the file in the backend is empty")
	}
	m.Guard.readers.Store(int64(Recipients(m.found)))
	opened, err := m.Guard.Target.Decrypt(ctx, m.found)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, encryption.ErrPlaintext):
		return fmt.Errorf("the state in the backend is not encrypted; add a fallback with the method unencrypted, or encrypt it with %s", moves)
	case isNoState(m.found, err):
		return useless("the file in the backend is not a state: " + words.State(err))
	case err != nil:
		m.reason = "the state in the backend cannot be opened: " + words.State(err)
		return nil
	}
	m.foundPlain, m.foundOpen = opened.Data, !opened.Encrypted
	m.foundState, err = overview.Read(bytes.Clone(opened.Data))
	switch {
	case err != nil:
		m.reason = "the state in the backend is damaged: " + words.State(err)
		m.foundState = nil
	case m.foundState.Lineage != m.content.Lineage:
		m.reason = m.otherLineage("the state in the backend has", m.foundState.Lineage)
	default:
		if seen := m.Guard.Memory.seen(); seen != nil && seen.Lineage != m.content.Lineage && !m.Guard.Memory.reverts {
			m.reason = m.otherLineage("earlier runs in this folder read", seen.Lineage)
		}
	}
	return nil
}

func (m *restoration) otherLineage(what, lineage string) string {
	return fmt.Sprintf("%s lineage %s, but %s has lineage %s, so it is another state", what, outside.Quoted(lineage, 100), m.name,
		outside.Quoted(m.content.Lineage, 100))
}

// maxUnverified is the highest serial that counts if no key protects it. An attacker could otherwise leave no higher
// serial.
const maxUnverified = math.MaxInt32

// serial returns the serial of the restored state: one more than the serials of the version, of the file in the
// backend, and of the states that earlier runs in this folder saw.
func (m *restoration) serial() (int64, error) {
	highest := m.content.Serial
	if m.foundState != nil {
		highest = max(highest, m.foundState.Serial)
	} else if serial, _, err := store.Label(m.found); err == nil && serial != nil {
		if *serial > maxUnverified {
			m.Guard.Say(fmt.Sprintf("warning: the serial %d of the file in the backend is ignored, because it is too high and nothing protects it",
				*serial))
		} else {
			highest = max(highest, *serial)
		}
	}
	if seen := m.Guard.Memory.seen(); seen != nil && seen.Serial != nil {
		highest = max(highest, *seen.Serial)
	}
	if highest == math.MaxInt64 {
		return 0, fmt.Errorf("%s was not restored: %w", m.name, store.ErrSerial)
	}
	return max(highest, 0) + 1, nil
}

// confirm shows what restoring changes, and asks the user.
func (m *restoration) confirm(ctx context.Context, serial int64) error {
	if m.reason != "" {
		m.Guard.Say("warning: " + m.reason)
	}
	restored := *m.content
	restored.Serial = serial
	if err := m.asked.Show(m.foundState, &restored, m.opened); err != nil {
		return err
	}
	question := fmt.Sprintf("Restore %s with serial %d, as serial %d?", m.name, m.content.Serial, serial)
	switch {
	case m.asked.Ask == nil:
		return errors.New("nothing was written, because nobody can be asked here; check the difference, then add -yes")
	case m.asked.Ask(question):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return errors.New("nothing was written, because the answer was not yes")
}

// savedSuffix ends the name of a copy of the version that is restored. A write to a file replaces its backup, which may
// be that version.
const savedSuffix = ".restored"

// replace writes the version to the backend. If the store does not keep the replaced file, a copy stays in the folder
// of the module.
func (m *restoration) replace(ctx context.Context, serial int64) error {
	plain, err := store.WithSerial(m.plain, serial)
	if err == nil && len(m.found) > 0 && !m.isKept() {
		var name string
		if name, err = m.keep(ctx, m.found, ".replaced", "the file in the backend"); err == nil {
			m.Guard.Say("the file in the backend was saved in " + name)
		}
	}
	if err == nil && m.isLocal() && (m.asked.File == "" || m.Backend.Keeps(m.asked.File)) {
		m.saved, err = m.keep(ctx, m.file, savedSuffix, m.name)
	}
	if err != nil {
		return err
	}
	if err := m.seal(ctx, plain, m.name, "restored"); err != nil {
		m.noteCopy(ctx)
		return err
	}
	m.forget()
	m.Guard.Say(fmt.Sprintf("%s is now the state in the backend, encrypted, with serial %d", m.name, serial))
	return nil
}

func (m *restoration) isLocal() bool {
	_, is := store.As[store.Local](m.Backend.State)
	return is
}

// isKept reports whether the store is certain to keep the file that is replaced. A file has a backup, if it can be
// opened. A bucket that lists older versions may have stopped keeping them.
func (m *restoration) isKept() bool { return m.Backend.KeepsAll || m.isLocal() && m.foundPlain != nil }

// keep saves a file in the folder of the module, and returns its name there. A plaintext state is encrypted.
func (m *restoration) keep(ctx context.Context, file []byte, suffix, what string) (name string, err error) {
	if info, failed := encryption.Inspect(file); failed == nil && info.Kind == encryption.KindState {
		if file, _, err = Seal(ctx, m.Guard.Target, file, nil); err != nil {
			return "", fmt.Errorf("nothing was written, because %s could not be encrypted for a copy: %w", what, err)
		}
	}
	if name, err = m.leftover.keep(ctx, file, suffix); err != nil {
		return "", fmt.Errorf("nothing was written, because %s could not be saved in %s: %w", what, name, err)
	}
	return name, nil
}

// noteCopy deletes the copy of the version if the version is still in the store. Otherwise, it says where the copy is.
func (m *restoration) noteCopy(ctx context.Context) {
	if m.saved == "" {
		return
	}
	if file, err := m.readFile(context.WithoutCancel(ctx)); err == nil && bytes.Equal(file, m.file) {
		m.forget()
		return
	}
	m.Guard.Say(m.name + " was saved in " + m.saved)
}

// interrupted returns an error if an earlier run of restore may have replaced the backup, and saved the version that it
// had read from there.
func (m *restoration) interrupted() error {
	copies, _ := filepath.Glob(filepath.Join(m.leftover.dir, "terraform.tfstate.*"+savedSuffix))
	for _, path := range copies {
		if saved, err := files.ReadFile(path); err == nil && !bytes.Equal(saved, m.file) {
			name := outside.Line(filepath.Base(path), 200)
			return fmt.Errorf("an earlier restore did not finish, and the version that it read is in %s; restore %[1]s, or delete it", name)
		}
	}
	return nil
}

// forget deletes the copy of the version that restore has saved. A copy that stays is harmless.
func (m *restoration) forget() {
	path := files.Join(m.leftover.dir, copyName(m.file, savedSuffix))
	if saved, err := files.ReadFile(path); err == nil && bytes.Equal(saved, m.file) {
		_ = os.Remove(path)
	}
	if m.saved != "" {
		_ = os.Remove(files.Join(m.leftover.dir, m.saved))
	}
}
