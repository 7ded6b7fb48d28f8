package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/keyfile"
)

const (
	stdinName = "-"
	maxFile   = math.MaxInt32 // bytes of a file that is read: 2 GiB
	chunkSize = 1 << 20       // bytes, of the first chunk of a pipe
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
	data, err := readAll(in, func(size int) { c.progress("reading", size) })
	return data, keyfile.Reason(err)
}

// readAll reads to the end with little more memory than the result takes: into
// one buffer of the right size if the system knows it, else into chunks.
func readAll(in io.Reader, progress func(read int)) ([]byte, error) {
	var chunks [][]byte
	total := 0
	for size := sizeOf(in) + 1; ; size = max(chunkSize, total/4) {
		chunk := make([]byte, size)
		n, err := io.ReadFull(in, chunk)
		chunks, total = append(chunks, chunk[:n]), total+n
		switch {
		case total >= maxFile:
			return nil, errors.New("it is larger than 2 GiB")
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return join(chunks, total), nil
		case err != nil:
			return nil, err
		}
		progress(total)
	}
}

// sizeOf returns what is left of a regular file, which standard input may be;
// about any other it guesses.
func sizeOf(in io.Reader) int {
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			at, _ := f.Seek(0, io.SeekCurrent)
			return int(max(0, min(info.Size()-at, maxFile-1)))
		}
	}
	return chunkSize
}

// join returns the chunks in one piece. Large ones go back to the system as soon
// as they are copied, so that they do not count twice.
func join(chunks [][]byte, total int) []byte {
	if len(chunks) == 1 {
		return chunks[0]
	}
	whole := make([]byte, 0, total)
	for i, chunk := range chunks {
		whole = append(whole, chunk...)
		if chunks[i] = nil; len(chunk) > 8<<20 {
			debug.FreeOSMemory()
		}
	}
	return whole
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
