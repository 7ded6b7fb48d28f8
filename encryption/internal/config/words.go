package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// word replaces an error message of package hcl. Such a message contains pieces of the file, one of
// which may be a secret without quotes.
type word struct {
	summary string // beginnings of the error's summary, separated by |
	detail  string // beginning of the error's detail
	text    string // the replacement; "" means a description of the file's form
}

// These texts describe the form of settings and of variable files.
const (
	formOfSettings = `an argument is NAME = VALUE on a line of its own, and a block begins with TYPE "NAME" "NAME" {`
	formOfValues   = `a file of values has nothing but lines such as name = "value"`
)

const (
	dollarBrace = "${ begins an expression, and what follows is none; for the two characters themselves, write $${"
	inQuotes    = `text, such as a path, is between double quotes (")`
	reference   = "a reference has the form var.NAME or key_provider.TYPE.NAME"
)

// words returns the replacements for syntax errors in packages hclsyntax (parser.go,
// parser_template.go, token.go) and json (parser.go, structure.go).
func words() []word {
	return []word{
		{"Attribute redefined", "The argument \"method\"", "method is set twice; a second method, which only reads, belongs in a " +
			"block of its own: fallback { method = method.aes_gcm.old }"},
		{"Attribute redefined", "", "this argument is set twice; remove one of the two"},
		{"Invalid argument name", "", "argument names must not be quoted; remove the quotation marks, or begin with { if this is JSON"},
		{"Unclosed configuration block", "", "the block that begins here is not closed; add the } that ends it"},
		{"Unclosed configuration body", "", "a block is not closed; add the } that ends it"},
		{"Argument or block definition required", "An argument or block definition is required here. To set", `to set an argument, write NAME = "value"`},
		{"Argument or block definition required", "", ""},
		{"Argument definition required", "", "a block that contains blocks must have them on lines of their own"},
		{"Invalid block definition", "The equals sign", "a block has no = before its {; remove it"},
		{"Invalid block definition", "A block definition must have", "a block has its { on the line of its names; add it there"},
		{"Invalid block definition", "", ""},
		{"Invalid single-argument block definition", "", "a block on one line has one argument; write each argument, and the }, on a " +
			"line of its own"},
		{"Missing newline after block definition", "", `the next block must be on a line of its own; a shell keeps line breaks in "$(cat FILE)", with the quotes`},
		{"Unexpected comma after argument", "", "each argument is on a line of its own, without a comma"},
		{"Missing newline after argument", "", "the next argument is on a line of its own, and " + inQuotes},
		{"Missing false expression", "", "a ? is followed by two values, with a colon between them"},
		{"Invalid legacy index syntax|Nested splat expression|Index value required", "",
			"put a list index in square brackets, as in var.NAME[0]"},
		{"Invalid attribute name", "", "a name is required after a dot; " + reference},
		{"Missing close bracket|Unterminated tuple|Missing item separator|Unclosed index brackets", "",
			"a [ is not closed, or a comma is missing in the list; add ] or the comma"},
		{"Unbalanced parentheses", "", "a ( is not closed; add )"},
		{"Missing expression", "", "a value is required here; " + inQuotes},
		{"Invalid expression", "", "this is no value; " + inQuotes},
		{"Invalid number literal", "", "this is no number; " + inQuotes},
		{"Missing function name", "", "the name of a function has no :: in it; remove what is before the name"},
		{"Missing open parenthesis|Missing closing parenthesis|Unterminated function call|Missing argument separator", "",
			"the ( of a function is not closed, or a comma is missing between its arguments; add ) or the comma"},
		{"Missing attribute value|Missing key/value separator|Missing attribute separator", "",
			`an object has pairs such as name = "value", each on a line of its own`},
		{"Unterminated object", "", "a { is not closed; add }"},
		{"Invalid 'for' expression", "", "a for expression has the form [for x in LIST : VALUE]"},
		{"Invalid string literal", "Template sequences", dollarBrace},
		{"Invalid string literal", "", "a string in double quotes is required here"},
		{"Unterminated string literal", "", `a string is not closed; add the quotation mark (") that ends it`},
		{"Invalid escape sequence", "", `write a backslash in a string as \\; Windows paths can use / instead`},
		{"Unclosed template interpolation|Extra characters after interpolation", "", dollarBrace},
		{"Unexpected |Invalid template |Invalid 'for' directive|Extra characters in ", "",
			"%{ begins a directive, and what follows is none; for the two characters themselves, write %%{"},
		{"Unterminated template string", "", "a here document is not closed; add a line that is its mark alone, such as EOT"},
		{"Unsupported operator", "", "this operator is not known; " + inQuotes},
		{"Invalid character", "The \"`\"", "a backtick (`) is not used here; remove it, as Markdown has it around code; " + inQuotes},
		{"Invalid character", "Single quotes", `single quotes are not used here; use double quotes (")`},
		{"Invalid character", `The ";"`, "a ; is not used here; each argument and block is on a line of its own"},
		{"Invalid character", "Tab", "a tab is not used here; use spaces"},
		{"Invalid character", `"Curly quotes"`, `these are curly quotes, as word processors write them; use straight double quotes (")`},
		{"Invalid character", "Expected an attribute access", reference},
		{"Invalid character encoding", "", "this is not UTF-8; save it as UTF-8"},
		{"Invalid character", "", "this character is not used here; it may be a dash, a space or a quotation mark as word " +
			"processors write it; type it again"},
		{openText, "", `a text begins on this line, and has no closing quotation mark (") there; add it`},
		{"Variable name required|Attribute name required", "", reference},
		{"Extra characters after expression", "", "something follows the value; remove it; " + inQuotes},

		{"Extraneous data after value", "", "something follows the JSON, which ends here; remove it"},
		{"Missing JSON value|Missing array element value|Invalid start of value", "",
			"a value is required here: a string in double quotes, a number, true, false, an object or a list"},
		{"Missing value", "", "the JSON is truncated; write it again"},
		{"Invalid object property name", "", `names are in double quotes (") in JSON, as in {"state": {}}`},
		{"Missing object value|Missing property value colon", "",
			`a colon is required between a name and its value, as in "name": "value"`},
		{"Trailing comma", "", "the last element has no comma behind it; remove the comma"},
		{"Unclosed object|Mismatched bra", "", "a { or [ is not closed, or is closed by the other bracket; the command jq . shows where"},
		{"Missing attribute s", "", "a comma is missing between two elements"},
		{"Invalid array value", "", "a list has values, without names and colons"},
		{"Invalid JSON number", "", "this is not a number; put strings in double quotes (\")"},
		{"Invalid JSON string", "", `a string is not closed, or has a line break, a backslash or a quotation mark in it, which are written \n, \\ and \"`},
		{"Invalid JSON keyword", "", `in JSON, names and strings are in double quotes ("); only true, false, null and numbers are not`},
		{"Incorrect JSON value type|Missing block label", "",
			`in JSON, the kind and the name of a block are keys: {"key_provider": {"pbkdf2": {"main": {"iterations": 600000}}}}`},
		{"Duplicate ", "", "this name is there twice; remove one of the two"},
	}
}

// wordFor returns the replacement for an HCL error message, or false if there is none.
func wordFor(d *hcl.Diagnostic) (text string, found bool) {
	for _, w := range words() {
		for summary := range strings.SplitSeq(w.summary, "|") {
			if strings.HasPrefix(d.Summary, summary) && strings.HasPrefix(d.Detail, w.detail) {
				return w.text, true
			}
		}
	}
	return "", false
}

// mistake returns an error for one syntax mistake in a text. It reports the first string that is
// not closed on its line, or else the first diagnostic. Other diagnostics may be mere consequences:
// after a missing quotation mark, every line is an error.
func mistake(diags hcl.Diagnostics, text []byte, form string) error {
	first := diags[0]
	for _, d := range diags {
		if d.Summary == openText && d.Subject != nil {
			first = d
			break
		}
	}
	what, found := wordFor(first)
	switch {
	case first.Summary == "Unterminated template string" && !bytes.Contains(text, []byte("<<")):
		// The position of this error is the end of the text.
		what = `a string is not closed; add the quotation mark (") that ends it`
	case !found:
		what = "the syntax is wrong here: " + form
	case form == formOfValues && strings.Contains(strings.ToLower(first.Summary), "block"):
		what = form
	case what == "":
		what = "neither an argument nor a block begins here: " + form
	}
	var pos attr.Pos
	if at := first.Subject; at != nil {
		if first.Context != nil && first.Context.Start.Line < at.Start.Line { // report where the construct begins
			at = first.Context
		}
		pos = position(*at)
		what = inLine(what, first.Summary == openText, lineAt(text, first.Subject.Start.Byte), text[min(first.Subject.Start.Byte, len(text)):])
	}
	return &attr.Error{Pos: pos, Err: errors.New(what)}
}

// openText is the summary of HCL's error for a string that is not closed on its line.
const openText = "Invalid multi-line string"

// inLine returns a better message for a mistake if its line, or the characters at which the parser
// stopped, show a common cause. Otherwise, it returns the given message.
func inLine(what string, isOpen bool, line, at []byte) string {
	const marks = 3 // one at each end of a text, and one inside
	switch {
	case bytes.Contains(line, []byte("${{")):
		return "${{ secrets.NAME }} is an expression of a pipeline, and nothing was put in its place: only a workflow file fills " +
			"it in: set the variable there"
	case bytes.HasPrefix(bytes.TrimSpace(line), []byte("```")):
		return "the lines with ``` are marks of Markdown; remove them"
	case noValue.Match(line):
		return "there is no value behind the =; is a variable empty?"
	case isOpen && bytes.Count(line, []byte("${")) > bytes.Count(line, []byte("}")):
		return dollarBrace
	case isOpen && bytes.Count(line, []byte(`"`)) >= marks:
		return what + `; a quotation mark inside a text is written \", and jsonencode(…) writes any text`
	case bytes.HasPrefix(at, []byte("$")):
		return "a dollar sign is only used inside quotation marks; the value of a variable is var.NAME, without one"
	case bytes.HasPrefix(at, []byte("/*")):
		return "a comment begins with /* here, and has no */ that ends it; add it"
	case bytes.HasPrefix(at, []byte("//")), bytes.HasPrefix(at, []byte("#")):
		return "JSON has no comments; remove this one"
	}
	return what
}

// noValue matches an argument without a value. It also matches a line of base64 that ends with one
// equals sign.
var noValue = lazyregexp.New(`^\s*[A-Za-z_][\w-]*\s*=\s*$`)

// lineAt returns the line of a text that contains the byte at this offset.
func lineAt(text []byte, at int) []byte {
	at = min(at, len(text))
	begin := bytes.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := bytes.Cut(text[begin:], []byte("\n"))
	return line
}

// failed returns the error for an expression without a value, or for a failed function call. It
// uses at most HCL's summary, because HCL's details contain values.
func failed(diags hcl.Diagnostics) error {
	first := diags[0]
	if unknown, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](first); ok {
		return noFunction(unknown.CalledFunctionName())
	}
	call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](first)
	if !ok {
		return errors.New(ofValue(first.Summary))
	}
	name := call.CalledFunctionName()
	if reason, ok := errors.AsType[*callError](call.FunctionCallError()); ok {
		return fmt.Errorf("%s: %w", name, reason)
	}
	return fmt.Errorf("%s: %s", name, ofCall(name, first.Summary))
}

// noFunction returns the error for an unknown function. It repeats the name only if OpenTofu has
// such a function, because any other name may be a secret without quotes.
func noFunction(name string) error {
	const instead = "; pass the value in a variable, such as var.NAME"
	if _, ofFile := ofFiles("")[name]; ofFile || strings.Contains(elsewhere, " "+name+" ") {
		return fmt.Errorf("the function %s cannot be used here%s", name, instead)
	}
	near := syntax.Suggest(name, slices.Sorted(maps.Keys(functions(""))))
	return errors.New("there is no such function here" + cmp.Or(near, instead))
}

func ofCall(function, summary string) string {
	switch {
	case strings.HasPrefix(summary, "Not enough "):
		return "an argument is missing"
	case strings.HasPrefix(summary, "Too many "):
		return "it has too many arguments; remove the last one"
	}
	switch function {
	case "jsondecode":
		return "its argument is not JSON" + orItself
	case "regex":
		return "nothing fits the pattern, or the pattern is wrong"
	case "parseint", "tonumber":
		return "its argument is not a number"
	case "tobool":
		return "its argument is neither true nor false"
	case "format", "formatlist":
		return "its arguments do not fit the format"
	}
	return "one of its arguments has the wrong type, such as a string where a list is expected, or is out of range"
}

const orItself = "; remove the function call if the argument is the value itself, such as a passphrase"

// ofValue returns a message that replaces the summary of an HCL error in ops.go or expression*.go.
func ofValue(summary string) string {
	switch summary {
	case "Invalid operand", "Operation failed":
		return `numbers are required here; to join strings, use a template such as "${var.a}-${var.b}"`
	case "Unsupported attribute":
		return "the value has no part of this name; the whole value of a variable is var.NAME"
	case "Invalid index", "Missing map element":
		return "there is no such element in the value, or the value is a text, which has none"
	case "Attempt to index null value", "Attempt to get attribute from null value", "Splat of null value", "Iteration over null value":
		return "the value is null, which has no parts"
	case "Invalid template interpolation value":
		return "a value between ${ and } is null, or neither a text nor a number"
	case "Null condition", "Incorrect condition type":
		return "a condition is true or false"
	case "Inconsistent conditional result types":
		return "the two values of a condition have different types"
	}
	return "the value of this expression cannot be found (" + syntax.LowerFirst(summary) + ")"
}
