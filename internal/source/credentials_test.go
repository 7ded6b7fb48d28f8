package source

import (
	"net/url"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

func TestCovers(t *testing.T) {
	tests := []struct {
		base, target string
		want         bool
	}{
		{"https://example.com/acme/", "https://example.com/acme/state", true},
		{"https://example.com/acme", "https://example.com/acme/state", true},
		{"https://example.com/acme/", "https://example.com/acme", true},
		{"https://example.com/acme/state", "https://example.com/acme/state?ref=1#x", true},
		{"https://example.com", "https://example.com/any/thing", true},
		{"https://example.com/", "https://example.com", true},
		{"https://example.com/acme/", "HTTPS://EXAMPLE.COM/acme/state", true},
		{"https://EXAMPLE.com/acme/", "https://example.com/acme/state", true},
		{"https://example.com/acme/", "https://example.com:443/acme/state", true},
		{"https://example.com:443/acme/", "https://example.com/acme/state", true},
		{"http://example.com/", "http://example.com:80/state", true},
		{"ssh://git@example.com/", "ssh://git@example.com:22/acme.git", true},
		{"https://[::1]/", "https://[::1]:443/state", true},
		{"https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/state", true},
		{"https://example.com/acme/", "https://example.com/acme//state", true},
		{"https://example.com/acme/", "https://example.com/acme/..state", true},
		// GitLab takes a project's path as one encoded segment.
		{"https://example.com/", "https://example.com/api/v4/projects/acme%2Finfra/terraform/state/a", true},

		// Another host, or something that reads like the same one.
		{"https://example.com/", "https://example.com.evil.io/state", false},
		{"https://example.com/", "https://example.com@evil.io/state", false},
		{"https://example.com/", "https://example.com:443@evil.io/state", false},
		{"https://example.com/", "https://evil.io/example.com/", false},
		{"https://example.com/", "https://evil.io/?https://example.com/", false},
		{"https://example.com/", "https://evil.io#@example.com/", false},
		{"https://example.com/", "https://evilexample.com/", false},
		{"https://example.com/", "https://www.example.com/", false},
		{"https://www.example.com/", "https://example.com/", false},
		{"https://example.com/", "https://example.com./state", false},
		{"https://example.com/", "https://ex\u0430mple.com/", false},              // Cyrillic a
		{"https://kube.example.com/", "https://\u212aube.example.com/", false},    // the Kelvin sign folds to k
		{"https://kube.example.com/", "https://%E2%84%AAube.example.com/", false}, // and encoded
		{"https://example.com/", "https://example\u3002com/", false},              // an ideographic full stop
		{"https://xn--bcher-kva.example/", "https://b\u00fccher.example/", false}, // the same host for some
		{"https://[::1]/", "https://[0:0:0:0:0:0:0:1]/state", false},
		{"https://[::1]/", "https://[::1%25lo]/state", false},
		{"https://[::1]/", "https://[::ffff:1]/", false},
		{"https://127.0.0.1/", "https://0177.0.0.1/", false},
		{"https://127.0.0.1/", "https://2130706433/", false},
		{"https://127.0.0.1/", "https://localhost/", false},

		// Another scheme or port.
		{"https://example.com/", "http://example.com/state", false},
		{"https://example.com/", "http://example.com:443/state", false},
		{"http://example.com/", "https://example.com/state", false},
		{"https://example.com/", "https://example.com:8443/state", false},
		{"https://example.com:8443/", "https://example.com/state", false},
		{"https://example.com/", "https://example.com:0443/state", false},
		{"https://example.com/", "https:example.com/state", false},
		{"https://example.com/", "//example.com/state", false},

		// Another path.
		{"https://example.com/acme/", "https://example.com/acme-x/state", false},
		{"https://example.com/acme", "https://example.com/acme-x", false},
		{"https://example.com/acme/", "https://example.com/", false},
		{"https://example.com/acme/", "https://example.com/ACME/state", false},
		{"https://example.com/a/", "https://example.com/b/a/", false},
		{"https://example.com/a/", "https://example.com//a/", false},
		{"https://example.com/a/", "https://example.com/a/../b", false},
		{"https://example.com/a/", "https://example.com/a/..", false},
		{"https://example.com/a/", "https://example.com/a/./b", false},
		{"https://example.com/a/", "https://example.com/a/..;/b", false},
		{"https://example.com/a/", "https://example.com/a/..;x=1/b", false},
		{"https://example.com/a/", "https://example.com/a/..%2fb", false},
		{"https://example.com/a/", "https://example.com/a%2fb", false},
		{"https://example.com/a/", "https://example.com/a/%2e%2e/b", false},
		{"https://example.com/a/", "https://example.com/a/%2E%2e%2Fb", false},
		{"https://example.com/a/", "https://example.com/a/%252e%252e/b", false},
		{"https://example.com/a/", "https://example.com/a/.%2e/b", false},
		{"https://example.com/a/", `https://example.com/a/..\b`, false},
		{"https://example.com/a/", `https://example.com/a\..\b`, false},
		{"https://example.com/a/", "https://example.com/a/..%5cb", false},
		{"https://example.com/a/", "https://example.com/%61/b", false},
		{"https://example.com/a/", "https://example.com/a/\u2025/b", false}, // a two dot leader
		{"https://example.com/", "https://example.com/a/..%2fb", false},
		{"https://example.com/", "https://example.com/%2e%2e/b", false},
	}
	for _, tt := range tests {
		base, err := ParseBase(tt.base)
		if err != nil {
			t.Fatalf("%s: %v", tt.base, err)
		}
		target, err := url.Parse(tt.target)
		if err != nil {
			t.Fatal(err)
		}
		if got := Covers(base, target); got != tt.want {
			t.Errorf("Covers(%s, %s) = %t", tt.base, tt.target, got)
		}
	}
}

func TestParseBase(t *testing.T) {
	tests := []struct{ raw, err string }{
		{"https://state.example.com/acme/", ""},
		{"https://state.example.com:8443", ""},
		{"ssh://git@example.com/", ""},
		{"https://[2001:db8::1]/", ""},
		{"", "scheme and host"},
		{"state.example.com/acme", "scheme and host"},
		{"https:state.example.com", "scheme and host"},
		{"https:///acme", "scheme and host"},
		{"https://:443/", "scheme and host"},
		{"https://c4n4ry@example.com/", "only scheme"},
		{"https://user:c4n4ry@example.com/", "password"},
		{"ssh://git:c4n4ry@example.com/", "password"},
		{"https://example.com/?c4n4ry", "only scheme"},
		{"https://example.com/#c4n4ry", "only scheme"},
		{"https://example.com/c4n4ry%2f", "encoded"},
		{"https://example.com/a/../b", "dot segments"},
		{`https://example.com/a\b`, "backslashes"},
		{"https://b\u00fccher.example/", "xn--"},
		{"https://example.com/\x7fc4n4ry", "not a URL"},
		{`https://example.com\@c4n4ry/`, "not a URL"},
		{"https://example.com:c4n4ry/", "not a URL"},
	}
	for _, tt := range tests {
		_, err := ParseBase(tt.raw)
		switch {
		case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("ParseBase(%q): got error %v, want %q", tt.raw, err, tt.err)
		case err != nil && strings.Contains(err.Error(), "c4n4ry"):
			t.Errorf("ParseBase(%q) repeats the text: %v", tt.raw, err)
		}
	}
}

func TestCredentialsFor(t *testing.T) {
	table := attr.Table{Name: "http", Attrs: []attr.Attr{
		{Name: "url", Type: cty.String, Required: true},
		{Name: "token", Type: cty.String, Env: []string{"TOKEN"}, Sensitive: true},
	}}
	block := func(address, url string) *attr.Entry {
		return attr.NewEntry(address, table, map[string]cty.Value{"url": cty.StringVal(url)})
	}
	creds := Credentials{
		Table: table,
		Entries: []*attr.Entry{
			block("whole host", "https://example.com"),
			block("folder", "https://example.com/a/"),
			block("deeper", "https://example.com/a/b"),
			block("other", "https://other.example.com/a/b/c"),
		},
		Env: func(name string) (string, bool) { return "from " + name, true },
	}
	for target, want := range map[string]string{
		"https://example.com/x":     "whole host",
		"https://example.com/a":     "folder",
		"https://example.com/a/c":   "folder",
		"https://example.com/a/b/c": "deeper",
		"https://example.org/a/b/c": "",
	} {
		u, _ := url.Parse(target)
		v, found, err := creds.For(u)
		if err != nil || v.Address != want || found != (want != "") {
			t.Errorf("%s: got %q, %t, %v", target, v.Address, found, err)
		}
		if found && v.String("token") != "from TOKEN" {
			t.Errorf("%s: the environment did not fill the token", target)
		}
	}
}

// A block that may or may not be meant for the target is an error, never
// skipped: its secret could be the one that the read needs.
func TestCredentialsForUndecided(t *testing.T) {
	table := attr.Table{Name: "http", Attrs: []attr.Attr{{Name: "url", Type: cty.String, Required: true}}}
	target, _ := url.Parse("https://example.com/a/b")
	for name, tt := range map[string]struct {
		blocks []cty.Value
		err    string
	}{
		"unknown":    {[]cty.Value{cty.UnknownVal(cty.String)}, "not known yet"},
		"absent":     {[]cty.Value{cty.NullVal(cty.String)}, "required"},
		"a number":   {[]cty.Value{cty.NumberIntVal(1)}, "a string is required"},
		"not a URL":  {[]cty.Value{cty.StringVal("example.com")}, "scheme and host"},
		"the same":   {[]cty.Value{cty.StringVal("https://example.com/a"), cty.StringVal("https://EXAMPLE.com:443/a/")}, "first has the same url"},
		"irrelevant": {[]cty.Value{cty.StringVal("https://other.example.com"), cty.StringVal("http://")}, "scheme and host"},
	} {
		creds := Credentials{Table: table}
		for i, u := range tt.blocks {
			creds.Entries = append(creds.Entries, attr.NewEntry([]string{"first", "second"}[i], table, map[string]cty.Value{"url": u}))
		}
		if _, found, err := creds.For(target); found || err == nil || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got %t, %v, want an error with %q", name, found, err, tt.err)
		}
	}
}

func TestCredentialsNamed(t *testing.T) {
	table := attr.Table{Name: "s3", Attrs: []attr.Attr{
		{Name: "name", Type: cty.String},
		{Name: "token", Type: cty.String, Env: []string{"TOKEN"}, Sensitive: true},
	}}
	block := func(address string, name cty.Value) *attr.Entry {
		return attr.NewEntry(address, table, map[string]cty.Value{"name": name})
	}
	env := func(name string) (string, bool) { return "from " + name, true }
	unnamed, a, b := block("unnamed", cty.NullVal(cty.String)), block("first", cty.StringVal("a")), block("second", cty.StringVal("b"))
	for name, tt := range map[string]struct {
		entries      []*attr.Entry
		asks         string
		block, token string
		err          string
	}{
		"no blocks":           {nil, "", "the environment variables", "from TOKEN", ""},
		"no block of a name":  {nil, "a", "", "", `no s3 block of credentials, in the provider block, has the name "a"`},
		"the one without":     {[]*attr.Entry{a, unnamed}, "", "unnamed", "from TOKEN", ""},
		"by name":             {[]*attr.Entry{unnamed, a, b}, "b", "second", "", ""},
		"only names":          {[]*attr.Entry{a, b}, "", "", "", `every s3 block of credentials has a name; set credentials_name to one of "a", "b"`},
		"another name":        {[]*attr.Entry{a, unnamed}, "b", "", "", `has the name "b"`},
		"the same name":       {[]*attr.Entry{a, block("third", cty.StringVal("a"))}, "a", "", "", "first has the same name"},
		"twice without":       {[]*attr.Entry{unnamed, block("third", cty.NullVal(cty.String))}, "", "", "", "unnamed has the same name"},
		"an unknown name":     {[]*attr.Entry{block("third", cty.UnknownVal(cty.String)), a}, "a", "", "", "not known yet"},
		"a name of no string": {[]*attr.Entry{block("third", cty.True), a}, "true", "third", "", ""},
	} {
		v, found, err := Credentials{Table: table, Entries: tt.entries, Env: env}.Named("credentials_name", tt.asks)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got %v, want an error with %q", name, err, tt.err)
			}
		case err != nil || found != (len(tt.entries) > 0) || v.Address != tt.block || v.String("token") != tt.token:
			t.Errorf("%s: got %q, %q, %t, %v", name, v.Address, v.String("token"), found, err)
		}
	}
}
