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
		"an address": {entries.Setting{Value: text("key_provider.static.k")}, []string{"key_provider.static.k"}},
		"unknown":    {entries.Setting{Value: cty.UnknownVal(cty.String)}, nil},
		"null":       {entries.Setting{Value: cty.NullVal(cty.String)}, nil},
		"a number":   {entries.Setting{Value: cty.Zero}, nil},
		"a mistake":  {entries.Setting{Value: text("key_provider.static.k"), Err: errors.New("x")}, nil},
	} {
		e := entries.Entry{Settings: map[string]entries.Setting{"keys": c.setting, "name": {Value: text("key_provider.static.n")}}}
		if got := entries.References(&e, table); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if refs := entries.References(&entries.Entry{}, table); refs != nil {
		t.Errorf("nothing is set: %v", refs)
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
