package recognize

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// Certainty is how sure it is that a text is not what was meant.
type Certainty int

const (
	Perhaps  Certainty = iota // somebody may have chosen it; said only beside an error
	Surely                    // nobody chose it, but the secret is in it, or named by it
	NoSecret                  // everybody may know it, so that nothing may be encrypted with it
)

// Passphrase says what a text is that stands in the place of a passphrase, "" if that is
// nothing known.
func Passphrase(text string) (what string, sure Certainty) {
	if what := notSecret(strings.Trim(text, " \t\r\n\"'\ufeff")); what != "" { // whatever else is odd about it
		return what, NoSecret
	}
	odd, certain := Oddity(text)
	switch {
	case certain:
		return odd, Surely
	case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
		return "is JSON, as stores of secrets keep it: jsondecode(…) and the name of a member give the text", Surely
	case assigned.MatchString(text):
		return "is a line NAME = VALUE, and the value alone is required", Surely
	case IsPath(text), elsewhere.MatchString(strings.TrimPrefix(text, "@")):
		return looksLikePath, Surely
	case odd != "":
		return odd, Perhaps
	case strings.Contains(strings.TrimSpace(text), "\n"):
		return "has several lines; check that nothing but the passphrase is in it", Perhaps
	case isTextInBase64(text):
		return "is text in base64, as Kubernetes keeps it: base64decode(…) gives the text", Perhaps
	case !strings.Contains(text, " ") && percentEncoded.MatchString(text):
		return "has codes such as %20 in it, as addresses have for a space; write the characters themselves", Perhaps
	case strings.ContainsAny(text, "\u2013\u2014\u00a0\u201c\u201d\u2018\u2019\u201e"):
		return "has a dash, a space or a quotation mark in it as word processors write it; type it anew", Perhaps
	case hexKey.MatchString(text):
		return "has 64 hexadecimal digits, as a key has, and a key belongs in key_provider \"static\"", Perhaps
	}
	return "", Perhaps
}

// notSecret is about texts that hold no secret at all.
func notSecret(text string) string {
	switch {
	case programError.MatchString(text):
		return "is what a program printed when it failed; set the secret itself"
	case Exists(strings.TrimPrefix(text, "@")):
		return isPath
	case public.MatchString(text):
		return "is a certificate or a public key, which others may have; set a secret"
	case sentence.MatchString(text):
		return "" // it may be one that somebody chose, such as "your secret is safe with me"
	}
	return cmp.Or(Reference(text), InPlaceOf(text))
}

// Reference says of what else a text is the name, or the ciphertext, in the place of a
// secret: nothing looks it up here. It is "" for another text.
func Reference(text string) string {
	switch {
	case secretAddress.MatchString(text):
		return "looks like a reference to a secret of another system, which is not looked up here; set the secret itself"
	case strings.HasPrefix(text, "ENC[AES256_GCM,"):
		return "is a value that sops encrypted, which is not decrypted here; set the secret itself"
	case IsTransit([]byte(text)):
		return "is a ciphertext of the secrets engine transit, which is not decrypted here; set the secret itself"
	case syntax.IsKeyProviderAddress(text), valueAddress.MatchString(text):
		return notEvaluated
	}
	return ""
}

const (
	isPath        = "is the path of a file: file(…) reads what is in it"
	looksLikePath = "looks like the path of a file: file(…) reads what is in it"
)

var (
	secretAddress = lazyregexp.New(`^([a-z0-9][a-z0-9+.-]*://|arn:aws|vault:[\w/-]+#|projects/[^/]+/secrets/|@Microsoft\.KeyVault\(|ssm:/|env:\w+$)`)
	public        = lazyregexp.New(`^(age1[0-9a-z]{50,}$|(ssh|ecdsa|sk)-\S+ AAAA|\s*-----BEGIN (CERTIFICATE|[A-Z ]*PUBLIC KEY))`)
	valueAddress  = lazyregexp.New(`^(ephemeral\.)?(random_[a-z]+|data\.([a-z]+_\w+|external|http))\.[\w-]+(\[[^]]*\])?\.[\w.-]+$`)
	programError  = lazyregexp.New(`(?i)^(an error occurred \(|fatal: |error: .*(not|no|fail|denied|invalid|unknown|unable|cannot)|` +
		`((permission|access) denied|unauthorized)[.!]?$)`)
	sentence = lazyregexp.New(`^\w+( [\w,'-]+){3,}$`)
	assigned = lazyregexp.New(`^(export )?([A-Za-z_]\w* ?= ?(".*"|'.*')|[A-Z][A-Z0-9]*_[A-Z0-9_]*=.*)$`)

	// A path that no passphrase is by chance, also of a file that is on another machine.
	elsewhere = lazyregexp.New(`^(/(run|etc|var|home|root|tmp|opt|usr|mnt|srv|secrets|vault)/|\./)[\w./-]+$`)

	percentEncoded = lazyregexp.New(`%[2-7][0-9A-F]`)
	hexKey         = lazyregexp.New(`^[0-9a-f]{64}$`)
)

// isTextInBase64 tells it from random bytes in base64, which are a good passphrase, and
// hardly ever text.
func isTextInBase64(text string) bool {
	decoded, err := base64.StdEncoding.DecodeString(text)
	isControl := func(r rune) bool { return r < ' ' && r != '\n' }
	return err == nil && len(decoded) >= 12 && utf8.Valid(decoded) && !bytes.ContainsFunc(decoded, isControl)
}

// Token says what is odd about a token, "" for nothing.
func Token(text string) string {
	const tokenInBase64 = "ZXlK" // eyJ, with which JSON Web Tokens begin
	switch scheme, _, more := strings.Cut(text, " "); {
	case more && (strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "token")):
		return "begins with " + scheme + ", which is sent before it anyway"
	case IsPath(text) || Exists(text):
		return isPath
	case strings.HasPrefix(text, tokenInBase64):
		return "is in base64, as Kubernetes keeps it: base64decode(…) gives the token"
	}
	return ""
}

// CheckPEM refuses a text that holds nothing in PEM, unless it is empty.
func CheckPEM(text string) error {
	if text == "" || strings.Contains(text, "-----BEGIN") {
		return nil
	}
	return errors.New("it is not in PEM format" + NoPEM(text))
}

// NoPEM says what is in the place of a certificate or a key in PEM, and what to do about
// it: a path, or base64. It is "" for anything else.
func NoPEM(text string) string {
	const encoded = "LS0tLS1CRUdJTi" // -----BEGIN
	switch {
	case IsPath(text) || Exists(text):
		return "; use file(…) to read a file"
	case strings.HasPrefix(text, encoded):
		return "; use base64decode(…) to decode base64"
	}
	return ""
}
