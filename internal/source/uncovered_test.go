package source

import (
	"net/url"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// A block that does not apply is named if a server refuses what was not sent.
func TestUncovered(t *testing.T) {
	table := attr.Table{Name: "web", Attrs: []attr.Attr{{Name: "url", Type: cty.String}}}
	target, _ := url.Parse("https://host.example/acme%2Finfra/state?sig=hidden")
	other := func(address string) *unstable.Entry {
		return unstable.NewEntry("credentials.git", table, map[string]cty.Value{"url": cty.StringVal(address)})
	}
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "blocks that do not apply")
	for name, c := range map[string]struct {
		blocks []string
		lack   string
	}{
		"none":    {nil, ""},
		"covered": {[]string{"https://hots.example/", "https://host.example/"}, "hots"},
		"path":    {[]string{"https://host.example/other/"}, "hidden"},
		"port":    {[]string{"https://host.example:8443/"}, "hidden"},
		"scheme":  {[]string{"http://host.example/"}, "hidden"},
		"host":    {[]string{"https://hots.example/"}, "hidden"},
		"kind":    {[]string{"https://host.example/other/"}, "hidden"},
		"nearest": {[]string{"https://hots.example/", "https://HOST.example:8443/"}, "hots"},
	} {
		credentials := Credentials{Table: table, Others: map[string][]*unstable.Entry{"git": {other("https://hots.example/")}}}
		if name == "kind" {
			credentials.Others["git"] = append(credentials.Others["git"], other("https://host.example/"))
		}
		for _, u := range c.blocks {
			settings := map[string]cty.Value{"url": cty.StringVal(u)}
			credentials.Entries = append(credentials.Entries, unstable.NewEntry("credentials.web", table, settings))
		}
		got := credentials.Uncovered(target)
		if c.lack != "" && strings.Contains(got, c.lack) {
			t.Errorf("%s: got %q, want it without %q", name, got, c.lack)
		}
		says.Check(t, name, got)
	}
}
