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

// checkOf is what the form of an attribute requires. A variable may give it the value.
func checkOf(a attr.Attr, variable string) attr.Check {
	switch {
	case isWord(a):
		return attr.Text(func(text string) error { return odd(recognize.Text(text, recognize.Word).Said(variable), "") })
	case a.Form == attr.Name, a.Form == attr.Path:
		return attr.Text(func(text string) error { return odd(notInURL(text, a.Form == attr.Path), briefly(a.Doc)) })
	case a.Form == attr.Version:
		return attr.Is(func(text string) bool { return text != "" },
			"an empty string chooses no version; leave this argument out to read the current one")
	}
	return attr.Check{}
}

// addressOf is what the form of an attribute requires of code; in text, references are read as
// syntax.
func addressOf(a attr.Attr) attr.Check {
	switch a.Form {
	case attr.KeyProvider:
		return attr.Is(syntax.IsKeyProviderAddress, "the address of a key provider is required, such as key_provider.pbkdf2.main")
	case attr.Method:
		return attr.Is(syntax.IsMethod, syntax.ErrMethodRequired.Error())
	}
	return attr.Check{}
}

// isEmptyToo reports whether an empty string does not count as absent.
func isEmptyToo(a attr.Attr) bool { return a.Form == attr.OrEmpty || a.Form == attr.Version }

// isWord reports whether a is a secret that is sent as one word, such as in a header.
func isWord(a attr.Attr) bool {
	return a.Secrecy == attr.Secret && a.Form != attr.Lines && attr.Text(nil).IsFor(a.Type)
}

// oddity is what is odd about one text of g, whatever is wrong with it.
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

// odd is the error of what is odd about a text; nil if that is nothing.
func odd(what, more string) error {
	if what == "" {
		return nil
	}
	return fmt.Errorf("it %w", fault.Odd(what+more))
}

// notInURL says why text is not a part of a path, or not one segment of it; "" if it is. It does
// not show the text. What else a segment may hold is encoded when it is sent.
func notInURL(text string, several bool) string {
	moves := func(segment string) bool { return segment == "" || segment == "." || segment == ".." }
	switch {
	case text == "":
		return "becomes a part of a URL, and is empty"
	case !utf8.ValidString(text) || strings.ContainsRune(text, '\\') || strings.ContainsFunc(text, unicode.IsControl):
		return "becomes a part of a URL, and must not hold backslashes or control characters"
	case !several && strings.Contains(text, "/"):
		return "is one name, and has no slash"
	case slices.ContainsFunc(strings.Split(strings.Trim(text, "/"), "/"), moves):
		return "becomes a part of a URL, and must not have \".\", \"..\" or nothing between its slashes"
	}
	return ""
}
