package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// What an error tells someone to add has all that a kind requires, and nothing that it
// does not have.
func TestExamples(t *testing.T) {
	check := func(kind string, table attr.Table) {
		var given []string
		for _, argument := range table.Example {
			name, _, _ := strings.Cut(argument, " = ")
			if _, found := table.Attr(name); !found {
				t.Errorf("%s has no argument %s", kind, name)
			}
			given = append(given, name)
		}
		for _, a := range table.Attrs {
			if a.Required && !slices.Contains(given, a.Name) {
				t.Errorf("%s: %s is missing", kind, a.Name)
			}
		}
	}
	for _, b := range builtin.Registry().KeyProviders {
		check(b.Name, b.Table)
		if len(b.Example) == 0 {
			t.Errorf("there is nothing for key_provider %s", b.Name)
		}
	}
	for _, b := range builtin.Registry().Methods {
		if b.OwnFormat != nil && b.Name != "sops" { // sops has other names for the same
			check(b.Name, b.Table)
		}
	}
}
