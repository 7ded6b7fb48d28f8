// Package replace writes files that hold secrets in the place of others, at once.
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

// File puts data in the place of a file, or leaves everything as it is. A file that this
// user may not write stays, although the folder would let it be replaced. If the file
// has to be the one of before, its rights are kept, and its owner where we may; otherwise
// only this user may read it.
func File(ctx context.Context, name string, data []byte, before os.FileInfo) error {
	name, err := Place(name)
	if err == nil {
		err = mayWrite(name)
	}
	if err != nil {
		return err
	}
	t, err := newTemporary(filepath.Dir(name), filepath.Base(name))
	if err != nil {
		return err
	}
	_, err = t.Write(data)
	if err == nil && before != nil {
		keepOwner(t.File, before)
		if err = keepACL(t.File, name); err == nil {
			err = t.Chmod(before.Mode().Perm())
		}
	}
	if err == nil {
		err = t.Sync()
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && before != nil {
		err = expectUnchanged(name, before)
	}
	return t.finish(name, err)
}

// Place follows the links of a name, or they would be replaced, and the file would
// stay. What is no regular file has no place to be replaced in, and neither has one
// that is named by a descriptor: whoever has it open would not see what is written.
func Place(name string) (string, error) {
	for range 40 { // links after which Linux gives up
		info, err := os.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return name, nil
		case err != nil:
			return "", err
		case info.Mode().IsRegular():
			return name, nil
		case info.IsDir():
			return "", errors.New("it is a directory; the name of a file is required")
		case info.Mode()&fs.ModeSymlink == 0:
			return "", errors.New("it is not a regular file; name another")
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(dir, "/proc/") && filepath.Base(dir) == "fd" {
			return "", errors.New("it is a file that a process has open, and cannot be replaced; -o - is standard output")
		}
		link, err := os.Readlink(name)
		if err != nil {
			return "", err
		}
		if name = link; !filepath.IsAbs(link) {
			name = filepath.Join(dir, link)
		}
	}
	return "", errors.New("there are too many links; name the file itself")
}

// mayWrite looks whether a file could be written if it were not replaced.
func mayWrite(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("it cannot be written: %w", keyfile.Explain(name, err))
	}
	return f.Close()
}

// expectUnchanged looks whether somebody has written a file since.
func expectUnchanged(name string, before os.FileInfo) error {
	now, err := os.Stat(name)
	if err == nil && (!os.SameFile(before, now) || now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime())) {
		err = errors.New("somebody changed it meanwhile; try again")
	}
	return err
}

// temporary is a file that takes the place of another one. Where the system can do
// that, it has no name until it is complete, so nothing of it stays if the process is
// killed; elsewhere, a file that only this user may read stays.
type temporary struct {
	*os.File
	name string // "" as long as it has none
}

func newTemporary(dir, base string) (*temporary, error) {
	if f := unnamed(dir); f != nil {
		return &temporary{File: f}, nil
	}
	f, err := os.CreateTemp(dir, hidden(base)+"*") // with mode 0600
	if failed, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("its folder must be made first: %w", failed.Err)
	} else if ok {
		err = fmt.Errorf("no file can be made in the folder %q: %w", dir, keyfile.Explain(dir, failed.Err)) // the name of this one says nothing
	}
	if err != nil {
		return nil, err
	}
	return &temporary{f, f.Name()}, nil
}

// hidden is how the name of the file begins meanwhile. There is one for each name that is
// possible.
func hidden(base string) string {
	const most = 200
	return "." + strings.ToValidUTF8(base[:min(len(base), most)], "") + "."
}

// finish puts the file in its place, or after an error removes it.
func (t *temporary) finish(name string, err error) error {
	if err == nil && t.name == "" {
		named := filepath.Join(filepath.Dir(name), hidden(filepath.Base(name))+rand.Text())
		if err = link(t.File, named); err == nil {
			t.name = named
		}
	}
	err = errors.Join(err, t.Close())
	if err == nil {
		err = os.Rename(t.name, name)
	}
	if err != nil && t.name != "" {
		_ = os.Remove(t.name)
	}
	return err
}
