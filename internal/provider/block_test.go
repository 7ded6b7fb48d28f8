package provider

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

func TestBlock(t *testing.T) {
	t.Parallel()
	const want = ":\n\n  credentials {\n    git {\n      url      = \"https://example.com/\"\n      username = var.user\n    }\n  }"
	got := inLines(fault.NoBlock{Path: "credentials.git", Arguments: []string{`url = "https://example.com/"`, "username = var.user"}})
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if _, problems := hclsyntax.ParseConfig([]byte(strings.TrimPrefix(got, ":")), "", hcl.InitialPos); problems.HasErrors() {
		t.Error(problems)
	}
	for text, want := range map[string]string{got: got, got + " here": got + " here.", `state { method = "m" }`: `state { method = "m" }.`} {
		if said := sentence("add it" + text); said != "Add it"+want {
			t.Errorf("got %s", said)
		}
	}
}

// What no reader could paste: a block inside another on one line, and a gap to be filled
// inside braces.
var notHCL = regexp.MustCompile(`[a-z_"] \{ [^{}]*[a-z_"s] \{|\{[^{}]*…[^{}]*\}`)

// No text in the code shows a block that HCL refuses. The blocks that are printed are
// parsed by TestMistakes.
func TestBlocksInTheCode(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"..", "../../encryption", "../../builtin", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, text := range literals(t, path) {
				if notHCL.MatchString(text) {
					t.Errorf("%s: this is no HCL, see block: %s", path, text)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{`add http { url = "x" … }`, "add credentials { git { url = %q } }", "method { %s { … } }"} {
		if !notHCL.MatchString(text) {
			t.Errorf("%s passes", text)
		}
	}
}

// literals are the texts in a file; those that are joined by + are one.
func literals(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, ok := literalOf(e)
		if ok {
			out = append(out, text)
		}
		return !ok
	})
	return out
}

// literalOf is the text of an expression that has one; parts that are no text are left out.
func literalOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		x, okX := literalOf(e.X)
		y, okY := literalOf(e.Y)
		return x + y, e.Op == token.ADD && okX && okY
	}
	return "", false
}
