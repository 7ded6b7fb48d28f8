package source

import (
	"net/url"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

// TestWhichVariablesHaveASay: by the block that is used, and by how the server
// that the variables are meant for relates to the one that is asked. What they
// may say there is tested in encryption/attr.
func TestWhichVariablesHaveASay(t *testing.T) {
	t.Parallel()
	table := attr.Table{Name: "kind", Attrs: []attr.Attr{
		{Name: "url", Type: cty.String}, {Name: "name", Type: cty.String},
		{Name: "token", Type: cty.String, Secrecy: attr.Secret, Env: []string{"TOKEN"}},
		{Name: "timeout", Type: cty.String, Env: []string{"TIMEOUT"}, Harmless: "Patience does no harm."},
	}}
	for _, c := range []struct {
		block, name string // the url of a block, "" for none; its name
		near        Match
		want        string // what is filled, or "error"
	}{
		{"https://example.com/", "", Undecided, "token timeout "},
		{"https://example.com/", "", OtherServer, "timeout "},
		{"https://example.com/", "", SameServer, "token timeout "},
		{"https://example.com/", "", SamePlace, "token timeout "},
		{"https://example.com/", "a", Undecided, ""},
		{"https://example.com/", "a", SamePlace, ""},
		{"https://other.example.com/", "", SameServer, ""},
		{"", "", Undecided, "error"}, // a secret that is meant for nobody
		{"", "", OtherServer, ""},
		{"", "", SameServer, ""},
		{"", "", SamePlace, "token timeout "},
	} {
		creds := Credentials{Table: table, Env: func(name string) (string, bool) { return "of " + name, name != "HOME" }}
		creds.Home = Home{Vars: []string{"ADDRESS"}, Default: "home", Compare: func(string, string) Match { return c.near }}
		if c.block != "" {
			creds.Entries = []*unstable.Entry{unstable.NewEntry("block", table, map[string]cty.Value{
				"url": cty.StringVal(c.block), "name": cty.StringVal(c.name)})}
		}
		target := &url.URL{Scheme: "https", Host: "example.com", Path: "/a"}
		g, err := creds.For(target)
		if c.name != "" {
			g, err = creds.Named("credentials_name", c.name)
		}
		got := ""
		for _, name := range []string{"token", "timeout"} {
			if err == nil && g.Has(name) {
				got += name + " "
			}
		}
		if err != nil {
			got = "error"
		}
		if hasEnv := c.want != "" && c.want != "timeout "; got != c.want || err == nil && (g.Env != nil) != hasEnv {
			t.Errorf("%+v: got %q, %v; it reads the environment: %t", c, got, err, g.Env != nil)
		}
	}
}
