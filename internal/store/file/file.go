// Package file keeps a state in a file, like the local backend of Terraform and OpenTofu. It uses the same lock as they
// do, so that they keep each other out. It overwrites the file in place, because other programs wait for the lock on
// this file.
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
	return store.Kind{Table: filesource.Backend(), Named: "path", Older: "the .backup next to it, and other copies", Open: open}
}

// files keeps the states of one module.
type files struct {
	store.Settings

	mu     sync.Mutex
	opened []*state
}

func open(s store.Settings) (store.Store, error) { return &files{Settings: s}, nil }

// Properties returns the properties of files. The operating system releases their locks.
func (*files) Properties() store.Properties {
	return store.Properties{HasLocks: true, Verifies: true, EndsWithProcess: true}
}

// State returns the state in the named file. An empty name means terraform.tfstate in the module folder.
func (s *files) State(name string) (store.State, error) {
	path, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	if name == "" {
		path = filepath.Join(s.Module, "terraform.tfstate")
	}
	dir, base := filepath.Split(path)
	const longest = 255 - len(".01234567.unwritten") // in bytes, with room for the longer names of related files
	if len(base) > longest {
		return nil, s.Errorf("path", "the name of the file has %d bytes, but at most %d are possible, because files next to it have longer "+
			"names; choose a shorter name",
			len(base), longest)
	}
	info := filepath.Join(dir, "."+strings.TrimPrefix(base, ".")+".lock.info") // the name that Terraform and OpenTofu use
	one := &state{
		path: path, info: info, journal: journalOf(path), backup: path + ".backup",
		limit: s.Limit, seal: s.Seal, through: func(f *os.File) handle { return f },
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = append(s.opened, one)
	return one, nil
}

// resolve returns the full path of a name. The name may begin with ~. A relative name starts in the folder of the
// settings file.
func (s *files) resolve(name string) (string, error) {
	path, err := world.ExpandHome(name)
	if err = cmp.Or(filesource.CheckPath(name), err); err != nil { // the attribute table has not checked a List prefix
		return "", s.Errorf("path", "%w", err)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Folder, path)
	}
	return path, nil
}

// List returns the files whose names begin with prefix. It leaves out hidden files, files in hidden folders, and
// backups.
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

// Close releases all locks, as the end of the process would. The lock descriptions stay.
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

// handle is the locked file. All operations use one descriptor: where a lock belongs to the process, closing any other
// descriptor of the file would release the lock.
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
	lent  *os.File   // the file that Lend opened, open until Close; nil if no child has inherited it
	f     handle     // the locked file, or nil without the lock
	lock  store.Lock // the lock description
	saved bool       // whether the backup has the state that this run found
}

func (s *state) String() string { return s.path }

// Keeps reports whether the file at path is the state or its backup.
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

// Lend returns the file that will be locked, for a child to inherit. If this process is killed, the child keeps the
// lock until it exits. The child can only read the file, because a script that accidentally writes to the descriptor
// would destroy the state. The caller closes the file once the child runs. Lend returns nil if this system does not
// inherit locks, or if the file cannot be opened. In the second case, Lock returns the error later.
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

// Read reads the file. It does not wait for writers.
func (s *state) Read(ctx context.Context) ([]byte, store.Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	data, err := s.read()
	if err == nil && isUnfinished(data) {
		if err = s.notFinished(); s.f != nil { // Lock has found no journal
			err = &store.DamagedError{Err: err, File: data, Version: version(data)}
		}
	}
	if err != nil || len(data) == 0 {
		return nil, "", err
	}
	return data, version(data), nil
}

// read returns the content of the file, or nil if the file does not exist.
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

// version returns the version of the content. Empty content has an empty version, like a missing file.
func version(data []byte) store.Version {
	if len(data) == 0 {
		return ""
	}
	return store.Digest(data)
}

// Write replaces the content of the file. If this run does not hold the lock, Write takes the lock while it writes, so
// that it does not write to a file locked by another run.
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

// Remove empties the file. It does not delete the file, because others may be waiting for its lock.
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

// locked calls work under our lock. Without one, it takes a lock just for this call.
func (s *state) locked(ctx context.Context, work func() error) (err error) {
	if s.f == nil {
		if err := s.take(ctx, store.NewLock("statecrypt")); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.release(ctx)) }()
	}
	return work()
}

// unchanged returns the content of the file. It returns [store.ErrChanged] if the content is not the version that was
// read.
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

// stillThere returns [store.ErrLost] if the path no longer leads to the locked file. For example, git replaces files.
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

// keepFound writes the state that this run found to the backup, encrypted, once per run.
func (s *state) keepFound(ctx context.Context, found []byte) error {
	if s.saved || len(found) == 0 {
		return nil
	}
	copied, err := s.seal(ctx, found)
	if err != nil {
		return fmt.Errorf("could not encrypt the existing state for a backup: %w", err)
	}
	if copied == nil {
		return nil
	}
	err = replace.Name(ctx, s.backup, copied)
	s.saved = err == nil
	return failed(s.backup, err)
}

// Lock takes the same lock as Terraform and OpenTofu. It locks the file, and writes a second file that names the
// holder.
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
var errHeld = errors.New("someone holds the lock")

// acquire opens the file and locks it. It tries again if the path leads to another file by then.
func (s *state) acquire() (*os.File, error) {
	for range 100 {
		f, err := s.openFile(os.O_RDWR | os.O_CREATE)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the folder of %s does not exist; create it", outside.Quoted(s.path, 300))
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

// share extends the lock to the descriptor that children have inherited, if it still refers to the same file.
func (s *state) share(f *os.File, ours fs.FileInfo) error {
	if s.lent == nil {
		return nil
	}
	if lent, err := s.lent.Stat(); err != nil || !os.SameFile(lent, ours) {
		return nil //nolint:nilerr // the inherited file has been replaced
	}
	return shareLock(f, s.lent)
}

func (s *state) openFile(flags int) (*os.File, error) { return openRegular(s.path, flags) }

// openRegular opens a regular file. It returns an error for other files, because opening a pipe would block.
func openRegular(path string, flags int) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file; set the path of a regular file")
	}
	return os.OpenFile(path, flags, 0o600)
}

// errForeign is returned if a file next to the state cannot have been created by wrap.
var errForeign = errors.New("it is a link, or not a regular file, so wrap did not create it; remove it")

// openItself opens a file next to the state. It does not follow links, because an attacker may have created a link to
// another file.
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

// inInfo returns the lock description stored next to the state. If it cannot be read, inInfo returns a lock with the ID
// "unknown": a process that has just taken the lock may not have written the description yet, and Terraform and
// OpenTofu wait only for a lock with an ID.
func (s *state) inInfo() *store.Lock {
	unknown := &store.Lock{ID: "unknown", Path: s.path}
	f, err := openItself(s.info)
	if err != nil {
		return unknown
	}
	defer f.Close()
	const most = 1 << 20 // in bytes, like the limit for other small files
	text, err := meter.Read(f, -1, most)
	if lock, ok := store.ParseLock(text); err == nil && ok && lock.ID != "" {
		return &lock
	}
	return unknown
}

// ofProcess returns the description of a lock held by a running process.
func (s *state) ofProcess() *store.Lock {
	lock := s.inInfo()
	lock.OfProcess = true
	return lock
}

// noteLeft shows a notice about a lock whose holder exited without releasing it.
func (s *state) noteLeft(ctx context.Context) {
	if !recognize.Exists(s.info) {
		return
	}
	left := s.inInfo()
	notice.Show(ctx, fmt.Sprintf("%s held the lock of %s since %s for %s, but ended without releasing the lock, so changes of that run may "+
		"be missing from the "+
		"state", outside.Quoted(cmp.Or(left.Who, "someone"), 100), outside.Quoted(s.path, 300), outside.Quoted(left.Created, 100),
		outside.Quoted(left.Operation, 100)))
}

// release releases our lock. If the lock description cannot be removed, it stays.
func (s *state) release(ctx context.Context) error {
	if err := os.Remove(s.info); err != nil && !errors.Is(err, fs.ErrNotExist) {
		notice.Show(ctx, fmt.Sprintf("the lock of %s was released, but %v", outside.Quoted(s.path, 300), failed(s.info, err)))
	}
	return s.letGo()
}

// letGo releases the lock, including the part shared with children that inherited the file.
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

// Holder asks the operating system whether the file is locked, and reads the lock description.
func (s *state) Holder(context.Context) (*store.Lock, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f != nil {
		return &s.lock, nil
	}
	f, err := s.openFile(os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a missing file cannot be locked
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

// Unlock releases our lock. It cannot release the lock of another running process, but removes the lock description of
// a process that has exited.
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

// failed returns err as an error about the state file.
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
