package probe

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Spellings returns all forms in which the secrets may appear in a text.
func Spellings(secrets []string) []string {
	var out []string
	for _, secret := range secrets {
		out = append(append(out, secret), SpellingsOf([]byte(secret))...)
	}
	return out
}

// SpellingsOf returns the forms in which a secret may appear in a text, alone or among other bytes. They are
// the forms that Go's JSON encoder, which encodes bytes in base64, and Go's error messages use.
func SpellingsOf(secret []byte) []string {
	if len(secret) < 4 {
		return nil // a secret this short would be found anywhere
	}
	text, digits, numbers := string(secret), hex.EncodeToString(secret), strings.Trim(fmt.Sprint(secret), "[]")
	out := []string{
		text, digits, strings.ToUpper(digits), numbers, strings.ReplaceAll(numbers, " ", ","),
		inside(strconv.Quote(text)), inside(asJSON(text)), url.QueryEscape(text), url.PathEscape(text),
	}
	for before := range 3 {
		out = append(out, inBase64(base64.RawStdEncoding, before, secret), inBase64(base64.RawURLEncoding, before, secret))
	}
	return out
}

// inside returns a quoted string without its quotation marks.
func inside(quoted string) string { return quoted[1 : len(quoted)-1] }

func asJSON(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // every string can be encoded
	}
	return string(b)
}

// inBase64 returns the base64 digits that encode a secret preceded by the given number of bytes (or by 3 or 6
// bytes more). It omits the digits that also depend on neighboring bytes.
func inBase64(encoding *base64.Encoding, before int, secret []byte) string {
	digits := encoding.EncodeToString(slices.Concat(make([]byte, before), secret))
	return digits[(8*before+5)/6 : 8*(before+len(secret))/6]
}
