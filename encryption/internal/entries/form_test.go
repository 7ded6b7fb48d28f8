package entries_test

import (
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
)

// TestForms: what each form takes, of the code and of a variable, whose name the error
// has then.
func TestForms(t *testing.T) {
	t.Parallel()
	says := golden(t, "forms")
	for name, c := range map[string]struct {
		text       string
		name, path bool // whether it is wrong as a name and as a path
	}{
		"a word":          {text: "a b?#%2f%2e"},
		"dots in a word":  {text: "a..b"},
		"three dots":      {text: "..."},
		"empty":           {text: ""},
		"a path":          {"a/b", true, false},
		"slashes around":  {"/a/b/", true, false},
		"slashes alone":   {"//", true, true},
		"two in a row":    {"a//b", true, true},
		"a dot":           {".", true, true},
		"two dots":        {"..", true, true},
		"dots inside":     {"a/../b", true, true},
		"dots at the end": {"a/..", true, true},
		"dots in front":   {"/../a", true, true},
		"a backslash":     {`a\..\b`, true, true},
		"a line break":    {"a\nb", true, true},
		"a zero":          {"a\x00", true, true},
		"not UTF-8":       {"a\xff", true, true},
	} {
		for form, wrong := range map[attr.Form]bool{0: false, attr.Name: c.name, attr.Path: c.path} {
			table := attr.Table{Name: "kind", Attrs: []attr.Attr{
				{Name: "part", Type: cty.String, Env: []string{"PART"}, Form: form}, {Name: "other", Type: cty.Bool},
			}}
			of := map[string]attr.LookupEnv{
				"code": nil, "variable": func(name string) (string, bool) { return c.text, name == "PART" },
			}
			for where, env := range of {
				attrs := map[string]cty.Value{"other": cty.True}
				if env == nil {
					attrs["part"] = cty.StringVal(c.text)
				}
				_, err := entries.NewEntry("kind.e", table, attrs).Decode(table, env)
				if wrong {
					says.Error(t, fmt.Sprintf("%s, form %d, %s", name, form, where), err)
				} else if err != nil {
					t.Errorf("%s, %d: %v", name, form, err)
				}
			}
		}
	}
}

// TestEmptyParts: what must be there is not empty. An empty variable of Terraform sets
// nothing else.
func TestEmptyParts(t *testing.T) {
	t.Parallel()
	says := golden(t, "empty parts")
	for name, part := range map[string]attr.Attr{
		"":         {Name: "part", Type: cty.String, Form: attr.Name},
		"required": {Name: "part", Type: cty.String, Form: attr.Name, Required: true, Doc: "The key. It is one."},
		"default":  {Name: "part", Type: cty.String, Form: attr.Path, Default: cty.StringVal("a")},
	} {
		table := attr.Table{Name: "kind", Attrs: []attr.Attr{part}}
		_, err := entries.NewEntry("e", table, map[string]cty.Value{"part": cty.StringVal("")}).Decode(table, nil)
		if name != "" {
			says.Error(t, name, err)
		} else if err != nil {
			t.Error(err)
		}
	}
}

// TestWords: a secret that is sent is one word, wherever in a value, unless it has lines.
func TestWords(t *testing.T) {
	t.Parallel()
	const odd = "a\nb"
	says := golden(t, "words")
	for name, value := range map[string]cty.Value{
		"text": cty.StringVal(odd),
		"list": cty.ListVal([]cty.Value{cty.StringVal("a"), cty.StringVal(odd)}),
		"map":  cty.MapVal(map[string]cty.Value{"a": cty.StringVal(odd)}),
	} {
		for _, c := range []struct {
			form    attr.Form
			secrecy attr.Secrecy
			refused bool
		}{
			{0, attr.Secret, true}, {attr.Token, attr.Secret, true}, {attr.Lines, attr.Secret, false}, {0, attr.LocalSecret, false},
			{0, attr.Public, false},
		} {
			table := attr.Table{Name: "kind", Attrs: []attr.Attr{{Name: "a", Type: value.Type(), Form: c.form, Secrecy: c.secrecy}}}
			_, err := entries.NewEntry("e", table, map[string]cty.Value{"a": value}).Decode(table, nil)
			if c.refused {
				says.Error(t, fmt.Sprintf("%s, form %d", name, c.form), err)
			} else if err != nil {
				t.Errorf("%s, %d, %d: %v", name, c.form, c.secrecy, err)
			}
		}
	}
}

// TestVersions: none is empty, in a list as well.
func TestVersions(t *testing.T) {
	t.Parallel()
	says := golden(t, "versions")
	for name, value := range map[string]cty.Value{
		"text": cty.StringVal(""), "list": cty.ListVal([]cty.Value{cty.StringVal("1"), cty.StringVal("")}),
	} {
		table := attr.Table{Name: "kind", Attrs: []attr.Attr{{Name: "a", Type: value.Type(), Form: attr.Version}}}
		_, err := entries.NewEntry("e", table, map[string]cty.Value{"a": value}).Decode(table, nil)
		says.Error(t, name, err)
	}
}

// TestDocuments: what is wrong and the content of a file is called that, unless it may be a secret.
func TestDocuments(t *testing.T) {
	t.Parallel()
	says := golden(t, "documents")
	short := attr.Is(func(text string) bool { return len(text) < 4 }, "a short text is required")
	for name, text := range map[string]string{"lines": "a\nb\nc\n", "one line": "long", "": "\n\nb"} {
		for of, secrecy := range map[string]attr.Secrecy{"public": attr.Public, "secret": attr.LocalSecret} {
			table := attr.Table{Name: "kind", Attrs: []attr.Attr{{Name: "a", Type: cty.String, Secrecy: secrecy, Check: short}}}
			_, err := entries.NewEntry("e", table, map[string]cty.Value{"a": cty.StringVal(text)}).Decode(table, nil)
			if name != "" {
				says.Error(t, name+", "+of, err)
			} else if err != nil {
				t.Errorf("%q, %s: %v", text, of, err)
			}
		}
	}
}
