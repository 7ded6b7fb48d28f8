package meter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
)

// Read reads all of r, which contains size bytes, or an unknown number if size is -1. If there are more than
// limit bytes, it returns a [TooLarge] error. If the size is known, Read allocates exactly that much memory,
// because states can be large, and a growing buffer would take several times the size of the file. The result has a
// little spare capacity, so that an encrypted copy can be decrypted in its memory.
func Read(r io.Reader, size, limit int64) ([]byte, error) {
	switch {
	case size > limit:
		return nil, TooLarge(limit)
	case size < 0:
		return readUnknown(r, limit)
	}
	data := make([]byte, size, size+spare)
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

// TooLarge returns the error for a file larger than max bytes.
func TooLarge(max int64) error { return tooLargeError(max) }

type tooLargeError int64

func (e tooLargeError) Error() string {
	return fmt.Sprintf("the file is larger than %d bytes", int64(e))
}

// IsTooLarge reports whether err is or wraps a [TooLarge] error.
func IsTooLarge(err error) bool {
	_, ok := errors.AsType[tooLargeError](err)
	return ok
}

// PackedLimit returns the maximum size, stored or sent, of a file of at most limit bytes that may be
// compressed with gzip. Gzip makes incompressible data slightly larger.
func PackedLimit(limit int64) int64 {
	const most = 1 << 40 // more than any machine's memory, and small enough not to overflow
	limit = min(limit, most)
	return limit + limit/1000 + 1024
}

const spare = 64 // in bytes

// firstRead is the initial buffer size for a file of unknown size, in bytes. Most states fit.
const firstRead = 64 << 10

// readUnknown reads in chunks, so that it uses little more memory than the size of the file.
func readUnknown(r io.Reader, limit int64) ([]byte, error) {
	r = io.LimitReader(r, min(limit, math.MaxInt64-1)+1) // the extra byte shows whether the file exceeds the limit
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

// join concatenates the chunks. It releases large chunks to the operating system as soon as they are copied,
// so that they do not take memory twice.
func join(chunks [][]byte, total int) []byte {
	if len(chunks) == 1 {
		return chunks[0]
	}
	whole := make([]byte, 0, total+spare)
	for i, chunk := range chunks {
		whole = append(whole, chunk...)
		if chunks[i] = nil; len(chunk) > 8<<20 {
			debug.FreeOSMemory()
		}
	}
	return whole
}

// perUnit is the number of unpacked bytes that one unit pays for. Keeping them takes about half a unit's
// memory, and unpacking and reading them takes about a unit's time.
const perUnit = 320

// Expanded returns the maximum size that n compressed bytes may unpack to, in bytes, if the result is kept.
// Legitimate files can shrink to less than a hundredth of their size: a state may contain the same script in
// many resources.
func Expanded(n int64) int64 { return perUnit * (Free + n/bytesPerUnit) }

// ErrExpands means that compressed data expands to more than [Expanded] allows.
var ErrExpands = fmt.Errorf("it unpacks to more than %d MB and more than %d times its size; store it without compression",
	perUnit*Free/1_000_000, perUnit/bytesPerUnit)

// Unpack returns the decompressed content of packed. The function unpack creates the decompressor, such as a
// gzip reader. If there are more than limit bytes, Unpack returns a [TooLarge] error; if there are more than
// [Expanded] allows, it returns [ErrExpands]. It decompresses twice, and only counts the bytes the first
// time, so that a rejected file takes no memory, and any other file takes only the size of its content.
func Unpack[R io.Reader](packed []byte, limit int64, unpack func(io.Reader) (R, error)) ([]byte, error) {
	most := min(limit, Expanded(int64(len(packed))))
	r, err := unpack(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	size, err := io.Copy(io.Discard, io.LimitReader(r, most+1))
	switch {
	case size > limit:
		return nil, TooLarge(limit)
	case size > most:
		return nil, ErrExpands
	case err != nil:
		return nil, err
	}
	if r, err = unpack(bytes.NewReader(packed)); err != nil {
		return nil, err
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, err
	}
	return content, nil
}
