package config_test

import (
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/config"
)

// nested is each way in which HCL nests: what is before the middle, and behind it, again and again.
func nested() map[string][3]string {
	return map[string][3]string{
		"parentheses": {"(", "1", ")"}, "lists": {"[", "1", "]"}, "objects": {"{a=", "1", "}"}, "objects with quoted names": {`{"a"=`, "1", "}"},
		"names of objects": {"{(", "1", ") = 1}"},
		"calls":            {"f(", "1", ")"}, "indices": {"a[", "0", "]"}, "indices behind": {"", "a", "[0]"}, "indices behind a call": {"", "f()", `["x"]`},
		"members": {"", "f()", ".a"}, "splats": {"", "a", "[*]"}, "splats of members": {"", "a", "[*].b"},
		"attribute splats": {"", "a", ".*"}, "templates": {`"${`, "1", `}"`}, "templates with text": {`"x${`, "1", `}y"`},
		"not": {"!", "true", ""}, "minus": {"-", "1", ""}, "conditionals": {"a ? b : ", "c", ""}, "conditions": {"", "a", " ? b : c"},
		"conditionals in the middle": {"a ? ", "b", " : c"}, "sums": {"", "1", " + 1"}, "sums of products": {"1 * 1 + ", "1", ""},
		"comparisons": {"", "1", " == 1"}, "and": {"", "a", " && a"}, "or": {"", "a", " || a"}, "for": {"[for x in ", "a", " : x]"},
		"for in objects": {"{for k, v in ", "a", " : k => v}"}, "conditions of for": {"[for x in a : x if ", "a", "]"},
		"if":          {`"%{ if a }`, "x", `%{ endif }"`},
		"differences": {"", "1", "\n - 1"},
	}
}

// inside are those that nest in a template, or in the body of a file.
func inside() map[string][3]string {
	return map[string][3]string{
		"directives": {"%{ if a }", "x", "%{ endif }"}, "else": {"%{ if a }x%{ else }", "x", "%{ endif }"},
		"for in templates": {"%{ for x in a }", "x", "%{ endfor }"}, "interpolations": {`${"`, "x", `"}`},
	}
}

func text(part [3]string, levels int) string {
	return strings.Repeat(part[0], levels) + part[1] + strings.Repeat(part[2], levels)
}

// TestLevels: what nests without end is refused, in each way in which it can, and what nests as deep as
// it may is parsed, walked through and evaluated on a small stack.
//
// Promise: Repositories of others
// Promise: Cost
func TestLevels(t *testing.T) {
	const child = "STATECRYPT_TEST_LEVELS"
	if testing.Short() {
		t.Skip("a process of its own takes a while")
	}
	if os.Getenv(child) == "" { // a process ends when its stack does
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLevels$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%.4000s", err, out)
		}
		return
	}
	const many = 30_000 // of which each would take more than a kilobyte
	debug.SetMaxStack(32 << 20)
	for _, count := range []int{100, 450, many} {
		check := func(name string, err error, walk func()) {
			t.Helper()
			t.Logf("%s, %d times", name, count)
			if refused := err != nil; refused != (count == many) && !(refused && count == 450) {
				t.Errorf("%s, %d times: got %v", name, count, err)
			}
			if err == nil {
				walk()
			}
		}
		evaluate := func(expr hcl.Expression) {
			_ = expr.Variables()
			_, _ = expr.Value(&hcl.EvalContext{})
		}
		for name, part := range nested() {
			one := text(part, count)
			check(name, config.ExpectExpression([]byte(one)), func() {
				if expr, _ := hclsyntax.ParseExpression([]byte(one), "", hcl.InitialPos); expr != nil {
					evaluate(expr)
				}
			})
			file := "a {\n  x = [1, (" + one + ")]\n}\n"
			check(name+", in a file", config.ExpectConfig([]byte(file)), func() {
				_, _ = hclsyntax.ParseConfig([]byte(file), "", hcl.InitialPos)
			})
		}
		for name, part := range inside() {
			one := text(part, count)
			check(name, config.ExpectTemplate([]byte(one)), func() {
				if expr, _ := hclsyntax.ParseTemplate([]byte(one), "", hcl.InitialPos); expr != nil {
					evaluate(expr)
				}
			})
			document := "a = <<EOT\n" + one + "\nEOT\n"
			check(name+", in a document", config.ExpectConfig([]byte(document)), func() {
				_, _ = hclsyntax.ParseConfig([]byte(document), "", hcl.InitialPos)
			})
			quoted := `{"a": "` + strings.ReplaceAll(one, `"`, `\"`) + `"}`
			check(name+", in JSON", config.ExpectJSON([]byte(quoted)), func() { _, _ = json.Parse([]byte(quoted), "") })
		}
		for name, part := range map[string][3]string{
			"lists": {"[", "1", "]"}, "objects": {`{"a":`, "1", "}"}, "lists that stay open": {"[", "", ""}, "objects that stay open": {`{"a":`, "", ""},
			"lists behind what is none": {`["]",`, "1", "}]"}, "strings that end with their line": {"[\"]]]\n,", "", ""},
		} {
			one := text(part, count)
			check(name+" of JSON", config.ExpectJSON([]byte(one)), func() { _, _ = json.Parse([]byte(one), "") })
		}
		for name, part := range map[string][3]string{
			"blocks": {"a {\n", "", "\n}"}, "blocks that stay open": {"a {\n", "", ""}, "blocks with labels": {"a \"b\" {\n", "", "\n}"},
			"parentheses that stay open": {"a = (((\n", "", ""}, "quotes that stay open": {`a = "${`, "", ""},
			"what does not fit": {"a = [(])\n", "", ""},
		} {
			one := text(part, count)
			check(name, config.ExpectConfig([]byte(one)), func() { _, _ = hclsyntax.ParseConfig([]byte(one), "", hcl.InitialPos) })
		}
	}
}

// TestFlat: what is long and does not nest is not refused.
func TestFlat(t *testing.T) {
	t.Parallel()
	const many = 5000
	for name, part := range map[string][2]string{
		"attributes": {"", "a = b.c + -d[0] || !e\n"}, "blocks": {"", "a \"b\" {\n  c = [[1], {d = 1}]\n}\n"},
		"elements": {"a = [", "[a.b], (1 + 1), {c = \"${d}\"}, "}, "members of an object": {"a = {", "\nb = c.d[0] + 1"},
		"interpolations": {"a = <<EOT\n", "${b.c} %{ if d }x%{ endif } "}, "in quotes": {`a = "`, "${b} %{ for c in d }${c}%{ endfor }"},
		"arguments": {"a = f(", `"x", y[0], `},
	} {
		text := part[0] + strings.Repeat(part[1], many)
		if err := config.ExpectConfig([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	object := `{"a": [` + strings.Repeat(`{"b": ["[[[[", "]}", "${c[0]}", {}]}, `, many) + `{}]}`
	if err := config.ExpectJSON([]byte(object)); err != nil {
		t.Error(err)
	}
}
