// Package outside escapes untrusted text, which may be meant to deceive the reader.
//
// It escapes characters that move the cursor, hide text or fake a line: invalid UTF-8 bytes as \xff, other
// characters as \u001b. It also escapes the commands that CI systems look for in a program's output: "##"
// (Azure DevOps, TeamCity) anywhere, and "::" (GitHub) at the start of a word, where a CLI may break the
// line. Elsewhere, "::" may be part of an IPv6 address. It also escapes the placeholders that package fault
// fills in. Escaping a text twice gives the same result as escaping it once.
package outside

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line escapes s and returns it as a single line. If s is longer than max bytes, it is cut at a rune boundary
// and ends with "…".
func Line(s string, max int) string {
	kept, mark := cut(s, max)
	return escape(kept, false) + mark
}

// Value works like [Line], but escapes every "::", because an attribute's value may appear anywhere in a
// text.
func Value(s string, max int) string {
	return strings.ReplaceAll(Line(s, max), "::", `:\u003a`)
}

// Quoted works like [Line], but returns the text in double quotes, as a Go string.
func Quoted(s string, max int) string {
	kept, mark := cut(s, max)
	return `"` + escape(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(kept), false) + mark + `"`
}

// End works like [Line], for a program's output. It trims white space and keeps the end, where programs say
// why they stopped. If s is cut, the result begins with "…".
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

// Text escapes s but keeps its line breaks.
func Text(s string) string { return escape(s, true) }

// JSON escapes the strings in a JSON text with JSON escape sequences, so that a program still reads the
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

// cut returns at most max bytes of s. The mark is "…" if s was cut, otherwise empty.
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

// isCommand reports whether s ends with a CI system command.
func isCommand(s string) bool {
	before, colons := strings.CutSuffix(s, "::")
	return strings.HasSuffix(s, "##") || colons && (before == "" || strings.HasSuffix(before, " ") || strings.HasSuffix(before, "\n"))
}

// isPlaceholder reports whether s begins with a placeholder of package fault.
func isPlaceholder(s string) bool {
	return strings.HasPrefix(s, "{credentials}") || strings.HasPrefix(s, "{settings}") || strings.HasPrefix(s, "{config}")
}

// Limit returns body limited to its first max bytes, for clients that read the whole response body.
func Limit(body io.ReadCloser, max int64) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, max), body}
}
