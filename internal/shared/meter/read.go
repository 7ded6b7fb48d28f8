package meter

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
)

// Read reads all of r, which holds size bytes; -1 stands for an unknown size. More than limit bytes
// are a [TooLarge] error. If the size is known, exactly that much memory is allocated, because
// states can be large, and a growing buffer costs several times the file.
func Read(r io.Reader, size, limit int64) ([]byte, error) {
	switch {
	case size > limit:
		return nil, TooLarge(limit)
	case size < 0:
		return readUnknown(r, limit)
	}
	data := make([]byte, size)
	n, err := io.ReadFull(r, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("the file ended after %d of %d bytes: %w", n, size, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return nil, err
	}
	if err := expectEnd(r); err != nil {
		return nil, err
	}
	return data, nil
}

func expectEnd(r io.Reader) error {
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return errors.New("the file is longer than announced; it may have changed while it was read")
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}

// TooLarge returns the error for a file of more than max bytes.
func TooLarge(max int64) error { return tooLargeError(max) }

type tooLargeError int64

func (e tooLargeError) Error() string {
	return fmt.Sprintf("the file is larger than %d bytes", int64(e))
}

// IsTooLarge reports whether err comes from [TooLarge].
func IsTooLarge(err error) bool {
	_, ok := errors.AsType[tooLargeError](err)
	return ok
}

// PackedLimit returns the largest stored or sent size, with gzip or without, of a file of at most
// limit bytes: gzip makes incompressible data a little larger.
func PackedLimit(limit int64) int64 {
	const most = 1 << 40 // more than any memory, and far from an overflow
	limit = min(limit, most)
	return limit + limit/1000 + 1024
}

// firstRead is the size of the first buffer for a file of unknown size, in bytes. Most states fit.
const firstRead = 64 << 10

// readUnknown reads chunks, so that little more memory is used than the file takes.
func readUnknown(r io.Reader, limit int64) ([]byte, error) {
	r = io.LimitReader(r, min(limit, math.MaxInt64-1)+1) // the byte after the limit shows that the file is too large
	var chunks [][]byte
	chunk, total := make([]byte, 0, firstRead), 0
	for {
		n, err := r.Read(chunk[len(chunk):cap(chunk)])
		chunk, total = chunk[:len(chunk)+n], total+n
		switch {
		case int64(total) > limit:
			return nil, TooLarge(limit)
		case errors.Is(err, io.EOF):
			return join(append(chunks, chunk), total), nil
		case err != nil:
			return nil, err
		case len(chunk) == cap(chunk):
			chunks, chunk = append(chunks, chunk), make([]byte, 0, max(firstRead, total/4))
		}
	}
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
