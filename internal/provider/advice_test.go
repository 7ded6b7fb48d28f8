package provider

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// imperative is how advice begins.
var imperative = regexp.MustCompile(`[;,:] (?:set|check|grant|enable|add|import|install|restore|leave|configure|remove|use|write|see) `)

// After an error that wraps ErrNoKey, a fallback may open the file: what to do about it is
// an advice of package fault, which nobody is given then.
func TestNoAdviceInReasons(t *testing.T) {
	t.Parallel()
	found := 0
	for _, root := range []string{"../../encryption", "../../builtin"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, reason := range reasonsOfNoKey(t, path) {
				found++
				if imperative.MatchString(reason) {
					t.Errorf("%s: this is advice: %s", path, reason)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 20 {
		t.Errorf("%d reasons were found", found)
	}
}

// reasonsOfNoKey are the formats of errors that wrap ErrNoKey.
func reasonsOfNoKey(t *testing.T, path string) (formats []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		wrapped, ok := call.Args[1].(*ast.SelectorExpr)
		if format, isText := literalOf(call.Args[0]); ok && isText && wrapped.Sel.Name == "ErrNoKey" {
			formats = append(formats, format)
		}
		return true
	})
	return formats
}
