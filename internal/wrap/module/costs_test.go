package module

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// A module may come from a repository of others.
//
// Promise: Repositories of others
// Promise: Cost
func TestCosts(t *testing.T) {
	type nesting struct{ before, inside, after string }
	file := func(name, begin string, by nesting, end string) amplification.Grammar {
		return amplification.Grammar{Name: name, Productions: []amplification.Production{{Name: "depth", Most: 900}, {Name: "lines"}},
			File: func(n amplification.Counts) string {
				inside := strings.Repeat(by.before, n["depth"]) + by.inside + strings.Repeat(by.after, n["depth"])
				return begin + inside + end + strings.Repeat("\n", n["lines"])
			}}
	}
	native := func(name string, by nesting) amplification.Grammar {
		return file(name, "terraform {\nbackend \"local\" {\npath = ", by, "\n}\n}\n")
	}
	grammars := []amplification.Grammar{
		native("parentheses", nesting{"(", "1", ")"}), native("templates", nesting{`"${`, "1", `}"`}), native("sums", nesting{"", "1", " + 1"}),
		file("blocks", "", nesting{"a {\n", "", "\n}"}, ""), file("JSON", `{"terraform":`, nesting{"[", "", "]"}, "}"),
		file("templates in JSON", `{"terraform":{"backend":{"local":{"path":"`, nesting{"${(", "1", ")}"}, `"}}}}`),
	}
	amplification.Grow(t, 2000, grammars, func(t *testing.T, file string) func() error {
		name := "main.tf"
		if strings.HasPrefix(file, "{") {
			name = "main.tf.json"
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		return func() error {
			m := &Module{Dir: dir, sources: []string{name}} // each reads the file anew
			m.LocalFile()
			return m.CheckBackend()
		}
	})
}
