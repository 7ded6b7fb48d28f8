package config

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
)

// TestWordsOfHCL: there is a word for each mistake in syntax that package hcl knows, and
// each word is for one.
func TestWordsOfHCL(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/hashicorp/hcl/v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, file := range []string{"hclsyntax/parser.go", "hclsyntax/parser_template.go", "hclsyntax/parser_traversal.go", "hclsyntax/token.go",
		"hclsyntax/public.go", "json/parser.go", "json/structure.go"} {
		for _, d := range diagnosticsIn(t, filepath.Join(strings.TrimSpace(string(out)), file)) {
			switch d.Summary {
			case "", "Missing required argument", "Extraneous JSON object property", "Invalid object key expression": // no syntax
				continue
			}
			text, found := wordFor(&d)
			if !found {
				t.Errorf("%s: nothing is said of %q, %q", file, d.Summary, d.Detail)
			}
			used[text] = true
		}
	}
	for _, w := range words() {
		if !used[w.text] && !strings.Contains(w.detail, `"method"`) && !strings.HasSuffix(w.summary, "after argument") { // in a variable there
			t.Errorf("%q is for nothing", w.text)
		}
	}
}

// diagnosticsIn are the errors that a file of Go makes, as far as their texts are constant.
func diagnosticsIn(t *testing.T, path string) (all []hcl.Diagnostic) {
	t.Helper()
	file, err := goparser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		var d hcl.Diagnostic
		for _, element := range literal.Elts {
			pair, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch key, _ := pair.Key.(*ast.Ident); {
			case key == nil:
			case key.Name == "Summary":
				d.Summary = beginOf(pair.Value)
			case key.Name == "Detail":
				d.Detail = beginOf(pair.Value)
			}
		}
		all = append(all, d)
		return true
	})
	if len(all) == 0 {
		t.Errorf("%s: no errors were found", path)
	}
	return all
}

// beginOf is a constant text, or the begin of one that is formatted.
func beginOf(e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) > 0 {
		begin, _, _ := strings.Cut(beginOf(call.Args[0]), "%")
		return begin
	}
	if sum, ok := e.(*ast.BinaryExpr); ok {
		return beginOf(sum.X)
	}
	literal, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}

// TestMistakesInSyntax: where a mistake is, and what to write in its place.
func TestMistakesInSyntax(t *testing.T) {
	t.Parallel()
	const begin = "key_provider \"pbkdf2\" \"k\" {\n  passphrase = "
	for text, want := range map[string]string{
		begin + `"c4n4ry"horse"` + "\n}":           `text:2,30: a text begins on this line, and has no closing quotation mark (") there; add it; a quotation mark inside a text is written \"`,
		begin + `"c4n4ry${horse"` + "\n}":          `text:2,`,
		begin + `"c4n4ry%{horse}"` + "\n}":         "%{ begins a directive, and what follows is none; for the two characters themselves, write %%{",
		begin + `"${{ secrets.C4N4RY }}"` + "\n}":  "${{ secrets.NAME }} is an expression of a pipeline",
		begin + `"c4n4ry` + "\n}":                  `has no closing quotation mark (") there`,
		begin + `trimspace(file("c4n4ry")` + "\n}": "text:2,16: the ( of a function is not closed",
		begin + "file(~/c4n4ry)\n}":                `this operator is not known; text, such as a path, is between double quotes (")`,
		begin + "/c4n4ry\n}":                       `this is no value; text, such as a path, is between double quotes (")`,
		begin + "c4n4ry/base64==\n}":               "text:2,",
		begin + "\n}":                              "text:2,16: there is no value behind the =",
		begin + "c4n4ry horse\n}":                  `text:2,`,
		begin + `"c:\c4n4ry"` + "\n}":              `a backslash in a text is written \\`,
		begin + "<<EOT\nc4n4ry\n}":                 "a here document is not closed",
		begin + "`c4n4ry`\n}":                      "a backtick (`) is not used here",
		begin + `["c4n4ry"` + "\n}":                "a [ is not closed",
		begin + `{ a = "c4n4ry"` + "\n}":           "text:",
		"```hcl\n" + begin + "\"c4n4ry\"\n}\n```":  "text:1,1: the lines with ``` are marks of Markdown; remove them",
		"/* c4n4ry\n" + begin + "\"c4n4ry\"\n}":    "text:1,1: a comment begins with /* here, and has no */ that ends it; add it",
		begin + "\"c4n4ry\"\n  passphrase = 1\n}":  "text:3,3: this argument is set twice",
		"state {\n method = method.a.b\n method = method.a.c\n}": "text:3,2: method is set twice; another one that reads belongs in a " +
			"block of its own: fallback { method = method.aes_gcm.old }",
		"state = {\n method = method.a.b\n":             "text:3,1: a value is required here",
		begin + "\"c4n4ry\"\n":                          "text:1,27: the block that begins here is not closed; add the } that ends it",
		`key_provider "pbkdf2" k-1 = {` + "\n}":         "text:1,",
		"{\"c4n4ry\": 1,}":                              "the last element has no comma behind it",
		"{\n// c4n4ry\n\"state\": {}}":                  "text:2,1: JSON has no comments; remove this one",
		"{state: {}}":                                   `names and texts are in double quotes (") in JSON`,
		`{"state" {}}`:                                  "a colon is required between a name and its value",
		`{"state": c4n4ry}`:                             "only true, false, null and numbers are not",
		`{"state": {} "plan": {}}`:                      "a comma is missing between two elements",
		`{"key_provider":{"type":"pbkdf2","name":"k"}}`: jsonLabels,
	} {
		_, err := Parse(text, "text", Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(strings.ToLower(err.Error()), "c4n4ry") {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "no value behind") != strings.HasPrefix(text, begin+"\n") {
			t.Errorf("%s\n got %v", text, err)
		}
	}
}
