package source

import (
	"strings"
	"testing"
)

// A secret from a file has a line break at its end. The remedy is said, and not the
// secret.
func TestCheckWord(t *testing.T) {
	for secret, want := range map[string]string{
		"":               "",
		"hunter2 ü":      "",
		"hunter2\n":      "token ends with a line break, as text files do: trimspace(…) removes it",
		"hunter2\r\n":    "token ends with a line break, as text files do: trimspace(…) removes it",
		"hunter2\nmore":  "token holds a line break or another control character; remove it",
		"hunter2\x00":    "token holds a line break or another control character; remove it",
		"\thunter2\x7f ": "token holds a line break or another control character; remove it",
	} {
		got := ""
		if err := CheckWord("token", secret); err != nil {
			got = err.Error()
		}
		if got != want || strings.Contains(got, "hunter2") {
			t.Errorf("%q: got %q, want %q", secret, got, want)
		}
	}
}
