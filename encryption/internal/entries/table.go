package entries

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// CheckTable returns an error if a table contradicts itself. Such a table is a mistake of the
// kind's author.
func CheckTable(t attr.Table) error { return checkAttrs("", slices.Concat(t.Attrs, t.Variables)) }

func checkAttrs(block string, attrs []attr.Attr) error {
	seen := map[string]bool{}
	isMissing := func(name string) bool {
		return name != "" && !slices.ContainsFunc(attrs, func(a attr.Attr) bool { return a.Name == name })
	}
	for _, a := range attrs {
		isAddress, what := a.Form == attr.KeyProvider || a.Form == attr.Method, ""
		names := slices.Concat(a.Excludes, a.EntryInFiles, []string{a.RequiredWith})
		switch missing := slices.IndexFunc(names, isMissing); {
		case seen[a.Name]:
			what = "appears twice"
		case (a.Type == cty.NilType) == (a.Attrs == nil):
			what = "must have either a type or attributes of its own"
		case a.Required && a.Default != cty.NilVal:
			what = "is required but has a default"
		case a.Default != cty.NilVal && a.Attrs == nil && !a.Default.Type().Equals(a.Type):
			what = "has a default of another type"
		case a.Form != 0 && !attr.Text(nil).IsFor(a.Type):
			what = "has a Form but is not text"
		case a.Form == attr.Passphrase && !a.Secrecy.IsHidden():
			what = "is a passphrase but not a secret"
		case a.Env != nil && a.Type.IsMapType():
			what = "is a map, which a variable cannot set"
		case missing >= 0:
			what = fmt.Sprintf("names %q, which is not an attribute of the block", names[missing])
		case !a.Check.IsFor(a.Type):
			what = "has a Check that does not fit its type"
		case isAddress && (a.Type != cty.String || a.Env != nil):
			what = "is an address, so it must be a string that a variable cannot set"
		}
		if what != "" {
			return fmt.Errorf("its attribute %q %s", block+a.Name, what)
		}
		if seen[a.Name] = true; a.Attrs != nil {
			if err := checkAttrs(block+a.Name+".", a.Attrs); err != nil {
				return err
			}
		}
	}
	return nil
}
