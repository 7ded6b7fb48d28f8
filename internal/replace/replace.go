// Package replace writes files that may contain secrets, and replaces existing files atomically.
package replace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
)

// File atomically writes data to the file that name leads to, or changes nothing. It refuses to replace a file that the
// current user may not write, even if the folder permissions would allow it. If before is not nil, the file must not
// have changed since before was read, and the new file keeps its permissions and, if possible, its owner. Otherwise,
// only the current user can read the new file.
func File(ctx context.Context, name string, data []byte, before os.FileInfo) error {
	name, err := Place(name)
	if err != nil {
		return err
	}
	return put(ctx, byPath(filepath.Dir(name)), filepath.Base(name), data, original{name, before})
}

// Name works like [File], but for statecrypt's own files, whose permissions are not kept. If name is a link, Name
// replaces the link itself.
func Name(ctx context.Context, name string, data []byte) error {
	return put(ctx, byPath(filepath.Dir(name)), filepath.Base(name), data, original{})
}

// In works like [Name], but in an open folder, which nobody can exchange for another one meanwhile.
func In(ctx context.Context, dir *os.Root, base string, data []byte) error {
	return put(ctx, dir, base, data, original{})
}

// put writes data to a temporary file, and renames it to base.
func put(ctx context.Context, dir folder, base string, data []byte, of original) error {
	if err := mayWrite(dir, base); err != nil {
		return err
	}
	t, err := newTemporary(dir, base)
	if err != nil {
		return err
	}
	_, err = t.Write(data)
	if err == nil {
		err = of.keepRights(t.File)
	}
	if err == nil {
		err = t.Sync()
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = of.expectUnchanged()
	}
	return t.finish(base, err)
}

// folder is the folder that contains a file. It has methods of [os.Root]. Each name is the name of a file in the
// folder.
type folder interface {
	Name() string
	OpenFile(base string, flag int, mode os.FileMode) (*os.File, error)
	Lstat(base string) (os.FileInfo, error)
	Rename(from, to string) error
	Remove(base string) error
}

// byPath is a folder named by its path, which may lead to a different folder at each call.
type byPath string

func (f byPath) Name() string                           { return string(f) }
func (f byPath) in(base string) string                  { return filepath.Join(string(f), base) }
func (f byPath) Remove(base string) error               { return os.Remove(f.in(base)) }
func (f byPath) Rename(from, to string) error           { return os.Rename(f.in(from), f.in(to)) }
func (f byPath) Lstat(base string) (os.FileInfo, error) { return os.Lstat(f.in(base)) }

func (f byPath) OpenFile(base string, flag int, mode os.FileMode) (*os.File, error) {
	return os.OpenFile(f.in(base), flag, mode)
}

// original is the file whose permissions the new file gets. If info is nil, no permissions are copied.
type original struct {
	name string
	info os.FileInfo
}

func (o original) keepRights(f *os.File) error {
	if o.info == nil {
		return nil
	}
	keepOwner(f, o.info)
	if err := keepACL(f, o.name); err != nil {
		return err
	}
	return f.Chmod(o.info.Mode().Perm())
}

// expectUnchanged returns an error if the file was written since info was read.
func (o original) expectUnchanged() error {
	if o.info == nil {
		return nil
	}
	now, err := os.Stat(o.name)
	if err == nil && (!os.SameFile(o.info, now) || now.Size() != o.info.Size() || !now.ModTime().Equal(o.info.ModTime())) {
		err = errors.New("someone changed the file in the meantime; try again")
	}
	return err
}

// Place returns the path of the file that name leads to, with links resolved, so that the file is replaced and not a
// link to it. It returns an error if the file is not regular. It also returns an error if name is a file descriptor in
// /proc, because the process that has the file open would not see the new content.
func Place(name string) (string, error) {
	for range 40 { // the maximum number of links that Linux follows
		info, err := os.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return name, nil
		case err != nil:
			return "", err
		case info.Mode().IsRegular():
			return name, nil
		case info.IsDir():
			return "", errFolder
		case info.Mode()&fs.ModeSymlink == 0:
			return "", errIrregular
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(dir, "/proc/") && filepath.Base(dir) == "fd" {
			return "", errors.New("it is an open file of a process, and cannot be replaced; to write to standard output, use -o -")
		}
		link, err := os.Readlink(name)
		if err != nil {
			return "", err
		}
		if name = link; !filepath.IsAbs(link) {
			name = filepath.Join(dir, link)
		}
	}
	return "", errors.New("it leads through too many links; use the path of the file itself")
}

// mayWrite returns an error if the current user cannot write to the existing file base. It does not check links.
func mayWrite(dir folder, base string) error {
	info, err := dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Mode()&fs.ModeSymlink != 0:
		return nil
	case err == nil && info.IsDir():
		return errFolder
	case err == nil && !info.Mode().IsRegular():
		return errIrregular
	}
	f, err := dir.OpenFile(base, os.O_WRONLY, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("it cannot be written: %w", keyfile.Explain(filepath.Join(dir.Name(), base), err))
	}
	return f.Close()
}

var (
	errFolder    = errors.New("it is a directory; use the path of a file")
	errIrregular = errors.New("it is not a regular file; choose another file")
)

// temporary is a new file that will replace another. If the system allows it, the file has no name until it is
// complete, so nothing remains if the process is killed. Otherwise, a hidden file may remain.
type temporary struct {
	*os.File
	dir  folder
	name string // empty while the file has no name
}

func newTemporary(dir folder, base string) (*temporary, error) {
	if path, ok := dir.(byPath); ok {
		if f := unnamed(string(path)); f != nil {
			return &temporary{File: f, dir: dir}, nil
		}
	}
	name := hidden(base) + rand.Text()
	f, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if failed, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("its folder must be created first: %w", failed.Err)
	} else if ok {
		failure := keyfile.Explain(dir.Name(), failed.Err) // hides the random name
		err = fmt.Errorf("no file can be created in the folder %q: %w", dir.Name(), failure)
	}
	if err != nil {
		return nil, err
	}
	return &temporary{f, dir, name}, nil
}

// hidden returns the beginning of a temporary name for base. It uses at most 200 bytes of base, so that the name is
// never too long.
func hidden(base string) string {
	const most = 200
	return "." + strings.ToValidUTF8(base[:min(len(base), most)], "") + "."
}

// finish closes the file and renames it to base. After an error, it removes the file and returns the error.
func (t *temporary) finish(base string, err error) error {
	if err == nil && t.name == "" {
		named := hidden(base) + rand.Text()
		if err = link(t.File, filepath.Join(t.dir.Name(), named)); err == nil {
			t.name = named
		}
	}
	err = errors.Join(err, t.Close())
	if err == nil {
		err = t.dir.Rename(t.name, base)
	}
	if err != nil && t.name != "" {
		_ = t.dir.Remove(t.name)
	}
	return err
}
