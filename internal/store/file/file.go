// Package file keeps a state in a file, like the local backend of Terraform and OpenTofu. It takes the same lock, so
// that each excludes the other, and overwrites the file in place, because other programs wait for the lock on this
// file.
package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	filesource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/file"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// Kind returns the file store.
func Kind() store.Kind {
	return store.Kind{Table: filesource.Backend(), Named: "path", Older: "the .backup beside it, and other copies", Open: open}
}

// files keeps the states of one module.
type files struct {
	store.Settings

	mu     sync.Mutex
	opened []*state
}

func open(s store.Settings) (store.Store, error) { return &files{Settings: s}, nil }

// Properties returns the facts about files, whose locks the system releases.
func (*files) Properties() store.Properties {
	return store.Properties{HasLocks: true, Verifies: true, EndsWithProcess: true}
}

// State returns the file of a name, and terraform.tfstate in the folder of the module for "".
func (s *files) State(name string) (store.State, error) {
	path, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	if name == "" {
		path = filepath.Join(s.Module, "terraform.tfstate")
	}
	dir, base := filepath.Split(path)
	const longest = 255 - len(".01234567.unwritten") // bytes, with room for the longer names beside it
	if len(base) > longest {
		return nil, s.Errorf("path", "the name of the file has %d bytes, and files beside it have longer names; %d are possible",
			len(base), longest)
	}
	info := filepath.Join(dir, "."+strings.TrimPrefix(base, ".")+".lock.info") // the name that the CLIs use
	one := &state{
		path: path, info: info, journal: journalOf(path), backup: path + ".backup",
		limit: s.Limit, seal: s.Seal, through: func(f *os.File) handle { return f },
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = append(s.opened, one)
	return one, nil
}

// resolve returns the full path of a name. A name may begin with ~, and a relative one begins in the folder of the
// settings.
func (s *files) resolve(name string) (string, error) {
	path, err := world.ExpandHome(name)
	if err = cmp.Or(filesource.CheckPath(name), err); err != nil { // a prefix was not checked by a table
		return "", s.Errorf("path", "%w", err)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Folder, path)
	}
	return path, nil
}

// List returns the files that begin with prefix and are neither hidden, nor in hidden folders, nor backups.
func (s *files) List(ctx context.Context, prefix string) (names []string, err error) {
	begin, err := s.resolve(prefix)
	if err != nil {
		return nil, err
	}
	if prefix == "" || os.IsPathSeparator(prefix[len(prefix)-1]) {
		begin = filepath.Clean(begin) + string(filepath.Separator)
	}
	err = filepath.WalkDir(filepath.Dir(begin), func(path string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return failed(path, err)
		case e.IsDir() && path+string(filepath.Separator) != begin && path != filepath.Dir(begin) &&
			(strings.HasPrefix(e.Name(), ".") || !strings.HasPrefix(path, begin)):
			return fs.SkipDir
		case e.Type().IsRegular() && strings.HasPrefix(path, begin) && e.Name()[0] != '.' && filepath.Ext(path) != ".backup":
			names = append(names, prefix+path[len(begin):])
		}
		return nil
	})
	return names, err
}

// Close releases locks like the end of the process: the description of the holder stays.
func (s *files) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, one := range s.opened {
		one.mu.Lock()
		errs = append(errs, one.letGo())
		if one.lent != nil {
			errs = append(errs, one.lent.Close())
			one.lent = nil
		}
		one.mu.Unlock()
	}
	return errors.Join(errs...)
}

// handle is the locked file. All work on it uses one descriptor: where a lock belongs to the process, closing any
// other descriptor of the file would release it.
type handle interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
	Fd() uintptr
}

// state is the state in one file.
type state struct {
	path, info, journal, backup string

	limit   int64
	seal    func(ctx context.Context, found []byte) ([]byte, error)
	through func(*os.File) handle

	mu    sync.Mutex
	lent  *os.File   // the file of Lend, open until Close; nil if nobody has inherited it
	f     handle     // the locked file; nil without the lock
	lock  store.Lock // the description of the lock
	saved bool       // whether the backup has the state that this run found
}

func (s *state) String() string { return s.path }

// Keeps reports whether a file is the state or its backup.
func (s *state) Keeps(path string) bool {
	for _, own := range []string{s.path, s.backup} {
		mine, err := os.Stat(own)
		other, failed := os.Stat(path)
		if filepath.Clean(path) == own || err == nil && failed == nil && os.SameFile(mine, other) {
			return true
		}
	}
	return false
}

// Lend returns the file that will be locked, for a child to inherit: if this process is killed, the child keeps the
// lock until its own end. The child can only read the file, because a script that writes to the descriptor by mistake
// would destroy the state. The caller closes the file once the child runs. Lend returns nil if locks are not
// inherited on this system, and if the file cannot be opened; Lock returns the error then.
func (s *state) Lend() *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil && s.lent == nil {
		s.lent = openToLend(s.path)
	}
	if s.lent == nil {
		return nil
	}
	return duplicate(s.lent)
}

// Read reads the file. It does not wait for a writer.
func (s *state) Read(ctx context.Context) ([]byte, store.Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	data, err := s.read()
	if err == nil && isUnfinished(data) {
		err = s.notFinished()
	}
	if err != nil || len(data) == 0 {
		return nil, "", err
	}
	return data, version(data), nil
}

// read returns the content of the file, and nil if there is none.
func (s *state) read() ([]byte, error) {
	f := s.f
	if f == nil {
		unlocked, err := s.openFile(os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, s.failed(err)
		}
		defer unlocked.Close()
		f = unlocked
	} else if err := s.stillThere(); err != nil {
		return nil, err
	}
	data, err := s.content(f)
	return data, s.failed(err)
}

func (s *state) content(f handle) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return meter.Read(io.NewSectionReader(f, 0, s.limit+1), info.Size(), s.limit)
}

// version returns the version of a content, and "" for empty content, as for a missing file.
func version(data []byte) store.Version {
	if len(data) == 0 {
		return ""
	}
	return store.Digest(data)
}

// Write replaces the content of the file. If this run has no lock, Write takes the lock during the write, so that it
// does not write to the file of another run.
func (s *state) Write(ctx context.Context, data []byte, read store.Version) (next store.Version, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.locked(ctx, func() error {
		found, err := s.unchanged(read)
		if err == nil {
			err = s.keepFound(ctx, found)
		}
		if err == nil {
			err = s.replace(ctx, found, data)
		}
		if err == nil {
			err = s.stillThere()
		}
		return err
	})
	return version(data), err
}

// Remove empties the file, and does not delete it, because others may wait for the lock on it.
func (s *state) Remove(ctx context.Context, read store.Version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked(ctx, func() error {
		found, err := s.unchanged(read)
		if err == nil {
			err = s.keepFound(ctx, found)
		}
		if err == nil {
			err = s.failed(overwrite(s.f, nil))
		}
		return err
	})
}

// locked calls work under our lock, or under a lock for this work alone.
func (s *state) locked(ctx context.Context, work func() error) (err error) {
	if s.f == nil {
		if err := s.take(ctx, store.NewLock("statecrypt")); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.release(ctx)) }()
	}
	return work()
}

// unchanged returns the content of the file, and [store.ErrChanged] if that is not the version that was read.
func (s *state) unchanged(read store.Version) ([]byte, error) {
	if err := s.stillThere(); err != nil {
		return nil, err
	}
	found, err := s.content(s.f)
	if err != nil {
		return nil, s.failed(err)
	}
	if version(found) != read {
		return nil, store.ErrChanged
	}
	return found, nil
}

// stillThere returns [store.ErrLost] if the path leads to another file than the locked one: git, for example,
// replaces files.
func (s *state) stillThere() error {
	ours, err := s.f.Stat()
	if err != nil {
		return s.failed(err)
	}
	if named, err := os.Stat(s.path); err != nil || !os.SameFile(ours, named) {
		return store.ErrLost
	}
	return nil
}

// keepFound writes the state that this run found to the backup, encrypted, but only once.
func (s *state) keepFound(ctx context.Context, found []byte) error {
	if s.saved || len(found) == 0 {
		return nil
	}
	copied, err := s.seal(ctx, found)
	if err != nil {
		return fmt.Errorf("the state that there is cannot be encrypted for a backup: %w", err)
	}
	if copied == nil {
		return nil
	}
	err = replace.Name(ctx, s.backup, copied)
	s.saved = err == nil
	return failed(s.backup, err)
}

// Lock takes the lock of the CLIs: it locks the file, and writes a file beside it that names the holder.
func (s *state) Lock(ctx context.Context, lock store.Lock) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.f == nil:
		return s.take(ctx, lock)
	case lock.ID != s.lock.ID:
		return &store.HeldError{By: &s.lock}
	}
	return nil
}

func (s *state) take(ctx context.Context, lock store.Lock) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := s.acquire()
	if err != nil {
		return err
	}
	s.f, s.journal = s.through(f), journalOf(s.path)
	s.noteLeft(ctx)
	s.lock = lock.At(s.path)
	if err = failed(s.info, replace.Name(ctx, s.info, s.lock.JSON())); err == nil {
		err = s.complete(ctx)
	}
	if err != nil {
		err = errors.Join(err, s.release(ctx))
	}
	return err
}

// errHeld means that lockFile found another lock.
var errHeld = errors.New("somebody holds the lock")

// acquire opens the file and locks it. It tries again if the path leads to another file by then.
func (s *state) acquire() (*os.File, error) {
	for range 100 {
		f, err := s.openFile(os.O_RDWR | os.O_CREATE)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the folder of %s must be made first", outside.Quoted(s.path, 300))
		}
		if err != nil {
			return nil, s.failed(err)
		}
		err = lockFile(f)
		ours, errOurs := f.Stat()
		named, errNamed := os.Stat(s.path)
		isNamed := errOurs == nil && errNamed == nil && os.SameFile(ours, named)
		if err == nil && isNamed {
			err = s.share(f, ours)
		}
		switch {
		case err == nil && isNamed:
			return f, nil
		case errors.Is(err, errHeld):
			err = &store.HeldError{By: s.ofProcess()}
		case err != nil:
			err = fmt.Errorf("the file system cannot lock %s: %w", outside.Quoted(s.path, 300), keyfile.Reason(err))
		}
		if _ = f.Close(); err != nil {
			return nil, err
		}
	}
	return nil, store.ErrLost
}

// share also locks the file for the programs that have inherited it, if that is still the same file.
func (s *state) share(f *os.File, ours fs.FileInfo) error {
	if s.lent == nil {
		return nil
	}
	if lent, err := s.lent.Stat(); err != nil || !os.SameFile(lent, ours) {
		return nil //nolint:nilerr // the programs have inherited a file that was replaced
	}
	return shareLock(f, s.lent)
}

func (s *state) openFile(flags int) (*os.File, error) { return openRegular(s.path, flags) }

// openRegular opens a regular file. It returns an error for other files, because opening a pipe would wait.
func openRegular(path string, flags int) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file; name a regular file")
	}
	return os.OpenFile(path, flags, 0o600)
}

// errForeign is the error for a file beside the state that wrap cannot have made.
var errForeign = errors.New("it is a link, or no regular file, so wrap has not made it; remove it")

// openItself opens a file beside the state. It does not follow a link, because others may have made the link to have
// another file read.
func openItself(path string) (*os.File, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, errForeign
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(named, opened) {
		_ = f.Close()
		return nil, errForeign
	}
	return f, nil
}

// inInfo returns the description of the lock in the file beside the state, and a lock with the ID "unknown" if that
// cannot be read: a process that has just taken the lock may not have written it yet, and a CLI waits only for a lock
// that has an ID.
func (s *state) inInfo() *store.Lock {
	unknown := &store.Lock{ID: "unknown", Path: s.path}
	f, err := openItself(s.info)
	if err != nil {
		return unknown
	}
	defer f.Close()
	const most = 1 << 20 // bytes, like the limit of other small files
	text, err := meter.Read(f, -1, most)
	if lock, ok := store.ParseLock(text); err == nil && ok && lock.ID != "" {
		return &lock
	}
	return unknown
}

// ofProcess returns the description of the lock of a running process.
func (s *state) ofProcess() *store.Lock {
	lock := s.inInfo()
	lock.OfProcess = true
	return lock
}

// noteLeft shows a notice about a lock whose holder has ended without releasing it.
func (s *state) noteLeft(ctx context.Context) {
	if !recognize.Exists(s.info) {
		return
	}
	left := s.inInfo()
	notice.Show(ctx, fmt.Sprintf("%s held the lock of %s since %s, for %s, and ended without releasing it: its changes may be missing "+
		"from the state", outside.Quoted(cmp.Or(left.Who, "somebody"), 100), outside.Quoted(s.path, 300), outside.Quoted(left.Created, 100),
		outside.Quoted(left.Operation, 100)))
}

// release releases our lock. The description of the holder may stay.
func (s *state) release(ctx context.Context) error {
	if err := os.Remove(s.info); err != nil && !errors.Is(err, fs.ErrNotExist) {
		notice.Show(ctx, fmt.Sprintf("the lock of %s was released, but %v", outside.Quoted(s.path, 300), failed(s.info, err)))
	}
	return s.letGo()
}

// letGo releases the lock, also for the programs that have inherited the file.
func (s *state) letGo() (err error) {
	if s.f == nil {
		return nil
	}
	if s.lent != nil {
		err = unlockFile(s.lent)
	}
	err = s.failed(errors.Join(err, unlockFile(s.f), s.f.Close()))
	s.f = nil
	return err
}

// Holder asks the system whether the file is locked, and reads the description of the holder beside it.
func (s *state) Holder(context.Context) (*store.Lock, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f != nil {
		return &s.lock, nil
	}
	f, err := s.openFile(os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nobody can have locked it
	}
	if err != nil {
		return nil, s.failed(err)
	}
	defer f.Close()
	if _, held, err := holder(f); err != nil || !held {
		return nil, s.failed(err)
	}
	return s.ofProcess(), nil
}

// Unlock releases our lock. The lock of another running process cannot be released; Unlock removes the
// description that an ended process left.
func (s *state) Unlock(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.f != nil && id != s.lock.ID:
		return &store.HeldError{By: &s.lock}
	case s.f != nil:
		return s.release(ctx)
	}
	if f, err := s.openFile(os.O_RDONLY); err == nil {
		defer f.Close()
		if pid, held, err := holder(f); err != nil || held {
			return cmp.Or(s.failed(err), error(&store.AliveError{Process: pid, By: s.inInfo()}))
		}
	}
	left := s.inInfo()
	switch {
	case !recognize.Exists(s.info):
		return store.ErrMissing
	case left.ID != id:
		return &store.HeldError{By: left}
	}
	return failed(s.info, os.Remove(s.info))
}

// failed returns an error about the file of the state.
func (s *state) failed(err error) error { return failed(s.path, err) }

func failed(path string, err error) error {
	if err == nil {
		return nil
	}
	reason := fmt.Errorf("%s: %w", outside.Quoted(path, 300), keyfile.Explain(path, keyfile.Reason(err)))
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %w", store.ErrDenied, reason)
	}
	return reason
}
