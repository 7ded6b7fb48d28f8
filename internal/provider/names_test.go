package provider

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/all"
	storekinds "github.com/statecrypt/terraform-provider-statecrypt/internal/store/all"
)

// getters are the methods of [attr.Values] that panic, or find nothing, unless an
// attribute of such a type has the name.
var getters = map[string]func(attr.Attr) bool{
	"Has":       func(a attr.Attr) bool { return a.Attrs == nil },
	"String":    func(a attr.Attr) bool { return a.Type == cty.String },
	"Bool":      func(a attr.Attr) bool { return a.Type == cty.Bool },
	"Int":       func(a attr.Attr) bool { return a.Type == cty.Number },
	"Strings":   func(a attr.Attr) bool { return a.Type.IsListType() },
	"StringMap": func(a attr.Attr) bool { return a.Type.IsMapType() },
	"Bytes":     func(a attr.Attr) bool { return a.Type.IsListType() },
	"Block":     func(a attr.Attr) bool { return a.Attrs != nil },
	"Variable":  func(attr.Attr) bool { return true },
	"Hands":     func(a attr.Attr) bool { return a.Secrecy != attr.Public || a.Attrs != nil },
}

// TestNamesOfAttributes: whatever the folder of a kind asks its values for is in the
// kind's table, with that type, also on paths that no test takes.
func TestNamesOfAttributes(t *testing.T) {
	t.Parallel()
	names := 0
	for folder, attrs := range attrsByFolder(t) {
		for _, f := range goFiles(t, folder) {
			for _, question := range asked(f) {
				names++
				getter, name := question[0], question[1]
				if name != "" && !slices.ContainsFunc(attrs, func(a attr.Attr) bool { return a.Name == name && getters[getter](a) }) {
					t.Errorf("%s: %s(%q): its table has no such attribute", folder, getter, name)
				}
			}
		}
	}
	if names < 250 {
		t.Errorf("found only %d names", names)
	}
}

// attrsByFolder are the attributes that the values of a folder may be asked for: those
// of its kind, or of all kinds where several share it.
func attrsByFolder(t *testing.T) map[string][]attr.Attr {
	t.Helper()
	found := map[string][]attr.Attr{}
	add := func(parent string, tables ...attr.Table) {
		folder := strings.ReplaceAll(tables[0].Name, "_", "")
		if folder == "http" {
			folder = "httpsource" // net/http has the name
		}
		for _, table := range tables {
			found[parent+folder] = append(found[parent+folder], withBlocks(slices.Concat(table.Attrs, table.Variables))...)
		}
	}
	for _, kind := range all.Kinds() {
		add("internal/source/", kind.Table, kind.Credentials)
	}
	for _, kind := range storekinds.Kinds() { // which share the client of their source
		add("internal/source/", kind.Table)
	}
	registry := builtin.Registry()
	for _, block := range registry.KeyProviders {
		add(parent(t, "keyprovider", block.Name), block.Table)
	}
	for _, block := range registry.Methods {
		add(parent(t, "method", block.Name), block.Table)
	}
	every := slices.Concat(slices.Collect(maps.Values(found))...)
	for _, shared := range []string{"internal/auth", "internal/source/object", "internal/connections/web"} {
		found[shared] = every
	}
	return found
}

// parent is the folder of a kind's folder: kinds that need an SDK are in builtin.
func parent(t *testing.T, what, kind string) string {
	t.Helper()
	for _, top := range []string{"encryption/internal/", "builtin/"} {
		if _, err := os.Stat(filepath.Join("../..", top+what, strings.ReplaceAll(kind, "_", ""))); err == nil {
			return top + what + "/"
		}
	}
	t.Fatalf("there is no folder for %s", kind)
	return ""
}

func withBlocks(attrs []attr.Attr) []attr.Attr {
	found := slices.Clone(attrs)
	for _, a := range attrs {
		found = append(found, withBlocks(a.Attrs)...)
	}
	return found
}

// goFiles are the files below folder that are not for tests.
func goFiles(t *testing.T, folder string) []*ast.File {
	t.Helper()
	var files []*ast.File
	err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasSuffix(d.Name(), "test"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// asked are the getters that f calls with a name that is written there, with the name.
func asked(f *ast.File) (questions [][2]string) {
	imported := map[string]bool{}
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		imported[filepath.Base(path)] = true
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		method, isMethod := call.Fun.(*ast.SelectorExpr)
		literal, isLiteral := call.Args[0].(*ast.BasicLit)
		if !isMethod || !isLiteral || getters[method.Sel.Name] == nil {
			return true
		}
		if _, isResult := method.X.(*ast.CallExpr); isResult {
			return true // such as the query of a URL
		}
		if of, ok := method.X.(*ast.Ident); ok && imported[of.Name] {
			return true // a function of another package
		}
		name, _ := strconv.Unquote(literal.Value)
		questions = append(questions, [2]string{method.Sel.Name, name})
		return true
	})
	return questions
}
