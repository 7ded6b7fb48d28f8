package attr

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Secrecy says whether a value is a secret, and who receives it.
type Secrecy int

const (
	// Public means that the value is not a secret.
	Public Secrecy = iota

	// NamesSecret means that the value is not a secret but names one, such as the file that
	// contains it.
	NamesSecret

	// Secret means that the value is a secret that is sent to a server or a program chosen by
	// another setting. Errors name the attribute but never contain the secret.
	Secret

	// NamesLocalSecret means that the value is not a secret but names a local one; see
	// [LocalSecret].
	NamesLocalSecret

	// LocalSecret means that the value is a secret that no other setting can redirect. Either only
	// this process uses it, or it is part of the address that receives it, such as the password of
	// a proxy.
	LocalSecret
)

// IsHidden reports whether the value itself is a secret.
func (s Secrecy) IsHidden() bool { return s == Secret || s == LocalSecret }

// IsSent reports whether the value is, or names, a secret that is sent to a server or a program
// chosen by another setting.
func (s Secrecy) IsSent() bool { return s == Secret || s == NamesSecret }

// Form is the form of a text, or of each text in a list or a map. It decides which mistakes to look
// for in the text, whether the text comes from a block or a variable. Further requirements go into
// [Attr.Check].
type Form int

const (
	// Name is the form of a text that becomes exactly one segment of a URL path to which a secret
	// may be sent. A value that would become several segments, or none, is an error.
	Name Form = iota + 1

	// Path is the form of a text that becomes one or more segments of a URL path. Slashes at its
	// ends do not count.
	Path

	// Lines is the form of a secret that may have several lines, such as a key in PEM format. Any
	// other secret that is sent must be a single line, as in a header. Control characters in it,
	// such as the line break at the end of a file, are errors.
	Lines

	// OrEmpty is the form of a text that may be empty, such as the URL of a proxy. In all other
	// forms except Version, an empty string counts as absent, because a variable that a pipeline
	// does not set arrives as "".
	OrEmpty

	// Version is the form of a text that selects a version of an object or a key. An empty string
	// is an error, because an empty variable would otherwise select the current version.
	Version

	// KeyProvider is the form of a key provider address. In a Terraform block, the address is a
	// string. In text, it is a bare reference, a string or a literal key object.
	KeyProvider

	// Method is the form of a method address. In a Terraform block, the address is a string. In
	// text, it is a bare reference or a string.
	Method

	// Command is the form of a program to run, or of a list that contains a program and its
	// arguments.
	Command

	// Passphrase is the form of a text from which a key is derived. Any text gives a key, so
	// mistakes would go unnoticed. Encryption is therefore refused if the text is obviously not
	// secret, such as the name of a variable.
	Passphrase

	// Token is the form of a secret that is sent unchanged in a header. If the server refuses the
	// secret and it looks like a mistake, the error says so.
	Token
)

// Check is a requirement on a value that is known and not null. [Is], [OneOf], [Text], [Between]
// and [Whole] return checks. The zero value requires nothing.
type Check struct {
	of    cty.Type // the type of the value, or of its elements
	wrong func(v cty.Value) error
}

// Wrong returns an error if v does not meet the requirement. [Check.IsFor] must accept the type of
// v. The error does not contain the value, which may be secret.
func (c Check) Wrong(v cty.Value) error {
	if c.wrong == nil {
		return nil
	}
	return c.wrong(v)
}

// IsFor reports whether the check accepts values of type t.
func (c Check) IsFor(t cty.Type) bool {
	return c.wrong == nil || t == c.of || c.of == cty.String && t.IsCollectionType() && t.ElementType() == c.of
}

// Is returns a check for a text, or for each text in a list or a map. The check calls the given
// function. If that returns false, the check fails with the message in required, such as "a URL is
// required".
func Is(is func(text string) bool, required string) Check {
	return Text(func(text string) error {
		if is(text) {
			return nil
		}
		return errors.New(required)
	})
}

// OneOf returns a check that a text, or each text in a list or a map, is one of the given texts.
func OneOf(first, second string, more ...string) Check {
	values := append([]string{first, second}, more...)
	last := len(values) - 1
	required := "the value must be " + strings.Join(values[:last], ", ") + " or " + values[last]
	return Is(func(text string) bool { return slices.Contains(values, text) }, required)
}

// Whole returns a check for an entire value of type t, such as a list.
func Whole(t cty.Type, check func(v cty.Value) error) Check { return Check{of: t, wrong: check} }

// Text returns a check that applies the function check to a text, or to each text in a list or a
// map.
func Text(check func(text string) error) Check {
	return Check{of: cty.String, wrong: func(v cty.Value) error {
		if v.Type() == cty.String {
			return check(v.AsString())
		}
		for _, text := range v.AsValueSlice() {
			if text.IsNull() {
				continue
			}
			if err := check(text.AsString()); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Between returns a check that a number is an integer from min to max, inclusive.
func Between(min, max int64) Check {
	return Check{of: cty.Number, wrong: func(v cty.Value) error {
		f := v.AsBigFloat()
		switch n, acc := f.Int64(); {
		case !f.IsInt():
			return errors.New("the value must be a whole number")
		case acc != big.Exact || n < min || n > max:
			return fmt.Errorf("the value must be a number from %d to %d", min, max)
		}
		return nil
	}}
}
