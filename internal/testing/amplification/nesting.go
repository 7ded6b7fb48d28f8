package amplification

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// Depth is the name of a nesting production. Each such production is also tested a million levels deep, regardless of
// its Most.
const Depth = "depth"

const (
	levels      = 1_000_000
	stack       = 64 << 20 // in bytes; a process crashes when its stack overflows
	nestsAnyway = "STATECRYPT_NESTING"
)

// nestsApart runs the test in a separate process, and reports whether this is that process. There, files are nested
// deeply instead of growing, and their cost is not measured.
func nestsApart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(nestsAnyway) != "" {
		debug.SetMaxStack(stack)
		return true
	}
	if testing.Short() {
		return false
	}
	var name []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		name = append(name, "^"+regexp.QuoteMeta(part)+"$")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run="+strings.Join(name, "/")) //nolint:gosec // this test binary
	cmd.Env = append(os.Environ(), nestsAnyway+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		text, trace, _ := strings.Cut(string(out), "fatal error: ")
		t.Errorf("what nests a million times ends the process: %v\n%s\n%.3000s", err, text[max(0, len(text)-1000):], trace)
	}
	return false
}

// nest reads deeply nested files. The nesting is in each production called depth, and in place of each value in JSON
// files, or of a tenth of these values. Read errors are fine.
func nest(t *testing.T, grammars []Grammar, read func(file string) Cost) {
	t.Helper()
	for _, g := range grammars {
		for _, p := range g.Productions {
			if p.Name == Depth {
				n := g.least()
				n[Depth] = levels
				file := g.File(n)
				t.Logf("%s: %d bytes", g.Name, len(file))
				read(file)
			}
		}
		at := everywhere(g.File(g.least()))
		every := max(1, len(at)/max(1, testkit.Rounds(len(at))))
		for i := 0; i < len(at); i += every {
			for _, value := range []string{nested(levels, "[", "1", "]"), nested(levels, `{"a":`, "1", "}")} {
				t.Logf("%s, place %d", g.Name, i)
				read(at[i](value))
			}
		}
	}
}

// everywhere returns one function per value in a JSON text. Each function returns the text with another value in that
// place.
func everywhere(text string) (all []func(value string) string) {
	var whole any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if !strings.HasPrefix(text, "{") || d.Decode(&whole) != nil {
		return nil
	}
	var walk func(value any, around func(value string) string)
	walk = func(value any, around func(value string) string) {
		all = append(all, around)
		switch v := value.(type) {
		case map[string]any:
			for name, member := range v {
				walk(member, func(value string) string {
					changed := maps.Clone(v)
					changed[name] = hole
					return around(strings.Replace(write(changed, 1, 0, "", ""), quotedHole, value, 1))
				})
			}
		case []any:
			for i, element := range v {
				walk(element, func(value string) string {
					changed := slices.Clone(v)
					changed[i] = hole
					return around(strings.Replace(write(changed, 1, 0, "", ""), quotedHole, value, 1))
				})
			}
		}
	}
	walk(whole, func(value string) string { return value })
	return all
}

// hole is the placeholder for a value that is inserted later.
const (
	hole       = "a value that is to come"
	quotedHole = `"` + hole + `"`
)
