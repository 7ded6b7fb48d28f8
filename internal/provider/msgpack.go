package provider

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// promisesTooMuch reports whether a MessagePack message announces more values than it can contain, given that
// each value takes at least one byte. Decoders allocate memory for announced values before reading them, and
// a process cannot recover from running out of memory. Other mistakes are left to the decoders.
//
// See https://github.com/msgpack/msgpack/blob/master/spec.md.
func promisesTooMuch(message []byte) bool {
	rest := bytes.NewReader(message)
	d := msgpack.NewDecoder(rest)
	for announced := uint64(1); announced > 0; announced-- {
		if uint64(rest.Len()) < announced { //nolint:gosec // a length is never negative
			return true
		}
		values, err := elements(d)
		if err != nil {
			return false
		}
		announced += values
	}
	return false
}

// elements reads either the header of an array or map, or a whole value of another type. It returns the
// number of elements that follow. It is not recursive, so deeply nested messages cannot exhaust the stack.
func elements(d *msgpack.Decoder) (uint64, error) {
	switch code, err := d.PeekCode(); {
	case err != nil:
		return 0, err
	case msgpcode.IsFixedArray(code), code == msgpcode.Array16, code == msgpcode.Array32:
		n, err := d.DecodeArrayLen()
		return uint64(uint32(n)), err //nolint:gosec // the length has 32 bits
	case msgpcode.IsFixedMap(code), code == msgpcode.Map16, code == msgpcode.Map32:
		n, err := d.DecodeMapLen()
		return 2 * uint64(uint32(n)), err //nolint:gosec // the length has 32 bits
	}
	return 0, d.Skip()
}
