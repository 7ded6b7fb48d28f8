package meter

import (
	"bytes"
	"fmt"
	"io"
)

// perUnit is the number of unpacked bytes that one unit pays for. Keeping them takes about half of
// the memory of a unit, and unpacking and reading them takes about its time.
const perUnit = 320

// Expanded returns the number of bytes that n packed bytes may unpack to, if the result is kept. An
// honest file may be compressed to less than a hundredth: a state may have the same script in many
// resources.
func Expanded(n int64) int64 { return perUnit * (Free + n/bytesPerUnit) }

// ErrExpands means that compressed data expands to more than [Expanded].
var ErrExpands = fmt.Errorf("it unpacks to more than %d MB and %d times its size; store it without compression",
	perUnit*Free/1_000_000, perUnit/bytesPerUnit)

// Unpack returns the content that unpack, such as a reader of gzip, makes of packed. More than
// limit bytes are a [TooLarge] error, and more than [Expanded] allows are [ErrExpands]. It unpacks
// twice, and only counts the first time, so that a refused file takes no memory, and any other file
// no more than its content.
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
