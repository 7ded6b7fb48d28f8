package store

import (
	"strings"
	"testing"
	"time"
)

// TestAge: the age of a time is in the largest unit that is not too coarse. A time to come has none.
func TestAge(t *testing.T) {
	t.Parallel()
	for before, want := range map[time.Duration]string{
		-time.Hour: "", time.Second: " (less than a minute ago)", 61 * time.Second: " (1 minute ago)", 12*time.Minute + 1: " (12 minutes ago)",
		time.Hour: " (1 hour ago)", 47 * time.Hour: " (47 hours ago)", 49 * time.Hour: " (2 days ago)", 1000 * time.Hour: " (41 days ago)",
	} {
		if got := Age(time.Now().Add(-before)); got != want {
			t.Errorf("%s: got %q, want %q", before, got, want)
		}
	}
	lock := Lock{Created: "yesterday"}
	if got := Age(time.Time{}) + lock.since(); got != `"yesterday"` {
		t.Errorf("got %q", got)
	}
}

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
