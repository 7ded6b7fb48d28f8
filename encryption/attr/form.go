package attr

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Form says what becomes of a text that is made a part of something else, and so what it
// must be in order to stay one part.
type Form int

const (
	// Name becomes one segment of the path of a URL, to which a secret may be sent.
	Name Form = iota + 1

	// Path becomes one or more of them. Slashes at its ends do not count.
	Path
)

// problem says what keeps text from its form; "" if nothing does. It does not show the
// text. What else a segment may hold is encoded when it is sent.
func (f Form) problem(text string) string {
	moves := func(segment string) bool { return segment == "" || segment == "." || segment == ".." }
	segments := strings.Split(strings.Trim(text, "/"), "/")
	switch {
	case f == 0:
	case text == "":
		return "becomes a part of a URL, and is empty"
	case !utf8.ValidString(text) || strings.ContainsRune(text, '\\') || strings.ContainsFunc(text, unicode.IsControl):
		return "becomes a part of a URL, and must not hold backslashes or control characters"
	case f == Name && strings.Contains(text, "/"):
		return "is one name, and has no slash"
	case slices.ContainsFunc(segments, moves):
		return "becomes a part of a URL, and must not have \".\", \"..\" or nothing between its slashes"
	}
	return ""
}
