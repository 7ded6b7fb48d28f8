package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const (
	stdinName = "-"
	maxFile   = math.MaxInt32 // bytes of a file that is read: 2 GiB
)

// read returns the content of a file.
func (c *call) read(name string) ([]byte, error) {
	in := c.stdin
	if name != stdinName {
		f, err := os.Open(name)
		if err != nil {
			return nil, keyfile.Reason(err)
		}
		defer f.Close()
		in = f
	}
	data, err := source.Read(in, sizeOf(in), maxFile)
	return data, keyfile.Reason(err)
}

// sizeOf is what is left to read of a regular file, which standard input may be, and
// -1 for anything else.
func sizeOf(in io.Reader) int64 {
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			at, _ := f.Seek(0, io.SeekCurrent)
			return max(0, info.Size()-at)
		}
	}
	return -1
}

// toStdout reports whether -o is absent, or names standard output in one of its ways:
// a file that it is redirected to must not be replaced, because others write to it.
func (c *call) toStdout() bool {
	if c.output == "" || c.output == stdinName {
		return true
	}
	out, ok := c.stdout.(*os.File)
	if !ok {
		return false
	}
	named, err := os.Stat(c.output)
	open, openErr := out.Stat()
	return err == nil && openErr == nil && os.SameFile(named, open)
}

// write writes to the file of -o, else to standard output.
func (c *call) write(ctx context.Context, data []byte) error {
	if c.toStdout() {
		_, err := c.stdout.Write(data)
		return keyfile.Reason(err)
	}
	if err := replace(ctx, c.output, data, nil); err != nil {
		return fmt.Errorf("%s cannot be written: %w", shown(c.output), keyfile.Reason(err))
	}
	return nil
}

// replace puts data in the place of a file, or leaves everything as it is. If the file
// has to be the one of before, its mode is kept, and its owner where we may; otherwise
// only this user may read it.
func replace(ctx context.Context, name string, data []byte, before os.FileInfo) error {
	name, err := place(name)
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
		err = t.Chmod(before.Mode().Perm())
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

// place follows the links of a name, or they would be replaced, and the file would
// stay. What is no regular file has no place to be replaced in, and neither has one
// that is named by a descriptor: whoever has it open would not see what is written.
func place(name string) (string, error) {
	for range 40 { // links after which Linux gives up
		info, err := os.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return name, nil
		case err != nil:
			return "", err
		case info.Mode().IsRegular():
			return name, nil
		case info.Mode()&fs.ModeSymlink == 0:
			return "", errors.New("it is not a regular file")
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
	return "", errors.New("there are too many links")
}

// expectUnchanged looks whether somebody has written a file since.
func expectUnchanged(name string, before os.FileInfo) error {
	now, err := os.Stat(name)
	if err == nil && (!os.SameFile(before, now) || now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime())) {
		err = errors.New("somebody changed it meanwhile")
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
	f, err := os.CreateTemp(dir, "."+base+".*") // with mode 0600
	if err != nil {
		return nil, err
	}
	return &temporary{f, f.Name()}, nil
}

// finish puts the file in its place, or after an error removes it.
func (t *temporary) finish(name string, err error) error {
	if err == nil && t.name == "" {
		named := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"."+rand.Text())
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
