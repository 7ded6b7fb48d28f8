package source

import (
	"net/url"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

// A block that does not apply is named if a server refuses what was not sent.
func TestUncovered(t *testing.T) {
	table := attr.Table{Name: "web", Attrs: []attr.Attr{{Name: "url", Type: cty.String}}}
	target, _ := url.Parse("https://host.example/acme%2Finfra/state?sig=hidden")
	other := func(address string) *unstable.Entry {
		return unstable.NewEntry("credentials.git", table, map[string]cty.Value{"url": cty.StringVal(address)})
	}
	for name, c := range map[string]struct {
		blocks     []string
		want, lack string
	}{
		"none": {nil, "", ""},
		"covered": {[]string{"https://hots.example/", "https://host.example/"},
			"the web block of credentials that covers this address has no credentials that could be sent there", "hots"},
		"path":   {[]string{"https://host.example/other/"}, "yours covers https://host.example/other/ (the path differs)", "hidden"},
		"port":   {[]string{"https://host.example:8443/"}, "yours covers https://host.example:8443/ (the port differs)", "hidden"},
		"scheme": {[]string{"http://host.example/"}, "yours covers http://host.example/ (the scheme differs)", "hidden"},
		"host":   {[]string{"https://hots.example/"}, "yours covers https://hots.example/ (the host differs)", "hidden"},
		"kind": {[]string{"https://host.example/other/"},
			"the git block of credentials that covers this address is for the source git alone, and web needs its own", "hidden"},
		"nearest": {[]string{"https://hots.example/", "https://HOST.example:8443/"}, "(the port differs)", "hots"},
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
		if strings.Contains(got, "differs") && !strings.Contains(got, "covers https://host.example/acme%2Finfra/state;") {
			t.Errorf("%s: got %q, which does not show what is sent", name, got)
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || c.lack != "" && strings.Contains(got, c.lack) {
			t.Errorf("%s: got %q, want %q without %q", name, got, c.want, c.lack)
		}
	}
}
