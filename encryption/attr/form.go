package attr

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Secrecy says whether a value is a secret, and where it goes.
type Secrecy int

const (
	// Public is no secret.
	Public Secrecy = iota

	// NamesSecret names a secret without being one, such as the file that holds it.
	NamesSecret

	// Secret is one. It never appears in errors; errors point at the block.
	Secret

	// NamesLocalSecret names a local secret.
	NamesLocalSecret

	// LocalSecret is a secret about which nothing else decides where it goes: it is used
	// in this process only, or is part of the address that it is for, like the password
	// of a proxy.
	LocalSecret
)

// IsHidden reports whether the value itself is a secret.
func (s Secrecy) IsHidden() bool { return s == Secret || s == LocalSecret }

// IsSent reports whether it is a secret, or names one, that goes where something else says.
func (s Secrecy) IsSent() bool { return s == Secret || s == NamesSecret }

// Form says what a text is, or each text in a list or a map, and so what is looked for in it:
// in a block as well, and in the value of a variable. What else a kind requires is [Attr.Check].
type Form int

const (
	// Name becomes one segment of the path of a URL, to which a secret may be sent. A
	// value that would be more or less than that is an error.
	Name Form = iota + 1

	// Path becomes one or more of them. Slashes at its ends do not count.
	Path

	// Lines are a secret that may have several lines, such as a key in PEM format. Any
	// other secret that is sent is one word, as in a header, and control characters in
	// it are an error, such as the line break at the end of a file.
	Lines

	// OrEmpty may be an empty string, which is a value, such as no proxy at all. Otherwise it
	// counts as absent, because an absent variable of Terraform becomes one.
	OrEmpty

	// Version chooses one version of what is read. An empty string is an error, because
	// an empty variable would choose the current one.
	Version

	// KeyProvider is the address of a key provider: a string in a Terraform block; a bare
	// reference, a string or a literal key object in text.
	KeyProvider

	// Method is the address of a method, written in the same ways, but never as a literal.
	Method

	// Command is a program that will be run, or a list of it and its arguments.
	Command

	// Passphrase is what a key is made of. What stands in its place by mistake, such as the
	// name of a variable, would give a key as well: nothing is sealed with it.
	Passphrase

	// Token is sent in a header as it is, so that what stands in its place is named if it
	// is refused.
	Token
)

// Check is what is required of a value, which is known and not null. [Is], [OneOf], [Text],
// [Between] and [Whole] make it. The zero value requires nothing.
type Check struct {
	of    cty.Type // the value's, or that of what it holds
	wrong func(v cty.Value) error
}

// Wrong returns what is wrong with a value of a type that the check is for: nil for nothing.
// The value, which may be a secret, is not in the error.
func (c Check) Wrong(v cty.Value) error {
	if c.wrong == nil {
		return nil
	}
	return c.wrong(v)
}

// IsFor reports whether the check is one of values of type t.
func (c Check) IsFor(t cty.Type) bool {
	return c.wrong == nil || t == c.of || c.of == cty.String && t.IsCollectionType() && t.ElementType() == c.of
}

// Is makes a check of a text, or of each text in a list or a map: if is returns false, the
// error says what is required.
func Is(is func(text string) bool, required string) Check {
	return Text(func(text string) error {
		if is(text) {
			return nil
		}
		return errors.New(required)
	})
}

// OneOf makes a check of a text, or of each text in a list or a map, that is one of two or more.
func OneOf(first, second string, more ...string) Check {
	values := append([]string{first, second}, more...)
	last := len(values) - 1
	required := strings.Join(values[:last], ", ") + " or " + values[last] + " is required"
	return Is(func(text string) bool { return slices.Contains(values, text) }, required)
}

// Whole makes a check of a value of type t as a whole, such as a list.
func Whole(t cty.Type, check func(v cty.Value) error) Check { return Check{of: t, wrong: check} }

// Text makes a check of a text, or of each text in a list or a map.
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

// Between makes a check of a number, which is a whole one from min to max. Any number is
// checked to be what [Values.Int] can return.
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
