package external

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxKept  = 64 << 10 // bytes of stderr that are kept
	maxShown = 1000     // bytes of it that an error shows
)

// tail keeps the end of what is written: there a program says why it stopped.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-maxKept):]...)
	if extra := len(t.kept) - maxKept; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

// excerpt is the end of an error: what the program said, without secrets,
// escaped and cut.
func (t *tail) excerpt(secrets [][]byte) string {
	text := t.kept
	for _, s := range secrets {
		for _, form := range encodings(s) {
			text = bytes.ReplaceAll(text, form, []byte("(secret)"))
		}
	}
	said := strings.TrimSpace(string(text))
	if said == "" {
		return ""
	}
	return "; it said: " + escape(cutTo(said, maxShown))
}

// cutTo keeps the end of text.
func cutTo(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-limit:]
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return "…" + text
}

// escape shows what could move the cursor, hide text or fake a line.
func escape(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}
