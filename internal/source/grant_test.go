package source

import (
	"maps"
	"net/url"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func TestCredentialsFor(t *testing.T) {
	table := attr.Table{Name: "http", Attrs: []attr.Attr{
		{Name: "url", Type: cty.String, Required: true},
		{Name: "token", Type: cty.String, Env: []string{"X_TOKEN"}, Secrecy: attr.Secret},
	}}
	block := func(address, url string) *unstable.Entry {
		return unstable.NewEntry(address, table, map[string]cty.Value{"url": cty.StringVal(url)})
	}
	creds := Credentials{
		Table: table,
		Entries: []*unstable.Entry{
			block("whole host", "https://example.com"),
			block("folder", "https://example.com/a/"),
			block("deeper", "https://example.com/a/b"),
			block("other", "https://other.example.com/a/b/c"),
		},
		Env:  func(name string) (string, bool) { return "from " + name, true },
		Home: Home{Vars: []string{"ADDRESS"}, Compare: func(string, string) Match { return SameServer }},
	}
	for target, want := range map[string]string{
		"https://example.com/x":     "whole host",
		"https://example.com/a":     "folder",
		"https://example.com/a/c":   "folder",
		"https://example.com/a/b/c": "deeper",
		"https://example.org/a/b/c": "",
	} {
		u, _ := url.Parse(target)
		g, err := creds.For(u)
		if err != nil || g.Found != (want != "") || g.Found && g.Address() != want {
			t.Errorf("%s: got %+v, %v", target, g, err)
		}
		if g.Found && g.String("token") != "from X_TOKEN" {
			t.Errorf("%s: the environment did not fill the token", target)
		}
	}
}

// A block that may or may not be meant for the target is an error, never
// skipped: its secret could be the one that the read needs.
func TestCredentialsForUndecided(t *testing.T) {
	table := attr.Table{Name: "http", Attrs: []attr.Attr{{Name: "url", Type: cty.String, Required: true}}}
	target, _ := url.Parse("https://example.com/a/b")
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "credentials that are not known", "c4n4ry")
	for name, blocks := range map[string][]cty.Value{
		"unknown":    []cty.Value{cty.UnknownVal(cty.String)},
		"absent":     []cty.Value{cty.NullVal(cty.String)},
		"a number":   []cty.Value{cty.NumberIntVal(1)},
		"not a URL":  []cty.Value{cty.StringVal("example.com")},
		"the same":   []cty.Value{cty.StringVal("https://example.com/a"), cty.StringVal("https://EXAMPLE.com:443/a/")},
		"irrelevant": []cty.Value{cty.StringVal("https://other.example.com"), cty.StringVal("http://")},
	} {
		creds := Credentials{Table: table}
		for i, u := range blocks {
			creds.Entries = append(creds.Entries, unstable.NewEntry([]string{"first", "second"}[i], table, map[string]cty.Value{"url": u}))
		}
		g, err := creds.For(target)
		if says.Error(t, name, err); g.Found {
			t.Errorf("%s: a block is found", name)
		}
	}
}

func TestCredentialsNamed(t *testing.T) {
	table := attr.Table{Name: "s3", Attrs: []attr.Attr{
		{Name: "name", Type: cty.String},
		{Name: "token", Type: cty.String, Env: []string{"X_TOKEN"}, Secrecy: attr.Secret},
	}}
	block := func(address string, name cty.Value) *unstable.Entry {
		return unstable.NewEntry(address, table, map[string]cty.Value{"name": name})
	}
	env := func(name string) (string, bool) { return "from " + name, true }
	unnamed, a, b := block("unnamed", cty.NullVal(cty.String)), block("first", cty.StringVal("a")), block("second", cty.StringVal("b"))
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "credentials by name", "c4n4ry")
	for name, tt := range map[string]struct {
		entries      []*unstable.Entry
		asks         string
		block, token string
		fails        bool
	}{
		"no blocks":           {nil, "", "the environment variables for s3", "from X_TOKEN", false},
		"no block of a name":  {nil, "a", "", "", true},
		"the one without":     {[]*unstable.Entry{a, unnamed}, "", "unnamed", "from X_TOKEN", false},
		"by name":             {[]*unstable.Entry{unnamed, a, b}, "b", "second", "", false},
		"only names":          {[]*unstable.Entry{a, b}, "", "", "", true},
		"another name":        {[]*unstable.Entry{a, unnamed}, "b", "", "", true},
		"the same name":       {[]*unstable.Entry{a, block("third", cty.StringVal("a"))}, "a", "", "", true},
		"twice without":       {[]*unstable.Entry{unnamed, block("third", cty.NullVal(cty.String))}, "", "", "", true},
		"an unknown name":     {[]*unstable.Entry{block("third", cty.UnknownVal(cty.String)), a}, "a", "", "", true},
		"a name of no string": {[]*unstable.Entry{block("third", cty.True), a}, "true", "third", "", false},
	} {
		g, err := Credentials{Table: table, Entries: tt.entries, Env: env}.Named("credentials_name", tt.asks)
		switch {
		case tt.fails:
			says.Error(t, name, err)
		case err != nil || g.Found != (len(tt.entries) > 0) || g.Address() != tt.block || g.String("token") != tt.token:
			t.Errorf("%s: got %q, %q, %t, %v", name, g.Address(), g.String("token"), g.Found, err)
		}
	}
}

// sample is a kind with one attribute of each sort, and its variables.
func sample() (attr.Table, Home) {
	text := func(name, variable string, change ...func(*attr.Attr)) attr.Attr {
		a := attr.Attr{Name: name, Type: cty.String}
		if variable != "" {
			a.Env = []string{variable}
		}
		for _, c := range change {
			c(&a)
		}
		return a
	}
	secret := func(a *attr.Attr) { a.Secrecy, a.Harmless = attr.Secret, harmless.Secret }
	mild := func(a *attr.Attr) { a.Harmless = "It does no harm." }
	in := func(group string) func(*attr.Attr) { return func(a *attr.Attr) { a.Group = group } }
	follows := func(group string) func(*attr.Attr) { return func(a *attr.Attr) { a.UnlessGroup = group } }
	return attr.Table{Name: "test", Attrs: []attr.Attr{
			text("name", ""),
			text("host", "X_HOST", in("where")),
			{Name: "local", Type: cty.Bool, Group: "where"},
			text("region", "X_REGION", follows("where"), mild),
			text("user", "X_USER", follows("who"), mild),
			text("password", "X_PASSWORD", secret, follows("who")),
			text("token", "", secret, in("who")),
			text("cert", "X_CERT", in("pair"), mild),
			text("key", "X_KEY", secret, in("pair")),
			text("mode", "X_MODE", mild, func(a *attr.Attr) { a.HarmlessIf = harmless.OneOf("strict") }),
			{Name: "insecure", Type: cty.Bool, Env: []string{"X_INSECURE"}, Harmless: "It verifies.", HarmlessIf: harmless.False},
			text("timeout", "X_TIMEOUT", mild),
			{Name: "plugin", Attrs: []attr.Attr{text("args", "", secret)}},
		}}, Home{Vars: []string{"X_HOST"}, Attrs: []string{"host", "local"}, Compare: func(home, asked string) Match {
			if home == asked {
				return SameServer
			}
			return OtherServer
		}}
}

func TestFill(t *testing.T) {
	const fails = "an error"
	text := cty.StringVal
	all := map[string]string{
		"X_HOST": "home", "X_REGION": "r", "X_USER": "u", "X_PASSWORD": "p", "X_CERT": "c",
		"X_KEY": "k", "X_MODE": "m", "X_INSECURE": "1", "X_TIMEOUT": "t",
	}
	with := func(name, value string) map[string]string {
		env := maps.Clone(all)
		env[name] = value
		return env
	}
	without := func(names ...string) map[string]string {
		env := with("X_MODE", "strict")
		for _, name := range names {
			delete(env, name)
		}
		return env
	}
	strict := without("X_INSECURE")
	type attrs = map[string]cty.Value
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "the environment", "c4n4ry")
	for name, tt := range map[string]struct {
		env   map[string]string
		block attrs // nil for none
		want  string
	}{
		"no block":                      {all, nil, "host region user password cert key mode insecure timeout"},
		"an empty block":                {all, attrs{}, "host region user password cert key mode insecure timeout"},
		"no environment":                {nil, attrs{}, ""},
		"a block with a name":           {all, attrs{"name": text("a")}, ""},
		"half a pair":                   {all, attrs{"cert": text("own")}, "host region user password mode insecure timeout"},
		"a user":                        {all, attrs{"user": text("own")}, "host region password cert key mode insecure timeout"},
		"its own secret":                {all, attrs{"token": text("own")}, fails},
		"its own key":                   {all, attrs{"key": text("own")}, fails},
		"a secret in a block":           {all, attrs{"plugin": cty.ObjectVal(attrs{"args": text("own")})}, fails},
		"its own secret, no place":      {without("X_HOST", "X_INSECURE"), attrs{"token": text("own")}, "region cert key mode timeout"},
		"its own secret, unprotected":   {without("X_HOST"), attrs{"token": text("own")}, fails},
		"its own secret, its own place": {strict, attrs{"token": text("own"), "host": text("home")}, "cert key mode timeout"},
		"its own secret and switch": {all, attrs{"token": text("own"), "host": text("home"), "insecure": cty.False, "mode": text("own")},
			"cert key timeout"},
		"an unknown secret":          {all, attrs{"token": cty.UnknownVal(cty.String)}, fails},
		"an empty secret":            {all, attrs{"token": text("")}, "host region user password cert key mode insecure timeout"},
		"another server, own secret": {all, attrs{"token": text("own"), "host": text("other")}, "timeout"},
		"a switch of its own":        {all, attrs{"insecure": cty.False}, "host region user password cert key mode timeout"},
		"the same server":            {all, attrs{"host": text("home")}, "user password cert key mode insecure timeout"},
		"another server":             {all, attrs{"host": text("other")}, "timeout"},
		"another server, safe":       {with("X_MODE", "strict"), attrs{"host": text("other")}, "mode timeout"},
		"a server of another way":    {all, attrs{"local": cty.True}, "timeout"},
		"not of another way":         {all, attrs{"local": cty.False}, "host region user password cert key mode insecure timeout"},
		"no home":                    {with("X_HOST", ""), attrs{"host": text("other")}, "user password cert key mode insecure timeout"},
		"perhaps":                    {with("X_INSECURE", "perhaps"), attrs{}, fails},
	} {
		t.Run(name, func(t *testing.T) {
			table, home := sample()
			c := Credentials{Table: table, Home: home}
			if tt.env != nil {
				c.Env = func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }
			}
			asks := ""
			if tt.block != nil {
				c.Entries = []*unstable.Entry{unstable.NewEntry("block", table, tt.block)}
				if own, named := tt.block["name"]; named {
					asks = own.AsString()
				}
			}
			g, err := c.Named("credentials_name", asks)
			if tt.want == fails {
				says.Error(t, name, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var filled []string
			for _, a := range table.Attrs {
				if g.Variable(a.Name) != "" {
					filled = append(filled, a.Name)
				}
				if a.Attrs == nil && a.Env != nil && g.Has(a.Name) != (g.Variable(a.Name) != "" || tt.block[a.Name] != cty.NilVal) {
					t.Errorf("%s has a value: %t", a.Name, g.Has(a.Name))
				}
			}
			if got := strings.Join(filled, " "); got != tt.want {
				t.Errorf("the environment filled\n%s, want\n%s", got, tt.want)
			}
		})
	}
}

// The url that is suggested covers the address, and as little else as can be written.
func TestNarrowest(t *testing.T) {
	long := "https://example.com/a/" + strings.Repeat("x", 300)
	for address, want := range map[string]string{
		"https://example.com/a/state":                          "https://example.com/a/state",
		"https://example.com/a/":                               "https://example.com/a/",
		"https://example.com:8443":                             "https://example.com:8443/",
		"https://example.com/a/state?token=canary#canary":      "https://example.com/a/state",
		"ssh://git@example.com/acme/infra.git":                 "ssh://example.com/acme/infra.git",
		"https://example.com/projects/acme%2Finfra/state/a":    "https://example.com/projects/",
		"https://example.com/a b":                              "https://example.com/",
		"https://example.com/$%7Bvar.x%7D/a":                   "https://example.com/",
		`https://example.com/a/"x`:                             "https://example.com/a/",
		long:                                                   "https://example.com/a/",
		"https://example.com/a/../b":                           "https://example.com/",
		"https://" + strings.Repeat("x", 400) + ".example.com": "https://" + strings.Repeat("x", 292) + "…/",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		got := narrowest(u)
		if got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}

// A family that names a URL serves it without a block, and completes blocks of
// its server.
func TestHomeIsURL(t *testing.T) {
	table := attr.Table{Name: "http", Attrs: []attr.Attr{
		{Name: "url", Type: cty.String, Required: true},
		{Name: "user", Type: cty.String, Env: []string{"X_USER"}, UnlessGroup: "who"},
		{Name: "password", Type: cty.String, Secrecy: attr.Secret, Env: []string{"X_PASSWORD"}, UnlessGroup: "who"},
	}}
	const place, fails = "https://example.com/a/state", "an error"
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "a place that is a URL", "c4n4ry")
	for name, tt := range map[string]struct {
		home, block, want string // want is the user, or fails
	}{
		"at home":               {place, "", "u"},
		"a folder":              {"https://example.com/a/", "", "u"},
		"half a segment":        {"https://example.com/a/stat", "", ""},
		"below it":              {place + "/x", "", ""},
		"out of a folder":       {"https://example.com/b/../a/", "", ""},
		"another place":         {"https://example.com/b", "", ""},
		"another place, block":  {"https://example.com/b", "https://example.com/a/", "u"},
		"another server":        {"https://example.org/a/state", "", ""},
		"another server, block": {"https://example.org/a/state", "https://example.com/", ""},
		"a look-alike":          {"https://example.com.evil.io/a/state", "https://example.com/", ""},
		"nonsense":              {"https://%", "https://example.com/", ""},
		"no home":               {"", "", fails},
		"no home, a block":      {"", "https://example.com/", "u"},
		"no home, another's":    {"", "https://example.org/", fails},
	} {
		env := map[string]string{"X_ADDRESS": tt.home, "X_USER": "u", "X_PASSWORD": "p"}
		c := Credentials{Table: table, Home: Home{Vars: []string{"X_ADDRESS"}}, Env: func(name string) (string, bool) { return env[name], true }}
		if tt.block != "" {
			c.Entries = []*unstable.Entry{unstable.NewEntry("block", table, map[string]cty.Value{"url": cty.StringVal(tt.block)})}
		}
		u, err := url.Parse(place)
		if err != nil {
			t.Fatal(err)
		}
		g, err := c.For(u)
		switch {
		case tt.want == fails:
			says.Error(t, name, err)
			if lacks, _ := fault.Find[fault.NoBlock](err); lacks.Path != "credentials.http" || lacks.Arguments[0] != `url = "`+place+`"` {
				t.Errorf("%s: got %+v", name, lacks)
			}
			if along, err := c.Redirected(u); err != nil || along.Has("password") {
				t.Errorf("%s: a redirect gets %t, %v", name, along.Has("password"), err)
			}
		case err != nil || g.String("user") != tt.want || g.Has("password") != (tt.want != ""):
			t.Errorf("%s: got %q, %t, %v", name, g.String("user"), g.Has("password"), err)
		}
	}
}
