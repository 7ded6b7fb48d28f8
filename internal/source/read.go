package source

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Read reads all of r, which holds size bytes, or -1 when nobody knows. More
// than limit bytes are a [TooLarge] error. A known size is allocated once and
// exactly: states can be large, and a buffer that grows costs several times
// the file.
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

// firstRead is what a file of unknown size starts with. Most states fit.
const firstRead = 64 << 10

func readUnknown(r io.Reader, limit int64) ([]byte, error) {
	enough := min(limit, math.MaxInt64-1) + 1 // one more shows that there is more
	r = io.LimitReader(r, enough)
	data := make([]byte, 0, min(firstRead, enough))
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if int64(len(data)) > limit {
			return nil, TooLarge(limit)
		}
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, int(min(int64(len(data)), enough-int64(len(data)))))
		}
	}
}
