package entries_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
)

// TestReferences: the key providers that an entry names, as far as they are
// known and no mistake.
func TestReferences(t *testing.T) {
	t.Parallel()
	table := attr.Table{Name: "kind", Attrs: []attr.Attr{
		{Name: "keys", Type: cty.String, Form: attr.KeyProvider}, {Name: "name", Type: cty.String},
	}}
	text := cty.StringVal
	for name, c := range map[string]struct {
		setting entries.Setting
		want    []string
	}{
		"an address": {entries.Setting{Value: text("key_provider.static.k")}, []string{"keys key_provider.static.k"}},
		"unknown":    {entries.Setting{Value: cty.UnknownVal(cty.String)}, nil},
		"null":       {entries.Setting{Value: cty.NullVal(cty.String)}, nil},
		"a number":   {entries.Setting{Value: cty.Zero}, nil},
		"a mistake":  {entries.Setting{Value: text("key_provider.static.k"), Err: errors.New("x")}, nil},
	} {
		e := entries.Entry{Settings: map[string]entries.Setting{"keys": c.setting, "name": {Value: text("key_provider.static.n")}}}
		v, _ := e.Decode(table, nil)
		var got []string
		for _, g := range entries.KeyProviders(v) {
			got = append(got, g.Path+" "+g.Address())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	values := map[string]cty.Value{"keys": cty.UnknownVal(cty.String)}
	for _, name := range []string{"name", "region", "on", "count", "list", "map", "bytes", "then", "role"} {
		values[name] = cty.NullVal(cty.String)
	}
	known := entries.NewEntry("kind.e", table, values)
	if setting, ok := known.Settings["keys"]; len(known.Settings) != 1 || !ok || setting.Err != nil {
		t.Errorf("%v", known.Settings)
	}
}

// TestIsWrong: what is set is wrong whatever variables say if its table does not allow it.
func TestIsWrong(t *testing.T) {
	t.Parallel()
	number := attr.Attr{Name: "count", Type: cty.Number, Check: attr.Between(1, 2), Env: []string{"COUNT"}}
	table := attr.Table{Name: "kind", Attrs: []attr.Attr{
		number, {Name: "block", Attrs: []attr.Attr{number, {Name: "id", Type: cty.String, Required: true, Env: []string{"ID"}}}},
		{Name: "key", Type: cty.String, RequiredWith: "secret"}, {Name: "secret", Type: cty.String, Env: []string{"SECRET"}},
		{Name: "profile", Type: cty.String, Excludes: []string{"key"}},
	}}
	object := func(name string, v cty.Value) map[string]cty.Value {
		return map[string]cty.Value{"block": cty.ObjectVal(map[string]cty.Value{name: v})}
	}
	text, many := cty.StringVal("x"), cty.NumberIntVal(9)
	for name, c := range map[string]struct {
		values map[string]cty.Value
		path   string
		want   bool
	}{
		"nothing is set":            {nil, "count", false},
		"right":                     {map[string]cty.Value{"count": cty.NumberIntVal(1)}, "count", false},
		"wrong":                     {map[string]cty.Value{"count": many}, "count", true},
		"another is":                {map[string]cty.Value{"count": many}, "key", false},
		"not known":                 {map[string]cty.Value{"count": cty.UnknownVal(cty.Number)}, "count", false},
		"in a block":                {object("count", many), "block.count", true},
		"beside it in a block":      {object("count", many), "block.id", false},
		"a variable completes it":   {map[string]cty.Value{"key": text}, "secret", false},
		"two that exclude another":  {map[string]cty.Value{"key": text, "secret": text, "profile": text}, "profile", true},
		"the other one of such two": {map[string]cty.Value{"key": text, "secret": text, "profile": text}, "key", false},
	} {
		if got := entries.NewEntry("kind.e", table, c.values).IsWrong(table, c.path); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
