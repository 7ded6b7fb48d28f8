package syntax

import (
	"strings"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

var (
	shellVariable = lazyregexp.New(`^\$\{?[A-Z_]+`)
	wholeVariable = lazyregexp.New(`^\$(\{[A-Za-z_]\w*\}|[A-Z][A-Z0-9_]*)$`)
	reference     = lazyregexp.New(`^(var|local)\.[A-Za-z_][\w-]*$`)
	expression    = lazyregexp.New(`^\$(\{\{[^}]*\}\}|\([^()]*\))$`)
)

// Oddity says what is odd about a text that a user gave, and is probably not meant as
// part of it: it ends with its only line break, begins with a byte order mark or a variable
// of the shell, or has a space or quotation marks around it. It is "" for nothing. Sure
// tells what no secret by chance is.
func Oddity(text string) (what string, sure bool) {
	if text == "" {
		return "", false
	}
	first, last, line := text[0], text[len(text)-1], strings.Index(text, "\n")
	switch {
	case line > 0 && line == len(text)-1:
		return "ends with a line break, as files do: trimspace(…) removes it", true
	case line >= 0:
	case strings.HasPrefix(text, "\ufeff"):
		return "begins with a byte order mark, as files that some editors write do, which is part of it", true
	case first == ' ' || last == ' ':
		return "begins or ends with a space, which is part of it; trimspace(…) removes it", true
	case expression.MatchString(text):
		return "is an expression, of the shell or of a pipeline, and nothing was put in its place", true
	case reference.MatchString(text):
		return "is the name of a variable in quotation marks; without them, it is the value", true
	case shellVariable.MatchString(text), wholeVariable.MatchString(text):
		return "begins with the name of a variable of the shell, which put nothing in its place", wholeVariable.MatchString(text)
	case len(text) > 1 && first == last && (first == '"' || first == '\''):
		return "has quotation marks around it, which are part of it", true
	}
	return "", false
}

// NoWord says what keeps a text from being one word in a request, such as a token or a
// password: control characters, which no server could mean. It is "" for nothing. The
// text is not in the answer.
func NoWord(text string) string {
	control := func(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }
	switch {
	case !control(text):
		return ""
	case !control(strings.TrimRight(text, "\r\n")):
		return "ends with a line break, as files do: trimspace(…) removes it"
	}
	return "holds a line break or another control character"
}
