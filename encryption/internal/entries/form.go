package entries

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// checkOf returns the requirements of an attribute's form. Variable is the environment variable
// that the value comes from, or "" if there is none.
func checkOf(a attr.Attr, variable string) attr.Check {
	switch {
	case isWord(a):
		return attr.Text(func(text string) error { return odd(recognize.Text(text, recognize.Word).Said(variable)) })
	case a.Form == attr.Name, a.Form == attr.Path:
		return attr.Text(func(text string) error { return odd(notInURL(text, a.Form == attr.Path)) })
	case a.Form == attr.Version:
		return attr.Is(func(text string) bool { return text != "" },
			"an empty string is not a version; remove this argument to read the current version")
	}
	return attr.Check{}
}

// addressOf returns the requirement on an attribute that holds an address as a string. In HCL text,
// the parser checks references.
func addressOf(a attr.Attr) attr.Check {
	switch a.Form {
	case attr.KeyProvider:
		return attr.Is(syntax.IsKeyProviderAddress, "this is not the address of a key provider; write an address like "+
			"key_provider.pbkdf2.main")
	case attr.Method:
		return attr.Is(syntax.IsMethod, syntax.ErrMethodRequired.Error())
	}
	return attr.Check{}
}

// isEmptyToo reports whether an empty string is a value of a, instead of counting as absent.
func isEmptyToo(a attr.Attr) bool { return a.Form == attr.OrEmpty || a.Form == attr.Version }

// isWord reports whether a is a secret that is sent as one word, for example in a header.
func isWord(a attr.Attr) bool {
	return a.Secrecy == attr.Secret && a.Form != attr.Lines && attr.Text(nil).IsFor(a.Type)
}

// oddity describes a probable mistake in a text of g, such as "ends with a line break". It returns
// "" if there is none.
func (g Given) oddity(text string) (what string, sure recognize.Certainty) {
	switch {
	case g.Form == attr.Passphrase:
		is := recognize.Text(text, recognize.Passphrase)
		return is.Said(g.Variable), is.Sure
	case g.Form == attr.Token:
		return recognize.Text(text, recognize.Token).Said(g.Variable), recognize.Perhaps
	case isWord(g.Attr):
		return recognize.Text(text, recognize.Secret).Said(g.Variable), recognize.Perhaps
	}
	return recognize.Text(text, recognize.Value).Said(g.Variable), recognize.Perhaps
}

// odd returns the error for an oddity of a text, or nil if there is no oddity.
func odd(what string) error {
	if what == "" {
		return nil
	}
	return fmt.Errorf("the value %w", fault.Odd(what))
}

// notInURL says why text cannot be one segment of a URL path or, if several is true, one or more
// segments. It returns "" if there is no reason, and never repeats text. Other special characters
// are encoded when the URL is made.
func notInURL(text string, several bool) string {
	moves := func(segment string) bool { return segment == "" || segment == "." || segment == ".." }
	switch {
	case text == "":
		return "is empty, but it becomes part of a URL; check whether a variable is empty"
	case !utf8.ValidString(text) || strings.ContainsRune(text, '\\') || strings.ContainsFunc(text, unicode.IsControl):
		return "has a backslash or a control character, but it becomes part of a URL; remove that character"
	case !several && strings.Contains(text, "/"):
		return "has a slash, but it must be a single name; remove the slash"
	case slices.ContainsFunc(strings.Split(strings.Trim(text, "/"), "/"), moves):
		return `is used in a URL path, but one of its segments is ".", ".." or empty; correct that segment`
	}
	return ""
}
