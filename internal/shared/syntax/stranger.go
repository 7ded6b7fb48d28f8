package syntax

import (
	"encoding/json"
	"errors"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

var privateKey = lazyregexp.New(`(?m)^(AGE-SECRET-KEY-|AGE-PLUGIN-|-----BEGIN [A-Z ]*PRIVATE KEY)`)

// HoldsPrivateKey reports whether a line begins a private key: an identity of age or of one
// of its plugins, or a key in PEM.
func HoldsPrivateKey(text []byte) bool { return privateKey.Match(text) }

// IsCutOff reports whether the error of package json is about text that ends in the middle,
// and not about another mistake at the end, such as a brace too many.
func IsCutOff(err error) bool {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	return ok && syntax.Error() == "unexpected end of JSON input"
}
