package recognize

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// Place is a set of kinds of text. It determines which mistakes to look for.
type Place int

const (
	Value      Place = 1 << iota // any text, such as an address, a path or a name
	Word                         // a text in a request, such as in a header, without control characters
	Secret                       // a secret that is sent to a server
	Token                        // a secret that is sent in a header
	Passphrase                   // a secret that keys are derived from
	Identity                     // an age identity
	Settings                     // encryption settings, in HCL or JSON
	Content                      // the content of a file, such as a PEM certificate

	anyText = Value | Secret | Token | Passphrase | Identity | Settings
	secret  = Secret | Token | Passphrase | Settings
	inFile  = Token | Passphrase | Identity | Settings | Content
)

// Certainty says how certain it is that a text is not meant to be a passphrase.
type Certainty int

const (
	Perhaps  Certainty = iota // may be deliberate, so it is only mentioned together with an error
	Surely                    // is not deliberate, but contains or names the secret
	NoSecret                  // is no secret, so it must not be used to encrypt
)

// Thing is a text that users set by mistake instead of the right one.
type Thing struct {
	Sure Certainty
	is   string // the end of a sentence about the text
	mend mend
}

// mend is advice on how to correct a thing, for settings, where functions can be used, and for environment
// variables, which are set in a shell.
type mend struct{ settings, variable string }

// Said returns a description of the thing, with advice on how to correct it in an environment variable, or in
// settings if variable is empty. It returns an empty string for the zero Thing.
func (t Thing) Said(variable string) string {
	if variable != "" {
		return t.is + t.mend.variable
	}
	return t.is + t.mend.settings
}

func same(text string) mend { return mend{text, text} }

var (
	trim    = mend{"; remove it with trimspace(…)", `; remove it, for example with "$(cat FILE)" in a shell`}
	read    = mend{"; read its content with file(…)", `; read its content, for example with "$(cat FILE)" in a shell`}
	decode  = mend{"; decode it with base64decode(…)", "; decode it with base64 -d"}
	replace = same("; replace it with its value")
	set     = same("; set the secret itself")
	value   = same("; give only the value, without the name and the =")
)

const (
	assigned     = "begins with the name of a variable"
	inBase64     = "is still in base64"
	notEvaluated = "is an expression that was not evaluated"
	notExpanded  = "begins with a shell variable that was not expanded"
)

// things lists the rules. The first rule that covers the place and matches the text applies.
var things = []struct {
	in Place
	Thing
	fits func(text string) bool
}{
	// These rules find texts that contain no secret, regardless of characters added around them.
	{Passphrase, Thing{NoSecret, "is the error message of a program", set}, bare(`(?i)^(an error occurred \(|fatal: |` +
		`error: .*(not|no|fail|denied|invalid|unknown|unable|cannot)|((permission|access) denied|unauthorized)[.!]?$)`)},
	{inFile, Thing{NoSecret, "is the path of a file", read}, func(text string) bool { return Exists(strings.TrimPrefix(inside(text), "@")) }},
	{Passphrase, Thing{NoSecret, "is a certificate or a public key, so it is not secret", same("; set a secret")},
		bare(`^(age1[0-9a-z]{50,}$|(ssh|ecdsa|sk)-\S+ AAAA|-----BEGIN (CERTIFICATE|[A-Z ]*PUBLIC KEY))`)},
	{secret, Thing{NoSecret, "looks like a reference to a secret in another system, but such references are not resolved here", set},
		bare(`^([a-z0-9][a-z0-9+.-]*://|arn:aws|vault:[\w/-]+#|projects/[^/]+/secrets/|@Microsoft\.KeyVault\(|ssm:/|env:\w+$)`)},
	{secret, Thing{NoSecret, "is still encrypted with sops", set}, bare(`^ENC\[AES256_GCM,`)},
	{secret, Thing{NoSecret, "is still encrypted with the transit secrets engine", set}, bare(transitPrefix)},
	{secret, Thing{NoSecret, notEvaluated, replace}, func(text string) bool { return syntax.IsKeyProviderAddress(inside(text)) }},
	{secret, Thing{NoSecret, notEvaluated, replace},
		bare(`^(ephemeral\.)?(random_[a-z]+|data\.([a-z]+_\w+|external|http))\.[\w-]+(\[[^]]*\])?\.[\w.-]+$`)},
	{anyText, Thing{NoSecret, "is the placeholder that logs show instead of a secret", set},
		bare(`(?i)^(\*{3,}|[\[(<](masked|redacted|hidden|secret|sensitive|sensitive value)[\])>])$`)},
	{anyText, Thing{NoSecret, "is a placeholder that was not replaced", same("; replace it with the value")},
		bare(`^(<[A-Za-z]?[a-z]+([-_ .][a-z]+)*>|<[A-Z]+([-_ ][A-Z]+)*>|(?i:[-_a-z]*…|(change[-_ ]?(me|it|this)[-_ !.0-9]{0,6})+|` +
			`replace[-_ ](me|with)([-_ ](me|with|` + words + `))*|your([-_ ](` + words + `)){1,5}))$`)},
	{anyText, Thing{NoSecret, notEvaluated, mend{replace.settings, "; put it in double quotes, so that the shell evaluates it"}},
		bare("^(\\$\\([^()]*\\)|`[^`]+`)$")},
	{anyText, Thing{NoSecret, notEvaluated, replace},
		bare(`^(\(known after apply\)|\$?\{\{[^{}]*\}\}|\$\{[^{}]*\.[^{}]*\})$`)},
	{anyText, Thing{NoSecret, "is the name of a variable in quotation marks", same(`; remove the quotation marks (in JSON, write "${var.NAME}")`)},
		bare(`^((var|local)|module\.[A-Za-z_][\w-]*)(\.[A-Za-z_][\w-]*)+$`)},
	{anyText, Thing{NoSecret, notExpanded, replace}, bare(`^(\$(\{[A-Za-z_]\w*\}|[A-Z]+(_[A-Z0-9]+)+|` +
		`PASSPHRASE|PASSWORD|SECRET|TOKEN|KEY|env:\w+)|%[A-Z]+(_[A-Z0-9]+)*%)$`)},

	// These rules check the characters around a text.
	{Word, Thing{Surely, "contains a line break or another control character", same("; remove it")},
		func(text string) bool {
			return strings.ContainsFunc(strings.TrimRight(text, "\r\n"), unicode.IsControl)
		}},
	{anyText | Word, Thing{Surely, "ends with a line break", trim}, whole(`^[^\n]*[\r\n]*\n$`)},
	{anyText | Word, Thing{Surely, "ends with a carriage return, probably from a Windows file", trim}, whole(`^[^\n]*[\r\n]*\r$`)},
	{anyText, Thing{Surely, "begins with a byte order mark", same("; save it without that mark")}, whole(`^\x{feff}`)},
	{anyText, Thing{Surely, "begins or ends with a space", trim}, whole(`^( .*|.* )$`)},
	{anyText, Thing{Surely, "includes the quotation marks around it", same("; remove them")}, isQuoted},

	// These rules check the form of a text.
	{Token, Thing{is: "begins with the word Bearer, but that word is added automatically", mend: same("; remove it")}, whole(`(?i)^bearer `)},
	{Token, Thing{is: "begins with the word token, but that word is added automatically", mend: same("; remove it")}, whole(`(?i)^token `)},
	{Identity, Thing{is: "is a public key (age1…), so it cannot decrypt",
		mend: same("; use the matching identity (AGE-SECRET-KEY-…)")}, whole(`(?m)^age1`)},
	{Identity, Thing{is: "is an SSH public key, so it cannot decrypt",
		mend: same("; use the matching private key from the file of the same name without .pub")}, whole(`^(ssh|ecdsa)-`)},
	{Identity, Thing{is: "looks like an age identity, but is truncated or mistyped", mend: same("; copy the whole identity")},
		whole(`(?i)^AGE-SECRET-KEY-`)},
	{Passphrase, Thing{Surely, "is a JSON object, not the passphrase itself", mend{"; select one of its members with jsondecode(…).NAME",
		"; set the value of one of its members"}},
		func(text string) bool { return strings.HasPrefix(text, "{") && json.Valid([]byte(text)) }},
	{Passphrase | Settings, Thing{Surely, assigned, value}, whole(`^(export |set |\$env:)?[A-Z][A-Z0-9]*_[A-Z0-9_]* ?=`)},
	{Passphrase, Thing{Surely, assigned, value}, whole(`^(export )?[A-Za-z_]\w* ?= ?(".*"|'.*')$`)},
	{inFile, Thing{Surely, "looks like the path of a file", read}, looksLikePath},
	{anyText, Thing{Perhaps, notExpanded, replace}, whole(`^(\$\{?[A-Z_]+|%%?[A-Za-z_]\w*%)[^\n]*$`)},
	{Passphrase, Thing{is: "has several lines; check that it contains only the passphrase"},
		func(text string) bool { return strings.Contains(strings.TrimSpace(text), "\n") }},
	{Passphrase | Settings, Thing{is: inBase64, mend: decode}, isTextInBase64},
	{Token | Content, Thing{is: inBase64, mend: decode}, whole(`^(ZXlK|LS0tLS1CRUdJTi)`)}, // eyJ and -----BEGIN
	{Passphrase, Thing{is: "contains URL codes like %20 for a space; write the characters themselves"},
		whole(`^[^ ]*%[2-7][0-9A-F][^ ]*$`)},
	{Passphrase, Thing{is: "has a dash, a space or a quotation mark from a word processor; type it again"},
		whole("[\u2013\u2014\u00a0\u201c\u201d\u2018\u2019\u201e]")},
	{Passphrase, Thing{is: "has 64 hexadecimal digits, like a key; use key_provider \"static\" for a key"}, whole(`^[0-9a-f]{64}$`)},
}

// words lists the words used in placeholders such as "your-bucket-name". A text that consists only of these
// words is a placeholder; a text such as "your-horse" may have been chosen.
const words = `a|access|account|actual|api|app|aws|azure|bucket|client|cluster|company|container|database|db|domain|encryption|example|gcp|git|github|` +
	`gitlab|goes|google|group|here|host|id|key|long|management|my|name|namespace|new|old|org|organi[sz]ation|own|passphrase|password|path|` +
	`project|prod|production|random|real|region|repo|repository|resource|s3|secret|secure|server|service|sso|state|storage|strong|subscription|super|team|` +
	`tenant|terraform|the|tofu|token|url|user|username|value|vault|very|workspace|your`

// Text returns the thing that the first matching rule for the place recognizes, or the zero Thing if no rule
// matches. The result contains no part of the text.
func Text(text string, in Place) Thing {
	for _, t := range things {
		if t.in&in != 0 && t.fits(text) {
			return t.Thing
		}
	}
	return Thing{}
}

// IsWord reports whether a text can be sent unchanged, for example in a header.
func IsWord(text string) bool { return Text(text, Word) == Thing{} }

// whole returns a rule that matches expression against the unchanged text.
func whole(expression string) func(string) bool { return lazyregexp.New(expression).MatchString }

// bare returns a rule that matches expression against the text without surrounding white space and quotation
// marks.
func bare(expression string) func(string) bool {
	matches := whole(expression)
	return func(text string) bool { return matches(inside(text)) }
}

// inside returns a text without the characters that copying may have added around it.
func inside(text string) string { return strings.Trim(text, " \t\r\n\"'\ufeff") }

// isQuoted reports whether a text is enclosed in quotation marks. It returns false for JSON or YAML that
// begins with a quoted name.
func isQuoted(text string) bool {
	return len(text) > 1 && strings.ContainsAny(text[:1], "\"'") && text[len(text)-1] == text[0] && !quotedName.MatchString(text)
}

// looksLikePath reports whether text is a path, possibly of a file on another machine. It is very unlikely
// that a passphrase looks like that.
func looksLikePath(text string) bool {
	text = strings.TrimPrefix(text, "@") // curl arguments have an @ before a path
	return IsPath(text) || elsewhere.MatchString(text)
}

var (
	quotedName = lazyregexp.New(`^"\w+"\s*[=:]`)
	elsewhere  = lazyregexp.New(`^((/(run|etc|var|home|root|tmp|opt|usr|mnt|srv|builds|secrets|vault)/|\./)[\w./-]+|[A-Za-z]:[\\/][\w. \\/-]+)$`)
)

// isTextInBase64 reports whether text is the base64 encoding of at least 12 bytes of text. Random bytes,
// whose base64 encoding is a good passphrase, are hardly ever valid text.
func isTextInBase64(text string) bool {
	decoded, err := base64.StdEncoding.DecodeString(text)
	isControl := func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\r\n", r) }
	return err == nil && len(decoded) >= 12 && utf8.Valid(decoded) && !strings.ContainsFunc(string(decoded), isControl)
}

// CheckPEM returns an error for a text that contains no PEM block, unless the text is empty.
func CheckPEM(text string) error {
	if text == "" || strings.Contains(text, "-----BEGIN") {
		return nil
	}
	return NoContent("it is not in PEM format", text)
}

// NoContent returns an error for a text that is not the expected file content. The error describes the text
// if it is recognized.
func NoContent(reason, text string) error {
	if is := Text(text, Content).Said(""); is != "" {
		reason += "; it " + is
	}
	return errors.New(reason)
}
