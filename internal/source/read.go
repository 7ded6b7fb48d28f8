package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
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

// Patience is how long the requests for one state may take together.
const Patience = 10 * time.Minute

// Within ends a read that takes several requests when they take too long
// together: how many there are may be the server's choice.
func Within(ctx context.Context, patience time.Duration, read func(context.Context) (*Snapshot, error)) (*Snapshot, error) {
	patience = cmp.Or(patience, Patience)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	snapshot, err := read(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("the state could not be read within %s, with all the requests that it takes", patience)
	}
	return snapshot, err
}

// PackedLimit is how many bytes may be stored or sent, with gzip or without, of a
// file of at most limit bytes: gzip makes what it cannot pack a little larger.
func PackedLimit(limit int64) int64 {
	const most = 1 << 40 // more than any memory, and far from an overflow
	limit = min(limit, most)
	return limit + limit/1000 + 1024
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
