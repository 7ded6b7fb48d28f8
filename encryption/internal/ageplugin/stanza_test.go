package ageplugin

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
)

// A stanza ends with a short line, which is empty if the body fills the others.
func TestEncode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stanza age.Stanza
		want   string
	}{
		{age.Stanza{Type: "done"}, "-> done\n\n"},
		{age.Stanza{Type: "x", Args: []string{"0", "y"}, Body: []byte("a")}, "-> x 0 y\nYQ\n"},
		{age.Stanza{Type: "x", Body: make([]byte, 47)}, "-> x\n" + strings.Repeat("A", 63) + "\n"},
		{age.Stanza{Type: "x", Body: make([]byte, 48)}, "-> x\n" + strings.Repeat("A", 64) + "\n\n"},
		{age.Stanza{Type: "x", Body: make([]byte, 49)}, "-> x\n" + strings.Repeat("A", 64) + "\nAA\n"},
		{age.Stanza{Type: "x", Body: make([]byte, 96)}, "-> x\n" + strings.Repeat(strings.Repeat("A", 64)+"\n", 2) + "\n"},
	} {
		if got := string(encode(c.stanza)); got != c.want {
			t.Errorf("%v: got %q, want %q", c.stanza, got, c.want)
		}
	}
}

// FuzzRead reads what a plugin prints, in one piece and in pieces of step bytes. Both
// give the same, and what is accepted has only one spelling.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "-> done\n\n", "-> msg\nYQ\n-> done\n\n", "-> x y  z\n\n", "->\n\n", "-> x\n" + strings.Repeat("A", 64) + "\n\n-> y\n",
		"-> x\n" + strings.Repeat("A", 64) + "\nAA\n", "-> x\nYR\n", "-> x\nYQ==\n", "-> x\r\n\n", "-> x\n\r\n", "-> \xff\n\n", "hello",
	} {
		f.Add([]byte(seed), 7)
	}
	f.Fuzz(func(t *testing.T, text []byte, step int) {
		whole, failed := readAll(slices.Values([][]byte{text}))
		pieces, again := readAll(slices.Chunk(text, max(1, min(step, 4096))))
		if failed != again || !bytes.Equal(whole, pieces) {
			t.Errorf("in one piece %q, %t; in pieces %q, %t", whole, failed, pieces, again)
		}
		if !bytes.HasPrefix(text, whole) {
			t.Errorf("%q is read as %q", text, whole)
		}
	})
}

// readAll returns the stanzas that were read, written again.
func readAll(pieces func(func([]byte) bool)) (again []byte, failed bool) {
	var r reader
	for piece := range pieces {
		for stanza, err := range r.read(piece) {
			if err != nil {
				return again, true
			}
			again = append(again, encode(stanza)...)
		}
	}
	return again, false
}
