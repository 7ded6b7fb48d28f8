package outside

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain, äöü 日本 🙂 \\n": "plain, äöü 日本 🙂 \\n",
		"\x1b[31mred\x7f":     `\u001b[31mred\u007f`,
		"a\rb\tc\x00\nd":      `a\u000db\tc\u0000\nd`,
		"right\u202eleft":     `right\u202eleft`,
		"a\u2028b\u00a0c":     `a\u2028b\u00a0c`,
		"tag \U000e0001":      `tag \U000e0001`,
		"\xff\xc3(":           `\xff\xc3(`,
		"\uFFFD":              "\uFFFD",

		"##vso[task.setvariable variable=x]y": `#\u0023vso[task.setvariable variable=x]y`,
		"a###[group]":                         `a#\u0023\u0023[group]`,
		"::error::x ::y":                      `:\u003aerror::x :\u003ay`,
		"https://[::1]:80":                    `https://[::1]:80`,
	} {
		got := Line(in, 100)
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if again := Line(got, 1000); again != got {
			t.Errorf("%q: got %q when it was escaped again", in, again)
		}
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"\x1bé::b":    `\u001bé:\u003ab`,
		":::::":       `:\u003a:\u003a:`,
		"[::1] ::1":   `[:\u003a1] :\u003a1`,
		"0123456789é": "0123456789…",
	} {
		got := Value(in, 11)
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if again := Value(got, 1000); again != got {
			t.Errorf("%q: got %q when it was escaped again", in, again)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\nlines, äöü 日本":      "plain\nlines, äöü 日本",
		"\x1b[31mred\r\n\u202ered":  "\\u001b[31mred\\u000d\n\\u202ered",
		"a\tb\xff":                  `a\tb\xff`,
		"https://[::1]:80/ fe80::1": "https://[::1]:80/ fe80::1",
		"::error::x":                `:\u003aerror::x`,
		"x\n  ::error::x":           "x\n  :\\u003aerror::x",
		"it wraps ::error::x":       `it wraps :\u003aerror::x`,
		"x\u2003::error::x":         `x\u2003::error::x`,
		"in a line ##[error]x":      `in a line #\u0023[error]x`,
	} {
		got := Text(in)
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if again := Text(got); again != got {
			t.Errorf("%q: got %q when it was escaped again", in, again)
		}
	}
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":            `""`,
		`say "hi" \ `: `"say \"hi\" \\ "`,
		"a\x1b\nb":    `"a\u001b\nb"`,
		"x ::error::": `"x :\u003aerror::"`,
		"0123456789é": `"0123456789…"`,
	} {
		if got := Quoted(in, 11); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in        string
		max       int
		line, end string
	}{
		{in: "", max: 3, line: "", end: ""},
		{in: "abc", max: 3, line: "abc", end: "abc"},
		{in: "abcd", max: 3, line: "abc…", end: "…bcd"},
		{in: "aéé", max: 4, line: "aé…", end: "…éé"},
		{in: "日本日", max: 4, line: "日…", end: "…日"},
		{in: "🙂🙂", max: 7, line: "🙂…", end: "…🙂"},
		{in: "🙂", max: 2, line: "…", end: "…"},
		{in: "\xff\xff\xff", max: 2, line: `\xff\xff…`, end: `…\xff\xff`},
		{in: strings.Repeat("\x80", 9), max: 7, line: `\x80\x80\x80…`, end: `…\x80\x80\x80\x80`},
		{in: "\n\x1b\n", max: 2, line: `\n\u001b…`, end: `\u001b`},
	} {
		if got := Line(c.in, c.max); got != c.line {
			t.Errorf("the beginning of %q: got %q, want %q", c.in, got, c.line)
		}
		if got := End(c.in, c.max); got != c.end {
			t.Errorf("the end of %q: got %q, want %q", c.in, got, c.end)
		}
	}
}

// Whatever comes from outside, what is shown of it is short and plain.
//
// Promise: Text from outside
func FuzzShown(f *testing.F) {
	for _, s := range []string{"", "a\n ::error::\x1b##[", strings.Repeat("é", 40), "\xff\u202e::::####", strings.Repeat("\x80", 70)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		const most = 60
		shown := map[string]string{"Line": Line(s, most), "Value": Value(s, most), "Quoted": Quoted(s, most), "End": End(s, most),
			"Text": Text(s)}
		for name, got := range shown {
			plain := strings.ReplaceAll(got, "\n", "")
			if strings.ContainsFunc(plain, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(got) ||
				strings.Contains(got, "##") {
				t.Errorf("%s: %q", name, got)
			}
			for _, word := range strings.Fields(got) {
				if strings.HasPrefix(word, "::") {
					t.Errorf("%s: a word begins with a command: %q", name, got)
				}
			}
			if name != "Text" && (plain != got || len(got) > 10*most) {
				t.Errorf("%s: %q", name, got)
			}
		}
	})
}

func TestJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":"äöü \u001b 🙂"}`:                      `{"a":"äöü \u001b 🙂"}`,
		"{\"a\":\"##x \u009b \U000e0001\",\"b\":1}": `{"a":"#\u0023x \u009b \udb40\udc01","b":1}`,
	} {
		got := JSON(in)
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		var was, is any
		if err := errors.Join(json.Unmarshal([]byte(in), &was), json.Unmarshal([]byte(got), &is)); err != nil || !reflect.DeepEqual(was, is) {
			t.Errorf("%q: %v became %v, %v", in, was, is, err)
		}
	}
}
