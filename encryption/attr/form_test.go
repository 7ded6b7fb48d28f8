package attr_test

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func TestSecrecy(t *testing.T) {
	t.Parallel()
	for secrecy, want := range map[attr.Secrecy]string{
		attr.Public: "", attr.NamesSecret: "sent", attr.Secret: "hidden sent", attr.NamesLocalSecret: "", attr.LocalSecret: "hidden",
	} {
		var got []string
		if secrecy.IsHidden() {
			got = append(got, "hidden")
		}
		if secrecy.IsSent() {
			got = append(got, "sent")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d: got %q, want %q", secrecy, got, want)
		}
	}
}

// TestForms: no form is that of any text, which is what tables do not mention.
func TestForms(t *testing.T) {
	t.Parallel()
	for _, form := range []attr.Form{
		attr.Name, attr.Path, attr.Lines, attr.OrEmpty, attr.Version, attr.KeyProvider, attr.Method, attr.Command, attr.Passphrase, attr.Token,
	} {
		if form == (attr.Attr{}).Form {
			t.Errorf("%d is that of any text", form)
		}
	}
}

// TestChecks: a check is made of each text of a value, and of numbers that fit.
func TestChecks(t *testing.T) {
	t.Parallel()
	short := attr.Is(func(text string) bool { return len(text) < 3 }, "a short text is required")
	itself := attr.Text(func(text string) error {
		if text == "canary" {
			return errors.New("it is the wrong one")
		}
		return nil
	})
	texts := func(all ...string) cty.Value {
		var values []cty.Value
		for _, text := range all {
			values = append(values, cty.StringVal(text))
		}
		return cty.ListVal(values)
	}
	huge := new(big.Float).SetPrec(512).SetMantExp(big.NewFloat(1), 70)
	oneOf, block := attr.OneOf("a", "b", "c"), cty.Object(map[string]cty.Type{"a": cty.String})
	few, all := attr.Between(2, 5), attr.Between(math.MinInt64, math.MaxInt64)
	says := testkit.OpenGolden(t, "../testdata/mistakes.txt", "checks", "canary")
	for name, c := range map[string]struct {
		check attr.Check
		value cty.Value
		wrong bool
	}{
		"text":             {short, cty.StringVal("ab"), false},
		"text, wrong":      {short, cty.StringVal("canary"), true},
		"list":             {short, texts("a", "b"), false},
		"list, last wrong": {short, texts("a", "canary"), true},
		"list with null":   {short, cty.ListVal([]cty.Value{cty.NullVal(cty.String), cty.StringVal("canary")}), true},
		"map":              {itself, cty.MapVal(map[string]cty.Value{"a": cty.StringVal("canary")}), true},
		"map, right":       {itself, cty.MapVal(map[string]cty.Value{"a": cty.StringVal("b")}), false},
		"one of them":      {oneOf, cty.StringVal("c"), false},
		"none of them":     {oneOf, cty.StringVal("canary"), true},
		"none of two":      {attr.OneOf("a", "b"), cty.StringVal("canary"), true},
		"nothing required": {attr.Check{}, cty.StringVal("canary"), false},
		"least":            {few, cty.NumberIntVal(2), false},
		"most":             {few, cty.NumberIntVal(5), false},
		"too little":       {few, cty.NumberIntVal(1), true},
		"too much":         {few, cty.NumberIntVal(6), true},
		"fraction":         {few, cty.NumberFloatVal(2.5), true},
		"huge":             {all, cty.NumberVal(huge), true},
		"infinite":         {few, cty.PositiveInfinity, true},
	} {
		err := c.check.Wrong(c.value)
		if c.wrong {
			says.Error(t, name, err)
		} else if err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
	numbers := attr.Whole(cty.List(cty.Number), func(cty.Value) error { return nil })
	for _, c := range []struct {
		check attr.Check
		is    []cty.Type
		isNot []cty.Type
	}{
		{attr.Check{}, []cty.Type{cty.String, cty.Number, block}, nil},
		{short, []cty.Type{cty.String, cty.List(cty.String), cty.Map(cty.String), cty.Set(cty.String)},
			[]cty.Type{cty.Number, cty.Bool, cty.List(cty.Number), block}},
		{few, []cty.Type{cty.Number}, []cty.Type{cty.String, cty.List(cty.Number)}},
		{numbers, []cty.Type{cty.List(cty.Number)}, []cty.Type{cty.Number, cty.List(cty.String)}},
	} {
		for _, typ := range append(c.is, c.isNot...) {
			if got, want := c.check.IsFor(typ), slices.ContainsFunc(c.is, typ.Equals); got != want {
				t.Errorf("a check of %#v, for %#v: got %t", c.check, typ, got)
			}
		}
	}
}

func TestAttr(t *testing.T) {
	t.Parallel()
	table := attr.Table{Attrs: []attr.Attr{{Name: "a"}, {Name: "b", Attrs: []attr.Attr{{Name: "a"}, {Name: "c"}}}}}
	for name, want := range map[string]string{"a": "a", "b": "b", "b.c": "c", "c": "", "b.b": "", "a.c": "", "b.": ""} {
		if a, ok := table.Attr(name); a.Name != want || ok != (want != "") {
			t.Errorf("%s: got %q, %t", name, a.Name, ok)
		}
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	reason := errors.New("no")
	for want, err := range map[string]*attr.Error{
		"f:2,3: key_provider.k.x.a: no": {Address: "key_provider.k.x", Attr: "a", Pos: attr.Pos{File: "f", Line: 2, Column: 3}, Err: reason},
		"a: no":                         {Attr: "a", Err: reason},
		"key_provider.k.x":              {Address: "key_provider.k.x"},
	} {
		if err.Error() != want || !errors.Is(err.Unwrap(), err.Err) {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func TestLookupEnv(t *testing.T) {
	t.Parallel()
	env := attr.LookupEnv(func(name string) (string, bool) {
		value, ok := map[string]string{"EMPTY": "", "ONE": "1", "TWO": "2"}[name]
		return value, ok
	})
	for names, want := range map[string]string{"EMPTY ONE TWO": "1", "NONE TWO": "2", "EMPTY NONE": ""} {
		if got, ok := env.Get(strings.Fields(names)...); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %t", names, got, ok)
		}
	}
	if got, ok := attr.LookupEnv(nil).Get("ONE"); got != "" || ok {
		t.Errorf("without an environment: %q, %t", got, ok)
	}
}

// TestWithout: a table loses the attributes that are named, and the one that it was made from keeps them.
func TestWithout(t *testing.T) {
	t.Parallel()
	table := attr.Table{Name: "git", Attrs: []attr.Attr{{Name: "url"}, {Name: "username"}, {Name: "password"}}}
	without := table.Without("url", "password", "unknown")
	if len(without.Attrs) != 1 || without.Attrs[0].Name != "username" || without.Name != "git" {
		t.Errorf("got %v", without)
	}
	if len(table.Attrs) != 3 || table.Attrs[0].Name != "url" {
		t.Errorf("the table is %v", table)
	}
}
