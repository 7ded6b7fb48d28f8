package entries

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// problemOf says what keeps text from its form; "" if nothing does. It does not show the
// text. What else a segment may hold is encoded when it is sent.
func problemOf(f attr.Form, text string) string {
	moves := func(segment string) bool { return segment == "" || segment == "." || segment == ".." }
	segments := strings.Split(strings.Trim(text, "/"), "/")
	switch {
	case f != attr.Name && f != attr.Path:
	case text == "":
		return "becomes a part of a URL, and is empty"
	case !utf8.ValidString(text) || strings.ContainsRune(text, '\\') || strings.ContainsFunc(text, unicode.IsControl):
		return "becomes a part of a URL, and must not hold backslashes or control characters"
	case f == attr.Name && strings.Contains(text, "/"):
		return "is one name, and has no slash"
	case slices.ContainsFunc(segments, moves):
		return "becomes a part of a URL, and must not have \".\", \"..\" or nothing between its slashes"
	}
	return ""
}
