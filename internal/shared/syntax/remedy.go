package syntax

import (
	"fmt"
	"strings"
)

// Remedy returns what a reader is to add to the settings, for the end of an error: on
// lines of its own, because HCL takes a block inside another only so, and indented,
// because the CLIs break other lines. Blocks are the names of the blocks from the
// outside in, such as "credentials.git"; the arguments are in the innermost one.
func Remedy(blocks string, arguments ...string) string {
	var b strings.Builder
	line := func(depth int, text string) { fmt.Fprintf(&b, "\n%s%s", strings.Repeat("  ", depth+1), text) }
	names := strings.Split(blocks, ".")
	b.WriteString(":\n")
	for depth, name := range names {
		line(depth, name+" {")
	}
	width := 0
	for _, a := range arguments {
		name, _, _ := strings.Cut(a, " = ")
		width = max(width, len(name))
	}
	for _, a := range arguments {
		name, value, _ := strings.Cut(a, " = ")
		line(len(names), fmt.Sprintf("%-*s = %s", width, name, value))
	}
	for depth := len(names) - 1; depth >= 0; depth-- {
		line(depth, "}")
	}
	return b.String()
}

// EndsInRemedy reports whether a text ends with what [Remedy] returns, so that neither
// a full stop nor a sentence may follow on its last line.
func EndsInRemedy(text string) bool { return strings.HasSuffix(text, "\n  }") }
