package recognize

import (
	"strings"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

var (
	shellVariable = lazyregexp.New(`^(\$\{?[A-Z_]+|%%?[A-Za-z_]\w*%)`)
	wholeVariable = lazyregexp.New(`^(\$(\{[A-Za-z_]\w*\}|[A-Z]+(_[A-Z0-9]+)+|PASSPHRASE|PASSWORD|SECRET|TOKEN|KEY|env:\w+)|%[A-Z]+(_[A-Z0-9]+)*%)$`)
	reference     = lazyregexp.New(`^((var|local)|module\.[A-Za-z_][\w-]*)(\.[A-Za-z_][\w-]*)+$`)
	masked        = lazyregexp.New(`(?i)^(\*{3,}|[\[(<](masked|redacted|hidden|secret|sensitive|sensitive value)[\])>])$`)
	placeholder   = lazyregexp.New(`^(<[A-Za-z]?[a-z]+([-_ .][a-z]+)*>|<[A-Z]+([-_ ][A-Z]+)*>|(?i:[-_a-z]*…|(change[-_ ]?(me|it|this)[-_ !.0-9]{0,6})+|` +
		`replace[-_ ](me|with)([-_ ](me|with|` + words + `))*|your([-_ ](` + words + `)){1,5}))$`)
	expression = lazyregexp.New(`^(\(known after apply\)|\$?\{\{[^{}]*\}\}|\$\{[^{}]*\.[^{}]*\}|\$\([^()]*\)|` + "`[^`]+`" + `)$`)
)

// words are those of placeholders, such as "your-bucket-name". A text of these alone is not what
// anybody chose, but "your horse" may be.
const words = `a|access|account|actual|api|app|aws|azure|bucket|client|cluster|company|container|database|db|domain|encryption|example|gcp|git|github|` +
	`gitlab|goes|google|group|here|host|id|key|long|management|my|name|namespace|new|old|org|organi[sz]ation|own|passphrase|password|path|` +
	`project|prod|production|random|real|region|repo|repository|resource|s3|secret|secure|server|service|sso|state|storage|strong|subscription|super|team|` +
	`tenant|terraform|the|tofu|token|url|user|username|value|vault|very|workspace|your`

// Oddity says what is odd about a text that a user gave, and is probably not meant as
// part of it: it ends with its only line break, begins with a byte order mark or a variable
// of the shell, or has a space or quotation marks around it. It is "" for nothing. Sure
// tells what no secret by chance is.
func Oddity(text string) (what string, sure bool) { return oddity(text, byFunction) }

// OddVariable is [Oddity] for the value of a variable of the environment, where there are
// no functions.
func OddVariable(text string) string {
	what, _ := oddity(text, byShell)
	return what
}

// WithoutFunctions leaves out of what is said of a text how the functions of a configuration
// would change it.
func WithoutFunctions(what string) string {
	if before, function, _ := strings.Cut(what, ": "); strings.Contains(function, "(…)") {
		return before
	}
	return what
}

// What leaves out what is around a text.
const (
	byFunction = "trimspace(…) removes it"
	byShell    = `a shell leaves it out in "$(cat FILE)"`
)

func oddity(text, without string) (what string, sure bool) {
	if text == "" {
		return "", false
	}
	first, last, line := text[0], text[len(text)-1], strings.Index(text, "\n")
	switch {
	case line > 0 && line == len(text)-1:
		return lineBreak + without, true
	case line >= 0:
	case last == '\r':
		return "ends with a carriage return, as lines of Windows do: " + without, true
	case strings.HasPrefix(text, "\ufeff"):
		return "begins with a byte order mark, which some editors write and which counts as part of it; save it without one", true
	case first == ' ' || last == ' ':
		return "begins or ends with a space, which is part of it; " + without, true
	case InPlaceOf(text) != "":
		return InPlaceOf(text), true
	case shellVariable.MatchString(text):
		return unexpanded, false
	case len(text) > 1 && first == last && (first == '"' || first == '\''):
		return "has quotation marks around it, which count as part of it; remove them", true
	}
	return "", false
}

// InPlaceOf says what a text is that stands in the place of what was meant, and holds
// nothing of it: a placeholder, or the name of a variable. It is "" for another text.
func InPlaceOf(text string) string {
	switch {
	case masked.MatchString(text):
		return "is what logs show in place of a secret; set the secret itself"
	case placeholder.MatchString(text):
		return "is a placeholder that was not filled in; put the value in its place"
	case expression.MatchString(text):
		return notEvaluated
	case reference.MatchString(text):
		return `is the name of a variable in quotation marks; remove them, or, in JSON, write "${var.NAME}"`
	case wholeVariable.MatchString(text):
		return unexpanded
	}
	return ""
}

const notEvaluated = "is an expression that was not evaluated; put its value in its place"

const lineBreak = "ends with a line break, as text files do: "

const unexpanded = "begins with a variable of the shell that was not expanded; put its value in its place"

// NoWord says what keeps a text from being one word in a request, such as a token or a
// password: control characters, which no server could mean. It is "" for nothing. The
// text is not in the answer.
func NoWord(text string) string { return noWord(text, byFunction) }

// NoWordInVariable is [NoWord] for the value of a variable of the environment.
func NoWordInVariable(text string) string { return noWord(text, byShell) }

func noWord(text, without string) string {
	control := func(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }
	switch {
	case !control(text):
		return ""
	case !control(strings.TrimRight(text, "\r\n")):
		return lineBreak + without
	}
	return "holds a line break or another control character; remove it"
}
