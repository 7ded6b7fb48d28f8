// Package jsonwalk reads parts of a JSON document without decoding the rest. A state of a hundred
// megabytes consists nearly entirely of resources, and encoding/json reads each of their bytes
// several times.
package jsonwalk

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Members calls member for each member of the object in data, in order, with its decoded name and
// its value, a part of data, until member returns false or an error. It does not read the rest of
// data, and checks values like [Reader.Skip].
//
// It returns the error of member, or a [*SyntaxError]. Its time is linear in the length of data,
// and its memory in the length of the longest name.
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

// Fold returns the name in the form in which encoding/json compares it: with ASCII letters in
// lowercase, and with s and k in place of two letters beyond ASCII that count as another case of
// them.
func Fold(name string) string {
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

// IsCutOff reports whether the error of package json concerns text that ends in the middle, and not
// about another mistake at the end, such as an extra brace.
func IsCutOff(err error) bool {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	return ok && syntax.Error() == "unexpected end of JSON input"
}

// Expected returns the kind of value, such as "a string", that an error of package json expects. The text of the
// error itself repeats the number in the file.
func Expected(err *json.UnmarshalTypeError) string {
	switch err.Type.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "a whole number"
	case reflect.Slice: // of bytes
		return "a string in base64"
	case reflect.Map:
		return "an object"
	}
	return "another kind of value"
}

// Place returns the position, counted from 1, of the first byte of the character at which package
// json found an error. The offset in the error includes one byte of the character in Go 1.26, and
// all its bytes in Go 1.27.
func Place(data []byte, err *json.SyntaxError) int {
	at := max(min(int(err.Offset), len(data)), 1)
	for ; at > 1 && !utf8.RuneStart(data[at-1]); at-- {
	}
	return at
}

// Decode decodes the members of the object in data that have the names small into the struct
// into. It stores members with the names in large as they are, as parts of data, and skips all
// other members. The names are in lowercase letters, and are compared in the form that [Fold] gives.
//
// As with encoding/json, whose errors it returns, null changes nothing.
func Decode(data []byte, into any, large map[string]*json.RawMessage, small ...string) error {
	picked, err := Pick(data, func(name string, value []byte) bool {
		name = Fold(name)
		if whole := large[name]; whole != nil {
			*whole = value
		}
		return slices.Contains(small, name)
	})
	if err != nil {
		picked = data // encoding/json returns the error
	}
	return json.Unmarshal(picked, into)
}

// Pick returns an object with only the members of data for which want returns true, for
// encoding/json to decode. It reads all of data.
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
