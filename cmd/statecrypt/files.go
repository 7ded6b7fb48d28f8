package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

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

// write writes to the file of -o, else to standard output.
func (c *call) write(ctx context.Context, data []byte) error {
	if c.output == "" {
		_, err := c.stdout.Write(data)
		return keyfile.Reason(err)
	}
	if err := replace(ctx, c.output, data); err != nil {
		return fmt.Errorf("%s cannot be written: %w", shown(c.output), keyfile.Reason(err))
	}
	return nil
}

// replace puts data in the place of a file, or leaves everything as it is.
func replace(ctx context.Context, name string, data []byte) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // or the link would be replaced, and the file would stay
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	temporary, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if err == nil {
		err = temporary.Sync()
	}
	err = errors.Join(err, temporary.Close(), context.Cause(ctx))
	if err == nil {
		err = os.Rename(temporary.Name(), name)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}
