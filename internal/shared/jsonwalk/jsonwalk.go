// Package jsonwalk reads parts of a JSON document without decoding the rest. A state of a hundred megabytes
// consists almost entirely of resources, and encoding/json reads each byte several times.
package jsonwalk

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Members calls member for each member of the JSON object in data, in order, until member returns false or an
// error. The arguments are the decoded name and the value, which is a slice of data. Members does not read
// the rest of data. It checks values only as far as [Reader.Skip] does.
//
// Members returns the error from member, or a [*SyntaxError]. It takes time linear in the length of data, and
// memory linear in the length of the longest name.
func Members(data []byte, member func(name string, value []byte) (more bool, err error)) error {
	r := NewReader(data)
	enough := errors.New("enough")
	err := r.Object(func(name string) error {
		value, err := r.Skip()
		if err != nil {
			return err
		}
		more, err := member(name, value)
		if err == nil && !more {
			err = enough
		}
		return err
	})
	switch {
	case err == enough: //nolint:errorlint // it is this very value
		return nil
	case err != nil:
		return err
	}
	return r.End()
}

// Fold returns name in the form that encoding/json uses to compare names: ASCII letters are in lowercase, and
// the two non-ASCII letters that are case variants of s and k are replaced by these.
func Fold(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf }) {
		return name // as almost all are
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r == '\u017f': // long s
			return 's'
		case r == '\u212a': // kelvin
			return 'k'
		}
		return r
	}, name)
}

// IsCutOff reports whether an error from encoding/json means that the text ends too early, rather than that
// it has another mistake at its end, such as an extra brace.
func IsCutOff(err error) bool {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	return ok && syntax.Error() == "unexpected end of JSON input"
}

// Expected returns the kind of value that an encoding/json error expects, such as "a string". The error's own
// text would repeat a number from the file.
func Expected(err *json.UnmarshalTypeError) string {
	switch err.Type.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "a whole number"
	case reflect.Slice: // a []byte
		return "a string in base64"
	case reflect.Map:
		return "an object"
	}
	return "the required kind of value"
}

// Place returns the position of the first byte of the character that encoding/json rejected, counting from 1.
// The offset in the error includes one byte of that character in Go 1.26, and all of its bytes in Go 1.27.
func Place(data []byte, err *json.SyntaxError) int {
	at := max(min(int(err.Offset), len(data)), 1)
	for ; at > 1 && !utf8.RuneStart(data[at-1]); at-- {
	}
	return at
}

// Decode decodes members of the JSON object in data into the struct that into points to, if their names are
// in small. It stores members named in large undecoded, as slices of data, and skips all others. The names
// must be in lowercase. They are compared in the form that [Fold] returns.
//
// As with encoding/json, null values change nothing. Decode returns the errors of encoding/json.
func Decode(data []byte, into any, large map[string]*json.RawMessage, small ...string) error {
	picked, err := Pick(data, func(name string, value []byte) bool {
		name = Fold(name)
		if whole := large[name]; whole != nil {
			*whole = value
		}
		return slices.Contains(small, name)
	})
	if err != nil {
		picked = data // encoding/json finds the mistake, too
	}
	return json.Unmarshal(picked, into)
}

// Pick returns an object that contains only the members of data that want accepts. It reads all of data.
func Pick(data []byte, want func(name string, value []byte) bool) ([]byte, error) {
	picked := []byte{'{'}
	err := Members(data, func(name string, value []byte) (bool, error) {
		if !want(name, value) {
			return true, nil
		}
		quoted, err := json.Marshal(name)
		if len(picked) > 1 {
			picked = append(picked, ',')
		}
		picked = append(append(append(picked, quoted...), ':'), value...)
		return true, err
	})
	return append(picked, '}'), err
}
