package attr

import (
	"fmt"
	"slices"
	"strings"
)

// Pos is a position in configuration text. The zero value means that the setting did not come from
// text.
type Pos struct {
	File         string
	Line, Column int // counted from 1
}

// String returns "file:line,column", as hcl does, or "" for the zero value.
func (p Pos) String() string {
	if p.Line == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d,%d", p.File, p.Line, p.Column)
}

// Error is a mistake in the configuration. Its message never contains a value that the user wrote,
// because any value may be a secret.
type Error struct {
	Address string // the address of the entry or target; may be empty
	Attr    string // the attribute, such as "url", or "assume_role.role_arn" in a nested block; may be empty
	Unknown bool   // whether the value is unknown before apply, so that this may not be a mistake
	Pos     Pos
	Err     error // the mistake, in a few words
}

// Error returns the position, the address, the attribute and the text of Err, as far as they are
// set.
func (e *Error) Error() string {
	parts := []string{e.Pos.String(), strings.Trim(e.Address+"."+e.Attr, ".")}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// LookupEnv has the signature of [os.LookupEnv]. A nil LookupEnv finds nothing.
type LookupEnv func(name string) (string, bool)

// Get returns the value of the first variable in names that is set and not empty.
func (f LookupEnv) Get(names ...string) (string, bool) {
	if f == nil {
		return "", false
	}
	for _, name := range names {
		if value, ok := f(name); ok && value != "" {
			return value, true
		}
	}
	return "", false
}
