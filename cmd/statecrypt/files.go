package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
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
			return nil, reason(name, err)
		}
		defer f.Close()
		in = f
	}
	data, err := source.Read(in, sizeOf(in), maxFile)
	return data, reason(name, err)
}

// reason is why a file that an argument names cannot be read.
func reason(name string, err error) error {
	short := keyfile.Reason(err)
	switch absent := errors.Is(err, fs.ErrNotExist) && !keyfile.IsContent(name); {
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%w; the names of files are required, such as %s", short, shown(filepath.Join(name, "*.tfstate")))
	case absent && strings.Contains(name, "://"):
		return fmt.Errorf("%w: the name of a file is required, and this is a URL; fetch the file first", short)
	case absent && strings.ContainsAny(name, "*?["):
		return fmt.Errorf("%w: the shell puts names in place of a pattern only if it is not quoted and a file matches", short)
	case absent && strings.HasPrefix(name, "~"):
		return fmt.Errorf("%w: the shell puts the home directory in place of ~ only if it is not quoted", short)
	}
	return keyfile.Explain(name, err)
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

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// write writes to the file of -o, else to standard output.
func (c *call) write(ctx context.Context, data []byte) error {
	if c.toStdout() {
		_, err := c.stdout.Write(data)
		return keyfile.Reason(err)
	}
	place, err := replace.Place(c.output)
	if err == nil {
		err = c.checkReplaced(place, data)
	}
	if err == nil {
		err = replace.File(ctx, place, data, nil)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", shown(c.output), reason(c.output, err))
	}
	return nil
}

// checkReplaced refuses to put data in the place of anything but an older version of it, as
// far as their formats say what that is.
func (c *call) checkReplaced(place string, data []byte) error {
	isPlace := func(name string) bool { return sameFile(name, place) }
	if slices.ContainsFunc(c.args, isPlace) {
		return nil
	}
	there, err := c.read(place)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(there) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	before, _ := inspectFile("", there)
	after, _ := inspectFile("", data)
	bothHave := func(m encryption.Block[encryption.Method]) bool {
		return m.Recognizes != nil && (!m.Vague || after.Kind == "unknown") && m.Recognizes(there) && m.Recognizes(data)
	}
	if slices.ContainsFunc(builtin.Registry().Methods, bothHave) {
		return nil
	}
	return wrap.CheckReplaced(before.info, after.info)
}
