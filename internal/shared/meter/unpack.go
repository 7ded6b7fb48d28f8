package meter

import (
	"bytes"
	"fmt"
	"io"
)

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
