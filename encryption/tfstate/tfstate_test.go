package tfstate

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// golden has the texts of a group of errors, none of which shows what is in a state.
func golden(t *testing.T, group string) *testkit.Golden {
	t.Helper()
	return testkit.OpenGolden(t, "../testdata/mistakes.txt", "states, "+group, "c4n4ry", "canary", "s3cr3t")
}

func TestNotAState(t *testing.T) {
	says := golden(t, "files")
	for _, file := range []string{
		"",
		" \n",
		"c4n4ry",
		"\xef\xbb\xbf{}",
		`{"version":4,"c4n4ry`,
		`{"version":4} c4n4ry`,
		`null`,
		`[4]`,
		`"c4n4ry"`,
		`{"serial":"c4n4ry"}`,
		`{"version":"c4n4ry"}`,
		`{"version":4.5}`,
		`{"version":0}`,
		`{"version":-1}`,
		`{"serial":1,"lineage":"l","meta":{},"encrypted_data":"c4n4ry","encryption_version":"v0"}`,
		`{"version":5}`,
		`{"version":5,"outputs":[],"terraform_version":"2.0"}`,

		`{"version":4,"serial":-1}`,
		`{"version":4,"serial":1234.5}`,
		`{"version":4,"serial":99999999999999999999}`,
		`{"version":4,"lineage":["c4n4ry"]}`,
		`{"version":4,"outputs":"c4n4ry"}`,
		`{"version":4,"outputs":{"a":"c4n4ry"}}`,
		`{"version":4,"outputs":{"a":{"sensitive":"1"}}}`,
		`{"version":3,"modules":{"c4n4ry":1}}`,
		`{"version":1,"modules":[{"path":["root"],"outputs":{"a":["c4n4ry"]}}]}`,
		`{"version":3,"modules":[{"path":["root"],"outputs":{"a":"c4n4ry"}}]}`,

		`{"version":4,"resources":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}",
	} {
		_, err := Parse([]byte(file))
		says.Error(t, fmt.Sprintf("%.80q", file), err)
	}
}

func TestOddButLegal(t *testing.T) {
	for file, want := range map[string]cty.Value{
		// Keys of other formats, and keys of any, mean nothing.
		`{"version":4,"modules":7,"x":[],"outputs":{"a":{"value":"v","type":"string","x":1}}}`:  cty.StringVal("v"),
		`{"version":3,"outputs":7,"modules":[{"path":["root"],"outputs":{"a":{"value":"v"}}}]}`: cty.StringVal("v"),
		// The last of several wins.
		`{"version":4,"outputs":{"a":{"value":1,"type":"number"},"a":{"value":2,"type":"number"}}}`:                                 cty.NumberIntVal(2),
		`{"version":4,"outputs":{"a":{"value":{"k":1,"k":2},"type":["map","number"]}}}`:                                             cty.MapVal(map[string]cty.Value{"k": cty.NumberIntVal(2)}),
		`{"version":3,"modules":[{"path":["root"],"outputs":{"a":{"value":"x"}}},{"path":["root"],"outputs":{"a":{"value":"y"}}}]}`: cty.StringVal("y"),
		// Composed and decomposed letters are one key, and one text.
		`{"version":4,"outputs":{"a":{"value":{"e\u0301":"u\u0308","é":"ü"},"type":["map","string"]}}}`: cty.MapVal(map[string]cty.Value{"é": cty.StringVal("ü")}),
		// What isn't UTF-8 is replaced, as encoding/json does for Terraform.
		"{\"version\":4,\"outputs\":{\"a\":{\"value\":\"\xff\",\"type\":\"string\"}}}": cty.StringVal("\ufffd"),
		// Format 2 reads as format 3.
		`{"version":2,"modules":[{"path":["root"],"outputs":{"a":{"value":["x","y"],"type":"list"}}}]}`: cty.ListVal([]cty.Value{cty.StringVal("x"), cty.StringVal("y")}),
		`{"version":3,"modules":[{"path":["root"],"outputs":{"a":{"value":[["x"],["y"]]}}}]}`: cty.ListVal([]cty.Value{
			cty.ListVal([]cty.Value{cty.StringVal("x")}), cty.ListVal([]cty.Value{cty.StringVal("y")}),
		}),
		`{"version":3,"modules":[{"path":["root"],"outputs":{"a":{"value":null}}}]}`:                                         cty.NullVal(cty.DynamicPseudoType),
		`{"version":3,"modules":[{"path":["root"],"outputs":{"a":{"value":9007199254740993}}}]}`:                             cty.NumberIntVal(9007199254740993),
		`{"version":3,"modules":[{"path":["root","b"],"outputs":{"a":7}},{"path":["root"],"outputs":{"a":{"value":true}}}]}`: cty.True,
	} {
		s, err := Parse([]byte(file))
		if err != nil {
			t.Errorf("%.80s: %v", file, err)
			continue
		}
		if got, err := s.Outputs["a"].Value(); err != nil || !got.RawEquals(want) {
			t.Errorf("%.80s: got %#v, %v", file, got, err)
		}
	}
}

// Terraform reads a member by its name in any case, of which two letters have a third
// one. What it takes for a mark is one.
func TestNamesInAnotherCase(t *testing.T) {
	for _, text := range []string{
		`{"version":4,"outputs":{"a":{"value":"v","type":"string","sensitive":true}}}`,
		`{"version":3,"modules":[{"path":["root"],"outputs":{"a":{"value":"v","sensitive":true}}}]}`,
		`{"version":4,"resources":[{"mode":"managed","type":"t","name":"n","instances":[{"attributes":{"p":"v"},
			"sensitive_attributes":[[{"type":"get_attr","value":"p"}]]}]}]}`,
	} {
		for name, change := range map[string]func(string) string{
			"as they are": strings.Clone, "capitals": strings.ToUpper,
			"long s": func(s string) string { return strings.ReplaceAll(s, "s", "\u017f") },
			"kelvin": func(s string) string { return strings.ReplaceAll(s, "k", "\u212a") },
		} {
			members := regexp.MustCompile(`"\w+":`).ReplaceAllStringFunc(text, func(member string) string {
				if strings.Contains(`"a": "p":`, member) {
					return member
				}
				return change(member)
			})
			s, err := Parse([]byte(members))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if strings.Contains(text, "outputs") {
				if o := s.Outputs["a"]; !o.Sensitive || o.Size() == 0 {
					t.Errorf("%s: %s has %+v", name, members, o)
				}
				continue
			}
			r, err := s.Resource("t.n")
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if open, _, err := r.Values(); err != nil || !open.GetAttr("p").IsNull() {
				t.Errorf("%s: %s: %#v, %v", name, members, open, err)
			}
		}
	}
}

// One output that can't be used is no reason to refuse the others.
func TestValueIsDecodedLazily(t *testing.T) {
	s, err := Parse([]byte(`{"version":4,"outputs":{"good":{"value":"v","type":"string"},"bad":{"value":"v"},"worse":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.Outputs["good"].Value(); err != nil || v != cty.StringVal("v") {
		t.Errorf("got %#v, %v", v, err)
	}
	says := golden(t, "outputs")
	for _, name := range []string{"bad", "worse"} {
		_, err := s.Outputs[name].Value()
		says.Error(t, name, err)
	}
}

func TestNoSuchOutput(t *testing.T) {
	s, err := Parse([]byte(`{"version":4}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Outputs["a"].Value()
	golden(t, "no such output").Error(t, "a", err)
	if values, err := s.Values("a"); err != nil || len(values) != 0 {
		t.Errorf("got %v, %v", values, err)
	}
}

func TestLongAndOddNames(t *testing.T) {
	for _, name := range []string{strings.Repeat("日本", 5000), "a\x1b[31m\nb", "\xff\xfe", strings.Repeat("\xff", 5000), ""} {
		_, err := Output{name: name, shared: new(shared)}.Value()
		if err == nil || len(err.Error()) > 700 || strings.ContainsAny(err.Error(), "\x1b\n") || !utf8.ValidString(err.Error()) {
			t.Errorf("got %v", err)
		}
	}
}

// A large string comes through whole.
func TestBigString(t *testing.T) {
	want := strings.Repeat("0123456789abcde\n", 128<<10)
	s, err := Parse(fmt.Appendf(nil, `{"version":4,"outputs":{"a":{"value":%q,"type":"string"}}}`, want))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Outputs["a"].Value(); err != nil || got.AsString() != want {
		t.Errorf("got %v", err)
	}
}
