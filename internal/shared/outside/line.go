// Package outside shows text that strangers wrote, perhaps to deceive the reader.
//
// It escapes characters that move the cursor, hide text or fake a line: bytes that are not UTF-8
// as \xff, other characters as \u001b. It also escapes the commands that CI systems look for in
// the output of a program: "##" (Azure DevOps, TeamCity), and "::" (GitHub) at the beginning of a
// word, where a CLI may break a line. IPv6 addresses have "::" elsewhere. And it escapes the
// placeholders that package fault fills. Escaping a text again does not change it.
package outside

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns s as one line. A string of more than max bytes is cut at a rune
// and ends with "…".
func Line(s string, max int) string {
	kept, mark := cut(s, max)
	return escape(kept, false) + mark
}

// Value works like [Line], and escapes every "::", because the value of an attribute may appear
// anywhere in a text.
func Value(s string, max int) string {
	return strings.ReplaceAll(Line(s, max), "::", `:\u003a`)
}

// Quoted works like [Line], and returns the text in double quotes, as Go writes strings.
func Quoted(s string, max int) string {
	kept, mark := cut(s, max)
	return `"` + escape(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(kept), false) + mark + `"`
}

// End works like [Line], for the output of a program, without white space around it. It keeps the
// end, where programs tell why they stopped, and begins with "…" if s is cut.
func End(s string, max int) string {
	s = strings.TrimSpace(s)
	if len(s) <= max {
		return escape(s, false)
	}
	s = s[len(s)-max:]
	for n := 0; n < utf8.UTFMax-1 && s != "" && !utf8.RuneStart(s[0]); n++ {
		s = s[1:]
	}
	return "…" + escape(s, false)
}

// Text returns the whole of a message, whose lines are kept.
func Text(s string) string { return escape(s, true) }

// JSON escapes the strings of a JSON text with the escapes of JSON, so that a program reads the
// original strings.
func JSON(text string) string {
	var b strings.Builder
	for i, r := range text {
		if unicode.IsPrint(r) && !strings.HasSuffix(text[:i+1], "##") {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			writeEscape(&b, rune(unit))
		}
	}
	return b.String()
}

// cut returns at most max bytes of s, and "…" if it cut any off.
func cut(s string, max int) (kept, mark string) {
	if len(s) <= max {
		return s, ""
	}
	end := max
	for end > 0 && end > max-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end], "…"
}

func escape(s string, keepLines bool) string {
	var b strings.Builder
	b.Grow(len(s))
	for i, r := range s {
		switch {
		case r == '\n' && !keepLines:
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case isCommand(s[:i+1]), isPlaceholder(s[i:]), r != '\n' && !unicode.IsPrint(r):
			writeEscape(&b, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func writeEscape(b *strings.Builder, r rune) {
	if r > 0xFFFF {
		fmt.Fprintf(b, `\U%08x`, r)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}

// isCommand reports whether s ends with a command of CI systems.
func isCommand(s string) bool {
	before, colons := strings.CutSuffix(s, "::")
	return strings.HasSuffix(s, "##") || colons && (before == "" || strings.HasSuffix(before, " ") || strings.HasSuffix(before, "\n"))
}

// isPlaceholder reports whether s begins with a placeholder of the package fault.
func isPlaceholder(s string) bool {
	return strings.HasPrefix(s, "{credentials}") || strings.HasPrefix(s, "{settings}")
}

// Limit returns body limited to its first max bytes, for clients that read answers to their end.
func Limit(body io.ReadCloser, max int64) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, max), body}
}
