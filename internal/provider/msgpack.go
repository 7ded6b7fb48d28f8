package provider

import "encoding/binary"

// promisesTooMuch reports whether a message in MessagePack announces more values than it can contain,
// each of which has at least one byte. Decoders allocate memory for announced values before they read
// them, and a process that runs out of memory cannot recover. Decoders find other mistakes.
//
// https://github.com/msgpack/msgpack/blob/master/spec.md
func promisesTooMuch(message []byte) bool {
	for announced := uint64(1); announced > 0; announced-- {
		if uint64(len(message)) < announced {
			return true
		}
		size, values, ok := header(message)
		if !ok || uint64(len(message)) < size {
			return false
		}
		message = message[size:]
		announced += values
	}
	return false
}

// header returns the number of bytes of a value, the number of values that follow as its elements, and
// whether message is MessagePack.
func header(message []byte) (size, values uint64, ok bool) {
	code := message[0]
	switch {
	case code <= 0x7f, code >= 0xe0, code == 0xc0, code == 0xc2, code == 0xc3: // small numbers, null, false and true
		return 1, 0, true
	case code <= 0x8f:
		return 1, 2 * uint64(code&0x0f), true
	case code <= 0x9f:
		return 1, uint64(code & 0x0f), true
	case code <= 0xbf:
		return 1 + uint64(code&0x1f), 0, true
	case code >= 0xca && code <= 0xd3:
		return 1 + [...]uint64{4, 8, 1, 2, 4, 8, 1, 2, 4, 8}[code-0xca], 0, true // floats, unsigned and signed numbers
	case code >= 0xd4 && code <= 0xd8:
		return 2 + 1<<(code-0xd4), 0, true // extensions of a fixed length, after their type
	}
	return counted(message)
}

// counted is [header] for codes that the length or the number of values follows.
func counted(message []byte) (size, values uint64, ok bool) {
	width := map[byte]uint64{
		0xc4: 1, 0xc5: 2, 0xc6: 4, 0xc7: 1, 0xc8: 2, 0xc9: 4, 0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4,
	}[message[0]]
	if width == 0 || uint64(len(message)) < 1+width {
		return 0, 0, false
	}
	count := make([]byte, 8)
	copy(count[8-width:], message[1:])
	size, n := 1+width, binary.BigEndian.Uint64(count)
	switch code := message[0]; {
	case code >= 0xde:
		return size, 2 * n, true
	case code >= 0xdc:
		return size, n, true
	case code >= 0xc7 && code <= 0xc9:
		size++ // the type of the extension
	}
	return size + n, 0, true
}
