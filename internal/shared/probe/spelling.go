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

// Spellings are the secrets in each of their spellings.
func Spellings(secrets []string) []string {
	var out []string
	for _, secret := range secrets {
		out = append(append(out, secret), SpellingsOf([]byte(secret))...)
	}
	return out
}

// SpellingsOf are the ways in which text may hold a secret, alone or amid other bytes.
// They are those of Go's JSON, which makes base64 of bytes, and those of its errors.
func SpellingsOf(secret []byte) []string {
	if len(secret) < 4 {
		return nil // it is anywhere
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

// inside is what stands in quotes.
func inside(quoted string) string { return quoted[1 : len(quoted)-1] }

func asJSON(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string has JSON
	}
	return string(b)
}

// inBase64 are the digits in which base64 has a secret that stands behind so many
// bytes, or three more or six, without those that its neighbors have a part in.
func inBase64(encoding *base64.Encoding, before int, secret []byte) string {
	digits := encoding.EncodeToString(slices.Concat(make([]byte, before), secret))
	return digits[(8*before+5)/6 : 8*(before+len(secret))/6]
}
