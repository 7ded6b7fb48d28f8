package all

import (
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// The tables are also schema and documentation, so they must be complete.
func TestTables(t *testing.T) {
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
		checkTable(t, k.Name, k.Table)
		if k.Begin == nil {
			t.Errorf("%s cannot be started", k.Name)
		}
		if c := k.Credentials; len(c.Attrs) > 0 {
			checkTable(t, "credentials."+k.Name, c)
			first := c.Attrs[0]
			// A block with a name says itself which server is asked, so that
			// there is no url to be covered.
			if c.Name != k.Name || (first.Name != "url" || !first.Required) && (first.Name != "name" || first.Required) {
				t.Errorf("the credentials of %s must be called the same and begin with a required url, or a name", k.Name)
			}
		}
		for _, a := range k.Attrs {
			if a.Secrecy.IsHidden() {
				t.Errorf("%s.%s: a secret belongs in credentials, where no module can redirect it", k.Name, a.Name)
			}
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(names)) != len(Kinds()) {
		t.Errorf("%q is not sorted, or not unique", names)
	}
}

func checkTable(t *testing.T, path string, table attr.Table) {
	t.Helper()
	if !strings.HasSuffix(table.Doc, ".") {
		t.Errorf("%s has no documentation of whole sentences", path)
	}
	for _, a := range table.Attrs {
		if !strings.HasSuffix(a.Doc, ".") {
			t.Errorf("%s.%s has no documentation of whole sentences", path, a.Name)
		}
	}
}
