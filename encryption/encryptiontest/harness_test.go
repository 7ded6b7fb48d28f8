package encryptiontest

import (
	"context"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// TestLacks: what is missing in a harness is said of the harness, and not of the method.
func TestLacks(t *testing.T) {
	t.Parallel()
	keys := func(context.Context, string) ([]byte, error) { return nil, nil }
	refers := driver.Block[driver.Method]{
		Table: attr.Table{Name: "x", Attrs: []attr.Attr{{Name: "keys", Type: cty.String, Form: attr.KeyProvider}}},
	}
	files := driver.Block[driver.Method]{OwnFormat: func([]byte) bool { return true }}
	other, file := map[string]cty.Value{}, []byte("x")
	for name, c := range map[string]struct {
		harness Method
		want    string
	}{
		"a key of its own": {Method{Other: other}, ""},
		"no other of it":   {Method{}, "Other"},
		"keys":             {Method{Block: refers, Keys: keys, OtherKeys: keys}, ""},
		"no keys":          {Method{Block: refers, OtherKeys: keys}, "Keys"},
		"no other keys":    {Method{Block: refers, Keys: keys}, "OtherKeys"},
		"whole files":      {Method{Block: files, Other: other, File: file, Plain: file}, ""},
		"no other":         {Method{Block: files, File: file, Plain: file}, "Other"},
		"no file":          {Method{Block: files, Other: other, Plain: file}, "File"},
		"no plain":         {Method{Block: files, Other: other, File: file}, "Plain"},
		"keys of a file":   {Method{Block: files, Keys: keys, OtherKeys: keys}, "whole files"},
		"files of others":  {Method{Block: refers, Other: other, File: file, Plain: file}, "key providers"},
	} {
		if got := c.harness.lacks(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestNoBuild: a Block without Build is an error, as it is to a program.
func TestNoBuild(t *testing.T) {
	t.Parallel()
	if _, err := build(driver.Block[driver.KeyProvider]{}, nil); err == nil || !strings.Contains(err.Error(), "no Build") {
		t.Errorf("got %v", err)
	}
}

// TestNullHoldsNoSecret: an attribute that is null, or not known, is no text to look at.
func TestNullHoldsNoSecret(t *testing.T) {
	t.Parallel()
	table := attr.Table{Attrs: []attr.Attr{{Name: "a", Type: cty.String}, {Name: "b", Type: cty.String}}}
	checkMarks(t, table, map[string]cty.Value{"a": cty.NullVal(cty.String), "b": cty.UnknownVal(cty.String)}, []string{"canary"})
}
