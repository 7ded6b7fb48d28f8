package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxLock is in bytes. A lock's description has a few hundred.
	MaxLock    = 64 << 10
	maxEscaped = 200 // bytes of a string from outside that are shown
)

// ParseLock reads what Terraform tells a backend about a lock:
// https://github.com/opentofu/opentofu/blob/v1.12.6/internal/states/statemgr/locker.go
// With an error, the lock is empty; there is one all the same.
func ParseLock(data []byte) (*Lock, error) {
	if len(data) > MaxLock {
		return &Lock{}, fmt.Errorf("the lock's description is larger than %d bytes", MaxLock)
	}
	var text struct{ ID, Who, Operation, Created string }
	if err := json.Unmarshal(data, &text); err != nil {
		return &Lock{}, errors.New("the lock's description is not the JSON object that Terraform writes")
	}
	return &Lock{ID: Escaped(text.ID), Who: Escaped(text.Who), Operation: Escaped(text.Operation), Created: Escaped(text.Created)}, nil
}

// Escaped is a string from outside, escaped and cut: anybody may have written it
// who can write to the place.
func Escaped(s string) string {
	cut := ""
	if len(s) > maxEscaped {
		s, cut = strings.ToValidUTF8(s[:maxEscaped], ""), "…"
	}
	// CI systems see commands in what a program prints: "::" of GitHub, "##" of
	// Azure DevOps and TeamCity.
	commands := strings.NewReplacer("::", `:\u003a`, "##", `#\u0023`)
	return commands.Replace(Printable(s)) + cut
}

// Printable escapes what could move the cursor, hide text or fake a line.
func Printable(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '\n':
			b.WriteString("\\n")
		case r == '\t':
			b.WriteString("\\t")
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, "\\x%02x", text[i])
		case r != ' ' && !unicode.IsPrint(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
