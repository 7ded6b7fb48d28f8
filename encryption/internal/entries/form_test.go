package entries_test

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
)

// TestForms: what each form takes, of the code and of a variable, whose name the error
// has then.
func TestForms(t *testing.T) {
	t.Parallel()
	const moves, holds, slash = "an empty part between its slashes", "backslashes or control characters", "without a slash"
	for name, c := range map[string]struct {
		text, name, path string // an error as a name and as a path, "" if there is none
	}{
		"a word":          {text: "a b?#%2f%2e"},
		"dots in a word":  {text: "a..b"},
		"three dots":      {text: "..."},
		"empty":           {text: ""},
		"a path":          {"a/b", slash, ""},
		"slashes around":  {"/a/b/", slash, ""},
		"slashes alone":   {"//", slash, moves},
		"two in a row":    {"a//b", slash, moves},
		"a dot":           {".", moves, moves},
		"two dots":        {"..", moves, moves},
		"dots inside":     {"a/../b", slash, moves},
		"dots at the end": {"a/..", slash, moves},
		"dots in front":   {"/../a", slash, moves},
		"a backslash":     {`a\..\b`, holds, holds},
		"a line break":    {"a\nb", holds, holds},
		"a zero":          {"a\x00", holds, holds},
		"not UTF-8":       {"a\xff", holds, holds},
	} {
		for form, want := range map[attr.Form]string{0: "", attr.Name: c.name, attr.Path: c.path} {
			table := attr.Table{Name: "kind", Attrs: []attr.Attr{
				{Name: "part", Type: cty.String, Env: []string{"PART"}, Form: form}, {Name: "other", Type: cty.Bool},
			}}
			of := map[string]attr.LookupEnv{
				"kind.e.part: it ": nil,
				"kind.e.part: the environment variable PART: it ": func(name string) (string, bool) { return c.text, name == "PART" },
			}
			for begins, env := range of {
				attrs := map[string]cty.Value{"other": cty.True}
				if env == nil {
					attrs["part"] = cty.StringVal(c.text)
				}
				_, err := entries.NewEntry("kind.e", table, attrs).Decode(table, env)
				switch {
				case want == "" && err != nil:
					t.Errorf("%s, %d: %v", name, form, err)
				case want != "" && (err == nil || !strings.HasPrefix(err.Error(), begins) || !strings.Contains(err.Error(), want)):
					t.Errorf("%s, %d: got %v, want %q", name, form, err, want)
				}
			}
		}
	}
}

// TestEmptyParts: what must be there is not empty. An empty variable of Terraform sets
// nothing else.
func TestEmptyParts(t *testing.T) {
	t.Parallel()
	for want, part := range map[string]attr.Attr{
		"": {Name: "part", Type: cty.String, Form: attr.Name},
		"e.part: it becomes a part of a URL, and is empty: the key": {
			Name: "part", Type: cty.String, Form: attr.Name, Required: true, Doc: "The key. It is one."},
		"e.part: it becomes a part of a URL, and is empty": {Name: "part", Type: cty.String, Form: attr.Path, Default: cty.StringVal("a")},
	} {
		table := attr.Table{Name: "kind", Attrs: []attr.Attr{part}}
		got := ""
		if _, err := entries.NewEntry("e", table, map[string]cty.Value{"part": cty.StringVal("")}).Decode(table, nil); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestWords: a secret that is sent is one word, wherever in a value, unless it has lines.
func TestWords(t *testing.T) {
	t.Parallel()
	const odd = "a\nb"
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
			if got := err != nil && err.Error() == "e.a: it holds a line break or another control character; remove it"; got != c.refused {
				t.Errorf("%s, %d, %d: %v", name, c.form, c.secrecy, err)
			}
		}
	}
}

// TestVersions: none is empty, in a list as well.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, value := range []cty.Value{cty.StringVal(""), cty.ListVal([]cty.Value{cty.StringVal("1"), cty.StringVal("")})} {
		table := attr.Table{Name: "kind", Attrs: []attr.Attr{{Name: "a", Type: value.Type(), Form: attr.Version}}}
		_, err := entries.NewEntry("e", table, map[string]cty.Value{"a": value}).Decode(table, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "e.a: an empty string chooses no version") {
			t.Errorf("%#v: %v", value, err)
		}
	}
}

// TestDocuments: what is wrong and the content of a file is called that, unless it may be a secret.
func TestDocuments(t *testing.T) {
	t.Parallel()
	const wrong, is = "e.a: a short text is required", "; its value is the content of a file"
	for text, want := range map[string]string{"a\nb\nc\n": wrong + is, "long": wrong, "\n\nb": ""} {
		for secrecy, want := range map[attr.Secrecy]string{attr.Public: want, attr.LocalSecret: strings.TrimSuffix(want, is)} {
			short := attr.Is(func(text string) bool { return len(text) < 4 }, "a short text is required")
			table := attr.Table{Name: "kind", Attrs: []attr.Attr{{Name: "a", Type: cty.String, Secrecy: secrecy, Check: short}}}
			got := ""
			if _, err := entries.NewEntry("e", table, map[string]cty.Value{"a": cty.StringVal(text)}).Decode(table, nil); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%q, %d: got %q, want %q", text, secrecy, got, want)
			}
		}
	}
}
