package meter

import (
	"errors"
	"io"
)

// What compressed data may expand to. States compress well, repetitive ones fifty
// times; nothing at all compresses a thousand times.
const (
	expandFactor   = 100
	expandConstant = 1 << 20 // bytes
)

// ErrExpands means that compressed data expands to more than any state does.
var ErrExpands = errors.New("it unpacks to more than 100 times its size and 1 MiB, as no state does; store it without compression")

// Unpack returns a reader of what unpack, such as a reader of gzip, makes of
// packed. It fails with [ErrExpands] as soon as that is too much for what was read
// of packed so far.
func Unpack[R io.Reader](packed io.Reader, unpack func(io.Reader) (R, error)) (io.Reader, error) {
	in := &counted{Reader: packed}
	unpacked, err := unpack(in)
	return &expanding{unpacked, in, 0}, err
}

// Expanded is how many bytes n may unpack to.
func Expanded(n int64) int64 { return expandConstant + expandFactor*n }

type counted struct {
	io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

type expanding struct {
	io.Reader
	packed *counted
	n      int64
}

func (e *expanding) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if e.n += int64(n); e.n > Expanded(e.packed.n) {
		return 0, ErrExpands
	}
	return n, err
}
