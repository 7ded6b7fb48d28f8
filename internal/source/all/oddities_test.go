package all

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// TestOdditiesAreNamed: if a read fails, the error says what is odd about any argument of
// its source and of its credentials.
func TestOdditiesAreNamed(t *testing.T) {
	rows, places := policies(t), backends()
	named := map[string]int{}
	for _, k := range Kinds() {
		a := arenaOf(k, rows[k.Name])
		t.Run(k.Name, func(t *testing.T) {
			for _, argument := range k.Table.Attrs {
				if argument.Type != cty.String {
					continue
				}
				for value, want := range testkit.Oddities() {
					values, err := unstable.NewEntry("data.x", k.Table, with(places[k.Name].place, argument.Name, value)).Decode(k.Table, nil)
					if err != nil {
						if argument.Form != attr.Name && argument.Form != attr.Path { // which say what is wrong
							named[k.Name] += says(t, argument.Name, err, want)
						}
						continue
					}
					src, err := k.Start(source.Settings{})(source.Request{Values: values, Workspace: "default", MaxSize: 1 << 20})
					if err == nil && !isLocal(k) {
						continue // nobody is there who could be asked
					} else if err == nil {
						_, err = src.Fetch(t.Context())
					}
					named[k.Name] += says(t, argument.Name, err, want)
				}
			}
			for _, argument := range k.Credentials.Attrs {
				if argument.Type != cty.String || len(a.here(a.direct)) == 0 || isAddress(argument.Name) {
					continue
				}
				_, err := a.readAt(t, a.where(a.direct), nil, true, with(a.own(a.direct), argument.Name, "'states'"))
				named[k.Name] += says(t, "credentials."+argument.Name, err, testkit.Oddities()["'states'"])
			}
		})
		if named[k.Name] == 0 {
			t.Errorf("%s: nothing odd is named", k.Name)
		}
	}
}

// isAddress leaves out what would be asked for several times.
func isAddress(name string) bool {
	return name == "address" || strings.Contains(name, "endpoint")
}

func isLocal(k source.Kind) bool { return k.Name == "file" }

// says returns 1 if there is an error, which then has to say what is wanted.
func says(t *testing.T, name string, err error, want string) int {
	t.Helper()
	if err == nil {
		return 0
	}
	if !strings.Contains(testkit.WithFacts(err), want) {
		t.Errorf("%s: got %v, want %s", name, err, want)
	}
	return 1
}
