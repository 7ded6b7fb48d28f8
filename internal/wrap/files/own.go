// Package files opens three kinds of files: the user's regular files, temporary files, and wrap's own files in a
// module. The last kind must not be links.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// Directory is a folder for wrap's own files. Path belongs to the user, and may contain the user's links. The names
// below Path belong to wrap. None of them may be a link, because in an untrusted module, it could lead to the user's
// files.
type Directory struct {
	Path  string
	below []string
}

// These are the names of Terraform's data directory and of wrap's own folder in it.
const (
	DataName  = ".terraform"
	OwnName   = "statecrypt"
	OwnFolder = DataName + "/" + OwnName
)

// Own returns one of wrap's own folders in a module.
func Own(module string, below ...string) Directory {
	return Directory{Join(module, DataName), append([]string{OwnName}, below...)}
}

// File returns the path of a file in the folder.
func (d Directory) File(name string) string {
	return filepath.Join(append(append([]string{d.Path}, d.below...), name)...)
}

// Open opens the folder. If the folder does not exist, Open creates it if makes is true, or returns [fs.ErrNotExist]
// otherwise.
func (d Directory) Open(makes bool) (*os.Root, error) {
	if makes {
		if err := os.MkdirAll(d.Path, 0o755); err != nil { //nolint:gosec // as Terraform does
			return nil, err
		}
	}
	at, err := os.OpenRoot(d.Path)
	for _, name := range d.below {
		if err != nil {
			return nil, err
		}
		at, err = openBelow(at, name, makes)
	}
	return at, err
}

// Read reads a file in the folder.
func (d Directory) Read(name string) (text []byte, err error) {
	at, err := d.Open(false)
	if err == nil {
		defer at.Close()
		text, err = ReadOwn(at, name)
	}
	if _, isForeign := errors.AsType[*ForeignError](err); err != nil && !isForeign {
		err = fmt.Errorf("%s cannot be read: %w", outside.Quoted(d.File(name), 300), keyfile.Reason(err))
	}
	return text, err
}

// openBelow opens the folder called name in at, and closes at.
func openBelow(at *os.Root, name string, makes bool) (*os.Root, error) {
	defer at.Close()
	if makes {
		if err := at.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as Terraform does
			return nil, err
		}
	}
	named, err := at.Lstat(name)
	if err != nil {
		return nil, err
	}
	if named.Mode().Type() != fs.ModeDir {
		return nil, foreign(at, name)
	}
	inner, err := at.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := inner.Stat("."); err != nil || !os.SameFile(named, opened) {
		_ = inner.Close()
		return nil, foreign(at, name)
	}
	return inner, nil
}

// openOwn opens a file. It returns a [ForeignError] if the file is a link.
func openOwn(at *os.Root, name string, flag int) (*os.File, error) {
	named, err := at.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, foreign(at, name)
	}
	f, err := at.OpenFile(name, flag, 0)
	if err != nil {
		return nil, err
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(named, opened) {
		_ = f.Close()
		return nil, foreign(at, name)
	}
	return f, nil
}

// ReadOwn reads a file of at most 1 MiB. The file must not be a link.
func ReadOwn(at *os.Root, name string) ([]byte, error) {
	const most = 1 << 20 // in bytes; these files are small
	f, err := openOwn(at, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(content) > most {
		err = errors.New("it is larger than 1 MiB")
	}
	return content, err
}

// LockOwn locks the folder until the returned file is closed. If another process has the lock, LockOwn waits. If the
// folder is not writable, it returns nil and no error.
func LockOwn(ctx context.Context, at *os.Root) (*os.File, error) {
	const name = "lock"
	f, err := at.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		f, err = openOwn(at, name, os.O_RDWR)
	}
	if _, isForeign := errors.AsType[*ForeignError](err); isForeign {
		return nil, err
	}
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // the caller then reads without a lock
	}
	return await(ctx, f, "another init is running in "+outside.Quoted(at.Name(), 300))
}

// await locks f and returns it; closing f releases the lock. If another process has locked the file, await shows a
// notice with the reason, why, and waits until that process ends. If ctx ends first, await returns an error, and f
// will be closed. If the file cannot be locked at all, await returns f without a lock.
func await(ctx context.Context, f *os.File, why string) (*os.File, error) {
	if err := lockFile(f, false); !isHeld(err) {
		return f, nil
	}
	stopped := func() error {
		return fmt.Errorf("%s, so wrap waited, and was stopped before it did anything: %w", why, context.Cause(ctx))
	}
	if ctx.Err() != nil { // the goroutine below would take the lock later, for a moment
		return nil, errors.Join(stopped(), f.Close())
	}
	notice.Show(ctx, why+"; waiting until it ends")
	locked := make(chan struct{})
	go func() {
		_ = lockFile(f, true)
		select {
		case locked <- struct{}{}:
		case <-ctx.Done():
			_ = f.Close()
		}
	}()
	select {
	case <-locked:
		return f, nil
	case <-ctx.Done():
		return nil, stopped()
	}
}

// AwaitEnd waits for a program that a killed run has started, if the mark in dir, the folder of that run, shows that
// the program is still running.
func AwaitEnd(ctx context.Context, dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, alive), os.O_RDONLY|syscall.O_NONBLOCK, 0) // without O_NONBLOCK, opening a pipe would wait
	if err != nil {
		return nil //nolint:nilerr // the folder has no mark, or is gone
	}
	f, err = await(ctx, f, "a program that a killed run had started is still running in "+outside.Quoted(dir, 300))
	_ = f.Close() // closing a nil file is harmless
	return err
}

// ForeignError means that the name of one of wrap's own files or folders belongs to a link, or to something else that
// wrap did not create.
type ForeignError struct{ path string }

func foreign(at *os.Root, name string) error { return &ForeignError{filepath.Join(at.Name(), name)} }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s is a link, or was not created by wrap; remove it", outside.Quoted(e.path, 300))
}

// Temporary is a temporary folder, marked as in use while this process is alive.
type Temporary struct {
	Dir  string   // an empty string until Open creates the folder
	kept *os.File // see Mark
}

const temporaryName = "statecrypt-"

// Open creates the folder. Its path is absolute, because the child may run in another directory.
func (t *Temporary) Open() error {
	if t.Dir != "" {
		return nil
	}
	parent, err := filepath.Abs(os.TempDir())
	if err == nil {
		t.Dir, err = os.MkdirTemp(parent, temporaryName)
	}
	if err != nil { // not wrapped, because callers would mistake it for an error about a file
		why := keyfile.Reason(err).Error()
		return fmt.Errorf("could not create a temporary folder in %s (TMPDIR): %s", outside.Line(os.TempDir(), 300), why)
	}
	t.kept = Mark(t.Dir)
	return nil
}

func (t *Temporary) Remove() {
	_ = os.RemoveAll(t.Dir)
	_ = t.kept.Close()      // closing a nil file is harmless
	_ = os.RemoveAll(t.Dir) // some systems cannot remove open files
}

// NoteAbandoned warns about temporary folders left behind by killed runs.
func NoteAbandoned(say func(text string)) {
	entries, _ := os.ReadDir(os.TempDir())
	for _, e := range entries {
		path := filepath.Join(os.TempDir(), e.Name())
		if !strings.HasPrefix(e.Name(), temporaryName) {
			continue
		}
		TakeAbandoned(path, func() {
			left, err := os.ReadDir(path)
			if err == nil && (len(left) == 0 || len(left) == 1 && left[0].Name() == alive) {
				_ = os.RemoveAll(path)
				return
			}
			say("warning: a killed run of wrap left plaintext files in " + outside.Line(path, 300) + "; delete this folder")
		})
	}
}
