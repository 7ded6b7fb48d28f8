package attr

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Secrecy tells whether a value is a secret, and who receives it.
type Secrecy int

const (
	// Public means that the value is not a secret.
	Public Secrecy = iota

	// NamesSecret means that the value is not a secret but names one, such as the file that holds it.
	NamesSecret

	// Secret means that the value is a secret that is sent to a server or a program that another
	// setting chooses. Errors name its attribute, and never contain the secret.
	Secret

	// NamesLocalSecret means that the value is not a secret but names a local one; see LocalSecret.
	NamesLocalSecret

	// LocalSecret means that the value is a secret that no other setting can redirect: this process
	// alone uses it, or it is part of the address that receives it, such as the password of a
	// proxy.
	LocalSecret
)

// IsHidden reports whether the value itself is a secret.
func (s Secrecy) IsHidden() bool { return s == Secret || s == LocalSecret }

// IsSent reports whether the value is, or names, a secret that is sent to a server or a
// program that another setting chooses.
func (s Secrecy) IsSent() bool { return s == Secret || s == NamesSecret }

// Form is the form of a text, or of each text in a list or a map. It decides which mistakes
// are looked for in the text, whether a block or a variable contains it. [Attr.Check] holds
// the further requirements of a kind.
type Form int

const (
	// Name is the form of a text that becomes exactly one segment of the path of a URL, to which a
	// secret may be sent. Values that would become several segments or none are errors.
	Name Form = iota + 1

	// Path is the form of a text that becomes one or more segments of the path of a URL. Slashes at
	// its ends do not count.
	Path

	// Lines is the form of a secret that may have several lines, such as a key in PEM format.
	// Every other secret that is sent must be a single line, as in a header: control characters
	// in it, such as the line break at the end of a file, are errors.
	Lines

	// OrEmpty is the form of a text that may be empty, such as the URL of a proxy. In all other
	// forms except Version, an empty string counts as absent, because a variable that a pipeline
	// leaves out arrives as "".
	OrEmpty

	// Version is the form of a text that chooses one version of an object or a key. An empty string
	// is an error, because an empty variable would choose the current version.
	Version

	// KeyProvider is the form of the address of a key provider: a string in a Terraform block; a
	// bare reference, a string or a literal key object in text.
	KeyProvider

	// Method is the form of the address of a method: a string in a Terraform block; a bare
	// reference or a string in text.
	Method

	// Command is the form of a program that will be run, or of a list of a program and its arguments.
	Command

	// Passphrase is the form of a text from which a key is derived. Any text gives a key, so
	// mistakes would go unnoticed: a text that is obviously no secret, such as the name of a
	// variable, is refused for encryption.
	Passphrase

	// Token is the form of a secret that is sent unchanged in a header. If the server refuses it
	// and the text looks like a mistake, the error tells the user.
	Token
)

// Check is a requirement on a known value that is not null. [Is], [OneOf], [Text], [Between]
// and [Whole] make one. The zero value requires nothing.
type Check struct {
	of    cty.Type // the type of the value, or of its elements
	wrong func(v cty.Value) error
}

// Wrong returns an error if a value does not meet the requirement. The type of the value must
// be one that [Check.IsFor] accepts. The error does not contain the value, which may be secret.
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

// Is makes a check of a text, or of each text in a list or a map. If the function is returns
// false, the error has the text of required, such as "a URL is required".
func Is(is func(text string) bool, required string) Check {
	return Text(func(text string) error {
		if is(text) {
			return nil
		}
		return errors.New(required)
	})
}

// OneOf makes a check that a text, or each text in a list or a map, is one of two or more texts.
func OneOf(first, second string, more ...string) Check {
	values := append([]string{first, second}, more...)
	last := len(values) - 1
	required := strings.Join(values[:last], ", ") + " or " + values[last] + " is required"
	return Is(func(text string) bool { return slices.Contains(values, text) }, required)
}

// Whole makes a check of a value of type t as a whole, such as a list.
func Whole(t cty.Type, check func(v cty.Value) error) Check { return Check{of: t, wrong: check} }

// Text makes a check that calls check for a text, or for each text in a list or a map.
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

// Between makes a check that a number is whole, and from min to max, both inclusive.
func Between(min, max int64) Check {
	return Check{of: cty.Number, wrong: func(v cty.Value) error {
		f := v.AsBigFloat()
		switch n, acc := f.Int64(); {
		case !f.IsInt():
			return errors.New("a whole number is required")
		case acc != big.Exact || n < min || n > max:
			return fmt.Errorf("a number from %d to %d is required", min, max)
		}
		return nil
	}}
}
