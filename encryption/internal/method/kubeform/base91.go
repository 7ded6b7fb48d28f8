package kubeform

import (
	"errors"
	"fmt"
)

// alphabet is the alphabet of basE91 by Joachim Henke (https://base91.sourceforge.net). The
// encoding is implemented here because the Go module that Kubeform used is not available. That
// module skips every character outside the alphabet, but this package skips only white space.

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&()*+,./:;<=>?@[]^_`{|}~\""

// digits returns the value of each byte. It is 0 to 90 for characters in the alphabet, space for
// white space, and outside for everything else.
func digits() (values [256]byte) {
	for i := range values {
		values[i] = outside
	}
	for _, c := range " \t\r\n" {
		values[c] = space
	}
	for i := range len(alphabet) {
		values[alphabet[i]] = byte(i)
	}
	return values
}

const (
	outside = 0xff
	space   = 0xfe
)

// decode returns the bytes that text encodes. Two characters hold 13 bits, or 14 if the lower 13
// are at most 88. The first bits are the lowest.
func decode(text []byte) ([]byte, error) {
	values := digits()
	out := make([]byte, 0, len(text)*7/8) // at most 14 bits for two characters
	var queue, bits uint32
	first := -1 // the first character of a pair; -1 means none
	for i, c := range text {
		digit := values[c]
		switch {
		case digit == space:
			continue
		case digit == outside:
			return nil, fmt.Errorf("the character at byte %d is not a base91 character", i)
		case first < 0:
			first = int(digit)
			continue
		}
		pair := uint32(first) + 91*uint32(digit)
		first = -1
		queue |= pair << bits
		if pair&8191 > 88 {
			bits += 13
		} else {
			bits += 14
		}
		for bits > 7 {
			out = append(out, byte(queue))
			queue >>= 8
			bits -= 8
		}
	}
	if first >= 0 {
		queue |= uint32(first) << bits
		out = append(out, byte(queue&0xff))
		queue >>= 8
	}
	if queue != 0 {
		return nil, errors.New("the text ends with invalid bits: its end was changed or truncated")
	}
	return out, nil
}

func encode(data []byte) []byte {
	out := make([]byte, 0, len(data)*16/13+2) // at most two characters for 13 bits
	var queue, bits uint32
	for _, b := range data {
		queue |= uint32(b) << bits
		bits += 8
		if bits <= 13 {
			continue
		}
		pair, size := queue&8191, uint32(13)
		if pair <= 88 {
			pair, size = queue&16383, 14
		}
		queue >>= size
		bits -= size
		out = append(out, alphabet[pair%91], alphabet[pair/91])
	}
	if bits > 0 {
		out = append(out, alphabet[queue%91])
		if bits > 7 || queue > 90 {
			out = append(out, alphabet[queue/91])
		}
	}
	return out
}
