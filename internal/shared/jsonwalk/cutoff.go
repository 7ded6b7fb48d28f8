package jsonwalk

import (
	"encoding/json"
	"errors"
)

// IsCutOff reports whether the error of package json is about text that ends in the middle,
// and not about another mistake at the end, such as a brace too many.
func IsCutOff(err error) bool {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	return ok && syntax.Error() == "unexpected end of JSON input"
}
