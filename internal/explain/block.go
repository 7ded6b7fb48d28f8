package explain

import (
	"fmt"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
)

// block is one to add to the settings, at the end of an error: on lines of its own, because
// HCL takes a block inside another only so, and indented, because the CLIs break other
// lines. The arguments are in the innermost one.
func block(b fact.NoBlock) string { return ":\n" + lines(b) }

func lines(block fact.NoBlock) string {
	var b strings.Builder
	line := func(depth int, text string) { fmt.Fprintf(&b, "\n%s%s", strings.Repeat("  ", depth+1), text) }
	names := strings.Split(block.Path, ".")
	for depth, name := range names {
		line(depth, name+" {")
	}
	width := 0
	for _, a := range block.Arguments {
		name, _, _ := strings.Cut(a, " = ")
		width = max(width, len(name))
	}
	for _, a := range block.Arguments {
		name, value, _ := strings.Cut(a, " = ")
		line(len(names), fmt.Sprintf("%-*s = %s", width, name, value))
	}
	for depth := len(names) - 1; depth >= 0; depth-- {
		line(depth, "}")
	}
	return b.String()
}

// endsInBlock reports whether a text ends with a block, so that neither a full stop nor a
// sentence may follow on its last line.
func endsInBlock(text string) bool { return strings.HasSuffix(text, "\n  }") }
