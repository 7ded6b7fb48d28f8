// Package outside shows what comes from outside: the text of strangers, and why
// a connection failed. Both may have been written to deceive whoever reads
// them, or hold what must not be seen.
package outside

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns s as one line that is safe to show: what could move the cursor,
// hide text or fake a line is escaped, bytes that are not UTF-8 as \xff, other
// characters as \u001b. So is what CI systems take for commands: "::" (GitHub)
// and "##" (Azure DevOps, TeamCity). A string of more than max bytes is cut at
// a rune and ends with "…".
func Line(s string, max int) string {
	cut := ""
	if len(s) > max {
		for max > 0 && !utf8.RuneStart(s[max]) {
			max--
		}
		s, cut = s[:max], "…"
	}
	return strings.ReplaceAll(escape(s, false), "::", `:\u003a`) + cut
}

// Text returns the whole of a message, whose lines are kept. "::" is escaped
// only at the beginning of a line, where it means something: IPv6 addresses
// have it elsewhere.
func Text(s string) string {
	lines := strings.Split(escape(s, true), "\n")
	for i, line := range lines {
		start := len(line) - len(strings.TrimLeft(line, " "))
		if strings.HasPrefix(line[start:], "::") {
			lines[i] = line[:start] + `:\u003a` + line[start+2:]
		}
	}
	return strings.Join(lines, "\n")
}

func escape(s string, lines bool) string {
	if isUnchanged(s, lines) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\n' && lines:
			b.WriteByte('\n')
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '#' && i > 0 && s[i-1] == '#':
			b.WriteString(`\u0023`)
		case r > 0xFFFF && !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isUnchanged(s string, lines bool) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && (c != '\n' || !lines) || c > '~' || c == '#' {
			return false
		}
	}
	return true
}
