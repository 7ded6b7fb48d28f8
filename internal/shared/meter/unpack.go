package meter

import (
	"bytes"
	"fmt"
	"io"
)

// perUnit is how many bytes a unit pays for that are unpacked and kept: they take half of its memory, and
// as long as it does to be unpacked and looked through.
const perUnit = 320

// Expanded is how many bytes n may unpack to, if those are kept. Honest files are compressed to less than
// a hundredth: a state has the same script in each of many resources.
func Expanded(n int64) int64 { return perUnit * (Free + n/bytesPerUnit) }

// ErrExpands means that compressed data expands to more than [Expanded].
var ErrExpands = fmt.Errorf("it unpacks to more than %d MB and %d times its size; store it without compression",
	perUnit*Free/1_000_000, perUnit/bytesPerUnit)

// Unpack returns the content that unpack, such as a reader of gzip, makes of packed: at most limit bytes,
// or the error is [TooLarge], and no more than [Expanded], or it is [ErrExpands]. It unpacks
// twice, and the first time only counts, so that a file that is refused takes no memory, and any
// other no more than its content.
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
