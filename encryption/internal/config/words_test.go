package config

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
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
	says := testkit.OpenGolden(t, "../../testdata/mistakes.txt", "config, syntax", "c4n4ry", "C4N4RY")
	for _, text := range []string{
		begin + `"c4n4ry"horse"` + "\n}",
		begin + `"c4n4ry${horse"` + "\n}",
		begin + `"c4n4ry%{horse}"` + "\n}",
		begin + `"${{ secrets.C4N4RY }}"` + "\n}",
		begin + `"c4n4ry` + "\n}",
		begin + `trimspace(file("c4n4ry")` + "\n}",
		begin + "file(~/c4n4ry)\n}",
		begin + "/c4n4ry\n}",
		begin + "c4n4ry/base64==\n}",
		begin + "\n}",
		begin + "c4n4ry horse\n}",
		begin + `"c:\c4n4ry"` + "\n}",
		begin + "<<EOT\nc4n4ry\n}",
		begin + "`c4n4ry`\n}",
		begin + `["c4n4ry"` + "\n}",
		begin + `{ a = "c4n4ry"` + "\n}",
		"```hcl\n" + begin + "\"c4n4ry\"\n}\n```",
		"/* c4n4ry\n" + begin + "\"c4n4ry\"\n}",
		begin + "\"c4n4ry\"\n  passphrase = 1\n}",
		"state {\n method = method.a.b\n method = method.a.c\n}",
		"state = {\n method = method.a.b\n",
		begin + "\"c4n4ry\"\n",
		`key_provider "pbkdf2" k-1 = {` + "\n}",
		begin + "(\"c4n4ry\"\n}", begin + "var.\n}", begin + "var.c4n4ry ? 1\n}", begin + "var.a.*.b.*.c\n}",
		begin + "1c4n4ry\n}", begin + "{ a }\n}", begin + "{ a = }\n}", begin + "{ a = 1 b = 2 }\n}",
		begin + "[for]\n}", begin + "[for x in]\n}", begin + "\"c4n4ry\",\n}", begin + "var.a[\n}", begin + "var[]\n}",
		begin + "\"\xff\"\n}", begin + "“c4n4ry”\n}", begin + "\"c4n4ry\"\n}}", begin + "max(\"c4n4ry\"\n}",
		"state\n{\n}", "state {} plan {}",
		"key_provider \"pbkdf2\" \"k\" {\n  passphrase \"c4n4ry\"\n}", "key_provider.pbkdf2.k {\n}",
		"\"state\" = 1", "state { fallback {} }", "state 1 {}", "%{ if c4n4ry }",
		`{"state": {}} c4n4ry`, `{"state": }`, `{"state": [,]}`, `{"state": {]`, `{c4n4ry`, `{"a": ["b": 1]}`, `{"a": 1c4n4ry}`, "{\"a\": \"c4n4ry\n\"}",
		`{"a": 1, "a": 2}`, `{"state": {"method": "a"}`, `{"state" 1}`,
		"{\"c4n4ry\": 1,}",
		"{\n// c4n4ry\n\"state\": {}}",
		"{state: {}}",
		`{"state" {}}`,
		`{"state": c4n4ry}`,
		`{"state": {} "plan": {}}`,
		`{"key_provider":{"type":"pbkdf2","name":"k"}}`,
	} {
		_, err := Parse(text, "text", Options{})
		says.Error(t, fmt.Sprintf("%q", text), err)
	}
}
