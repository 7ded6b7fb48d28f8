package store

import (
	"strings"
	"testing"
)

// TestUnlocking: an ID that someone has chosen is no part of a command unless it does nothing there.
func TestUnlocking(t *testing.T) {
	t.Parallel()
	for id, shown := range map[string]bool{
		"11111111-2222-4333-8444-555555555555": true, "1": true, "1700000000": true, "$(touch x)": false, "`x`": false, "-force": false,
		"a b": false, "\"": false, "": false, "x\n": false, "größe": false,
		strings.Repeat("x", 100): true, strings.Repeat("x", 101): false, // which would be cut
	} {
		if text := Unlocking(id); strings.Contains(text, "statecrypt wrap") != shown {
			t.Errorf("%q: %s", id, text)
		}
	}
}
