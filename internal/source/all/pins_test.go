package all

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

// What README calls the pin of a source must not be empty: an empty variable would end
// the pinning, and another state be read.
//
// Promise: Pins
func TestPins(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	pins := map[string]string{} // :: kind → attribute
	for _, row := range regexp.MustCompile("(?m)^\\| (\\S*`.*?) \\| .* \\| (.*`.+`.*) \\|$").FindAllStringSubmatch(string(readme), -1) {
		names := regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[2], -1)
		for _, kind := range regexp.MustCompile("`([a-z0-9]+)`").FindAllStringSubmatch(row[1], -1) {
			pins[kind[1]] = names[len(names)-1][1]
		}
	}
	for _, kind := range Kinds() {
		for _, a := range kind.Attrs {
			if (a.Form == attr.Version) != (pins[kind.Name] == a.Name) {
				t.Errorf("%s.%s: README calls %q the pin", kind.Name, a.Name, pins[kind.Name])
			}
		}
		pin := pins[kind.Name]
		if pin == "" {
			continue
		}
		entry := unstable.NewEntry(kind.Name, kind.Table, map[string]cty.Value{pin: cty.StringVal("")})
		if _, err := entry.Decode(kind.Table, nil); err == nil || !strings.Contains(err.Error(), pin+": ") {
			t.Errorf("%s.%s = \"\": got %v", kind.Name, pin, err)
		}
		delete(pins, kind.Name)
	}
	if len(pins) > 0 {
		t.Errorf("README has pins of other kinds: %v", pins)
	}
}
