package jsonwalk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxNesting is the maximum nesting depth. The limit of encoding/json is the same.
const maxNesting = 10000

// SyntaxError says where a text stops being valid JSON. It contains no part of the text.
type SyntaxError struct {
	Offset int    // in bytes from the start
	Reason string // the end of a sentence about the text, such as "ends too early"
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("it %s, at byte %d", e.Reason, e.Offset) }

// Reader reads a JSON text from its start, one value at a time. Its methods return [*SyntaxError] errors, and
// errors from the functions passed to them.
type Reader struct {
	data  []byte
	at    int
	known *[256]knownString // nil if no strings are kept
}

// NewReader returns a Reader for data. The caller must not modify data while the Reader is in use.
func NewReader(data []byte) *Reader { return &Reader{data: data} }

// knownString is a string that was read, with its bytes in the data.
type knownString struct{ quoted, text string }

// KeepStrings makes the Reader keep some of the short strings that it decodes, and return them again for the same
// bytes. Millions of objects with the same names and types then cost little time and memory. It returns the Reader.
func (r *Reader) KeepStrings() *Reader {
	r.known = new([256]knownString)
	return r
}

// Reset makes the Reader read other data from its start. It keeps the strings of [Reader.KeepStrings].
func (r *Reader) Reset(data []byte) { r.data, r.at = data, 0 }

// Offset returns the position of the next value in the data, in bytes from the start. At the end of a value, it
// returns the position after any white space.
func (r *Reader) Offset() int {
	r.space()
	return r.at
}

// Kind returns the first byte of the next value: one of { [ " t f n, or the digit 0 for any number. If the
// text is not JSON, Kind returns some other byte.
func (r *Reader) Kind() byte {
	r.space()
	switch c := r.peek(); {
	case c == '-' || c >= '0' && c <= '9':
		return '0'
	default:
		return c
	}
}

// Object reads an object and calls member with each name. The member function must read the value.
func (r *Reader) Object(member func(name string) error) error {
	return r.list('{', '}', func() error {
		name, err := r.String()
		if err != nil {
			return err
		}
		if err := r.expect(':'); err != nil {
			return err
		}
		return member(name)
	})
}

// Array reads an array and calls element for each element. The element function must read the element.
func (r *Reader) Array(element func() error) error { return r.list('[', ']', element) }

func (r *Reader) list(open, closing byte, item func() error) error {
	if err := r.expect(open); err != nil {
		return err
	}
	if r.space(); r.peek() == closing {
		r.at++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		switch r.space(); r.peek() {
		case ',':
			r.at++
		case closing:
			r.at++
			return nil
		default:
			return r.fail("is not JSON")
		}
	}
}

// String reads a string.
func (r *Reader) String() (string, error) {
	r.space()
	start := r.at
	if r.peek() != '"' {
		return "", r.fail("is not JSON")
	}
	if err := r.skipString(); err != nil {
		return "", err
	}
	quoted := r.data[start:r.at]
	if r.known == nil || len(quoted) > maxKept {
		return r.decode(quoted, start)
	}
	kept := &r.known[(len(quoted)*31+int(quoted[1])*7+int(quoted[len(quoted)-2]))%len(r.known)]
	if kept.quoted == string(quoted) {
		return kept.text, nil
	}
	text, err := r.decode(quoted, start)
	if err == nil {
		*kept = knownString{string(quoted), text}
	}
	return text, err
}

// maxKept is the maximum length of a string that is kept, in bytes.
const maxKept = 256

// decode returns the text of a string that begins at start.
func (r *Reader) decode(quoted []byte, start int) (string, error) {
	if inner := quoted[1 : len(quoted)-1]; isPlain(inner) {
		return string(inner), nil
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		r.at = start
		return "", r.fail("is not JSON")
	}
	return text, nil
}

// isPlain reports whether the bytes between the quotation marks of a string can be used without decoding.
func isPlain(inner []byte) bool {
	ascii := true
	for _, c := range inner {
		if c < ' ' || c == '\\' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(inner)
}

// Literal reads a number, true, false or null, and returns it unchanged.
func (r *Reader) Literal() ([]byte, error) {
	r.space()
	start := r.at
	for r.at < len(r.data) && !isSpace(r.data[r.at]) && strings.IndexByte(`,:{}[]"`, r.data[r.at]) < 0 {
		r.at++
	}
	text := r.data[start:r.at]
	if !json.Valid(text) {
		r.at = start
		return nil, r.fail("is not JSON")
	}
	return text, nil
}

// Skip skips a value and returns it undecoded, as a slice of the data. It checks only brackets and quotation
// marks; decoding the value finds other mistakes.
func (r *Reader) Skip() (value []byte, err error) {
	r.space()
	start := r.at
	switch r.peek() {
	case '"':
		err = r.skipString()
	case '{', '[':
		err = r.skipNested()
	default:
		_, err = r.Literal()
	}
	return r.data[start:r.at:r.at], err
}

// End returns an error unless only white space remains.
func (r *Reader) End() error {
	if r.space(); r.at < len(r.data) {
		return r.fail("is not JSON")
	}
	return nil
}

// peek returns the next byte, or 0 at the end.
func (r *Reader) peek() byte {
	if r.at < len(r.data) {
		return r.data[r.at]
	}
	return 0
}

func (r *Reader) space() {
	for r.at < len(r.data) && isSpace(r.data[r.at]) {
		r.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func (r *Reader) expect(c byte) error {
	if r.space(); r.peek() != c {
		return r.fail("is not JSON")
	}
	r.at++
	return nil
}

func (r *Reader) fail(reason string) error {
	if r.at >= len(r.data) {
		reason = "ends too early"
	}
	return &SyntaxError{Offset: r.at, Reason: reason}
}

func (r *Reader) skipString() error {
	for from := r.at + 1; ; {
		i := bytes.IndexByte(r.data[from:], '"')
		if i < 0 {
			r.at = len(r.data)
			return r.fail("ends too early")
		}
		end := from + i
		escapes := 0
		for r.data[end-1-escapes] == '\\' {
			escapes++
		}
		if from = end + 1; escapes%2 == 0 {
			r.at = from
			return nil
		}
	}
}

func (r *Reader) skipNested() error {
	for depth := 0; r.at < len(r.data); {
		switch r.data[r.at] {
		case '"':
			if err := r.skipString(); err != nil {
				return err
			}
			continue
		case '{', '[':
			if depth++; depth > maxNesting {
				return r.fail("is nested too deeply")
			}
		case '}', ']':
			if depth--; depth == 0 {
				r.at++
				return nil
			}
		}
		r.at++
	}
	return r.fail("ends too early")
}
