package source

import (
	"fmt"
	"strings"
)

// CheckWord is the error of a secret that is one word in a request, such as a token or
// a password, and has control characters in it, which no server could mean. What is the
// name of the setting. The secret is not in the error.
func CheckWord(what, secret string) error {
	switch {
	case !hasControl(secret):
		return nil
	case !hasControl(strings.TrimRight(secret, "\r\n")):
		return fmt.Errorf("%s ends with a line break, as files do: trimspace(…) removes it", what)
	}
	return fmt.Errorf("%s holds a line break or another control character", what)
}

func hasControl(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0
}
