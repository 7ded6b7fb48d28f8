package all

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// TestOdditiesAreNamed: if an argument is refused, the error says what is odd about it.
func TestOdditiesAreNamed(t *testing.T) {
	places, named := backends(), 0
	for _, k := range Kinds() {
		for _, argument := range k.Table.Attrs {
			if argument.Type != cty.String || argument.Form == attr.Name || argument.Form == attr.Path { // which say what is wrong
				continue
			}
			for value, want := range testkit.Oddities() {
				_, err := unstable.NewEntry("data.x", k.Table, with(places[k.Name].place, argument.Name, value)).Decode(k.Table, nil)
				if err == nil {
					continue
				}
				named++
				if !strings.Contains(testkit.WithFacts(err), want) {
					t.Errorf("%s.%s: got %v, want %s", k.Name, argument.Name, err, want)
				}
			}
		}
	}
	if named == 0 {
		t.Error("no argument was refused")
	}
}
