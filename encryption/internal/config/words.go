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
	formOfSettings = `write each argument as NAME = VALUE on its own line, and begin each block like key_provider "pbkdf2" "main" {`
	formOfValues   = `write only lines like name = "value" in this file`
)

const (
	dollarBrace = "the text after ${ is not a valid expression; write $${ for the two characters themselves"
	inQuotes    = `put text in double quotes (")`
	reference   = "write a reference like var.NAME or key_provider.TYPE.NAME"
)

// words returns the replacements for syntax errors in packages hclsyntax (parser.go,
// parser_template.go, token.go) and json (parser.go, structure.go).
func words() []word {
	return []word{
		{"Attribute redefined", "The argument \"method\"", "the argument method is set twice; put the second method in a " +
			"fallback block: fallback { method = method.aes_gcm.old }"},
		{"Attribute redefined", "", "this argument is set twice; remove one of the two"},
		{"Invalid argument name", "", "the argument name is in quotation marks; remove them. If this is JSON, begin with {"},
		{"Unclosed configuration block", "", "the block that begins here is not closed; add the closing }"},
		{"Unclosed configuration body", "", "a block is not closed; add the closing }"},
		{"Argument or block definition required", "", ""},
		{"Argument definition required", "", "this block contains another block on the same line; begin each block on its own line"},
		{"Invalid block definition", "The equals sign", "the block has an = before its {; remove the ="},
		{"Invalid block definition", "A block definition must have", "the = of an argument, or the { of a block, is missing on this line; " +
			"add it"},
		{"Invalid block definition", "", ""},
		{"Invalid single-argument block definition", "", "a block on one line can have only one argument; write each argument, and the " +
			"closing }, on its own line"},
		{"Missing newline after block definition", "", `two blocks are on the same line; begin each block on its own line. In a shell, quote "$(cat FILE)" to keep line breaks`},
		{"Unexpected comma after argument", "", "a comma follows the argument; remove the comma, and write each argument on its own line"},
		{"Missing newline after argument", "", "more text follows the value; write each argument on its own line, and " + inQuotes},
		{"Missing false expression", "", "the second value of the condition is missing; write CONDITION ? VALUE : VALUE"},
		{"Invalid legacy index syntax|Nested splat expression|Index value required", "",
			"this list index is not valid; write it in square brackets, like var.NAME[0]"},
		{"Invalid attribute name", "", "the name after the dot is missing; " + reference},
		{"Missing close bracket|Unterminated tuple|Missing item separator|Unclosed index brackets", "",
			"a [ is not closed, or a comma is missing in the list; add ] or the comma"},
		{"Unbalanced parentheses", "", "a ( is not closed; add )"},
		{"Missing expression", "", "a value is missing here; add it, and " + inQuotes},
		{"Invalid expression", "", "this is not a value; " + inQuotes},
		{"Invalid number literal", "", "this is not a number; " + inQuotes},
		{"Missing function name", "", "a function name must not contain ::; write only the part after it"},
		{"Missing open parenthesis|Missing closing parenthesis|Unterminated function call|Missing argument separator", "",
			"a function call is not closed, or a comma is missing between its arguments; add ) or the comma"},
		{"Missing attribute value|Missing key/value separator|Missing attribute separator", "",
			`this object is not valid; write each pair like name = "value" on its own line`},
		{"Unterminated object", "", "a { is not closed; add }"},
		{"Invalid 'for' expression", "", "this for expression is not valid; write it like [for x in LIST : VALUE]"},
		{"Invalid string literal", "Template sequences", dollarBrace},
		{"Invalid string literal", "", "a string is missing here; add it in double quotes"},
		{"Unterminated string literal", "", `a string is not closed; add the closing quotation mark (")`},
		{"Invalid escape sequence", "", `this escape sequence is not valid; write a backslash as \\, or use / in a Windows path`},
		{"Unclosed template interpolation|Extra characters after interpolation", "", dollarBrace},
		{"Unexpected |Invalid template |Invalid 'for' directive|Extra characters in ", "",
			"the text after %{ is not a valid directive; write %%{ for the two characters themselves"},
		{"Unterminated template string", "", "a here document is not closed; add a line with only its marker, for example EOT"},
		{"Unsupported operator", "", "this operator is not known; " + inQuotes},
		{"Invalid character", "The \"`\"", "a backtick (`) is not allowed here; remove it, and " + inQuotes},
		{"Invalid character", "Single quotes", `single quotes are not allowed here; use double quotes (")`},
		{"Invalid character", `The ";"`, "a ; is not allowed here; write each argument and block on its own line"},
		{"Invalid character", "Tab", "a tab is not allowed here; use spaces"},
		{"Invalid character", `"Curly quotes"`, `these are curly quotes; use straight double quotes (")`},
		{"Invalid character", "Expected an attribute access", "this reference is not valid; " + reference},
		{"Invalid character encoding", "", "this is not UTF-8; save it as UTF-8"},
		{"Invalid character", "", "this character is not allowed here; type it again, because it may come from a word " +
			"processor"},
		{openText, "", `a string on this line has no closing quotation mark ("); add it`},
		{"Variable name required|Attribute name required", "", "a name is missing here; " + reference},
		{"Extra characters after expression", "", "more text follows the value; remove it, or " + inQuotes},

		{"Extraneous data after value", "", "the JSON ends here, but more text follows; remove that text"},
		{"Missing JSON value|Missing array element value|Invalid start of value", "",
			"a value is missing here; add a string in double quotes, a number, true, false, an object or a list"},
		{"Missing value", "", "the JSON is truncated; write it again"},
		{"Invalid object property name", "", `this name is not in double quotes; write names in JSON like "state"`},
		{"Missing object value|Missing property value colon", "",
			`the colon after the name is missing; write "name": "value"`},
		{"Trailing comma", "", "a comma follows the last element; remove it"},
		{"Unclosed object|Mismatched bra", "", "a { or [ is not closed, or the wrong bracket closes it; run jq . to find the place"},
		{"Missing attribute s", "", "a comma is missing between two elements; add it"},
		{"Invalid array value", "", "this list contains a name with a colon; write only values in a list"},
		{"Invalid JSON number", "", "this is not a number; put strings in double quotes (\")"},
		{"Invalid JSON string", "", `a string is not closed, or contains a character that JSON does not allow; write a line break as \n, a backslash as \\, and a quotation mark as \"`},
		{"Invalid JSON keyword", "", `this word is not in double quotes; put names and strings in double quotes (")`},
		{"Incorrect JSON value type|Missing block label", "",
			`the kind or the name of the block is missing; write the block like {"key_provider": {"pbkdf2": {"main": {"iterations": 600000}}}}`},
		{"Duplicate ", "", "this name appears twice; remove one of the two"},
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
		what = `a string is not closed; add the closing quotation mark (")`
	case !found:
		what = "the syntax is wrong here; " + form
	case form == formOfValues && strings.Contains(strings.ToLower(first.Summary), "block"):
		what = "this is not an argument; " + form
	case what == "":
		what = "neither an argument nor a block begins here; " + form
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
		return "${{ secrets.NAME }} was not replaced, because it works only in a workflow file; set a variable in the workflow " +
			"file, and use the variable here"
	case bytes.HasPrefix(bytes.TrimSpace(line), []byte("```")):
		return "the lines with ``` are Markdown; remove them"
	case noValue.Match(line):
		return "there is no value after the =; check whether a variable is empty"
	case isOpen && bytes.Count(line, []byte("${")) > bytes.Count(line, []byte("}")):
		return dollarBrace
	case isOpen && bytes.Count(line, []byte(`"`)) >= marks:
		return what + `. Write a quotation mark inside a string as \", or use jsonencode(…)`
	case bytes.HasPrefix(at, []byte("$")):
		return "a dollar sign is not allowed outside quotation marks; write the value of a variable as var.NAME"
	case bytes.HasPrefix(at, []byte("/*")):
		return "the comment that begins here with /* is not closed; add */"
	case bytes.HasPrefix(at, []byte("//")), bytes.HasPrefix(at, []byte("#")):
		return "JSON does not allow comments; remove this comment"
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
	const instead = "; pass the value in a variable like var.NAME"
	if _, ofFile := ofFiles("")[name]; ofFile || strings.Contains(elsewhere, " "+name+" ") {
		return fmt.Errorf("the function %s cannot be used here%s", name, instead)
	}
	near := syntax.Suggest(name, slices.Sorted(maps.Keys(functions(""))))
	return errors.New("there is no such function here" + cmp.Or(near, instead))
}

func ofCall(function, summary string) string {
	switch {
	case strings.HasPrefix(summary, "Not enough "):
		return "an argument is missing; add it"
	case strings.HasPrefix(summary, "Too many "):
		return "too many arguments are given; remove the last one"
	}
	switch function {
	case "jsondecode":
		return "the argument is not JSON" + orItself
	case "regex":
		return "the text does not match the pattern, or the pattern is wrong; check both"
	case "parseint", "tonumber":
		return "the argument is not a number"
	case "tobool":
		return "the argument is neither true nor false"
	case "format", "formatlist":
		return "the arguments do not match the format; check both"
	}
	return "an argument has the wrong type or is out of range; check the arguments"
}

const orItself = "; remove the function call if the argument is the value itself"

// ofValue returns a message that replaces the summary of an HCL error in ops.go or expression*.go.
func ofValue(summary string) string {
	switch summary {
	case "Invalid operand", "Operation failed":
		return `an operand is not a number; to join strings, write "${var.a}-${var.b}"`
	case "Unsupported attribute":
		return "the value has no attribute of this name; for the whole value, leave out the dot and this name"
	case "Invalid index", "Missing map element":
		return "the value has no such element, or it is a string; check the index"
	case "Attempt to index null value", "Attempt to get attribute from null value", "Splat of null value", "Iteration over null value":
		return "the value is null, so it has no elements; check whether the variable is set"
	case "Invalid template interpolation value":
		return "a value between ${ and } is null, or it is neither a string nor a number"
	case "Null condition", "Incorrect condition type":
		return "the condition is neither true nor false"
	case "Inconsistent conditional result types":
		return "the two values of the condition have different types; use values of one type"
	}
	return "this expression cannot be evaluated (" + syntax.LowerFirst(summary) + ")"
}
