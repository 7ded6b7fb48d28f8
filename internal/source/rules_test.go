package source

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

// situation is one row of the enumeration: an attribute x, what it is declared
// to be, who sets it, what stands beside it, and which server is asked.
type situation struct {
	// declaration of x
	harmless string // "closed": never; "always"; "this": for the value at hand; "others": for other values
	secret   bool   // x is a secret itself
	boolean  bool   // x is a bool
	must     bool   // x has a default
	empty    bool   // an empty string is a value
	group    string // "": none; "same": with the secret beside it; "half": of which the code says a part; "follows": likewise, with Follows

	code   string // how the code sets x: "absent", "null", "empty", "false", "value"
	by     string // who else sets x: "nobody", "layer" (TF_ENCRYPTION), "variable"
	beside string // the secret beside x: see besides
	block  string // of a source: "key provider" for none at all, "found", "named", "none"
	near   Nearness
}

// besides are the secrets that may stand beside x: their origin, and whether
// they are entries of the file that x names.
var besides = []string{"none", "code", "environment", "local", "within", "both"}

// ofCode reports whether a secret of the code could be lost.
func (s situation) ofCode() bool {
	return s.beside == "code" || s.beside == "both" || s.beside == "within"
}

// want states the rules: "code" and "filled" are whose value x has, "absent"
// that it has none, "error" that the variable or the layer is refused.
func (s situation) want() string {
	saysSecret := s.beside == "code" || s.beside == "both" || s.beside == "local"
	closedGroup := s.group == "half" || s.group == "follows" || s.group == "same" && saysSecret
	closed := s.harmless == "closed" || s.harmless == "others"
	absent := "absent"
	if s.code == "empty" { // which is what remains
		absent = "code"
	}
	switch {
	case s.by == "layer" && s.code != "value":
		if s.ofCode() && closed || s.group == "same" && saysSecret && s.beside != "local" {
			return "error"
		}
		return "filled"
	case s.says():
		return "code"
	case s.by == "nobody", closedGroup, s.block == "named":
		return absent
	case s.block == "none" && s.near == SamePlace:
		return "filled"
	case s.block == "none" && s.near == Unsaid && s.secret:
		return "error" // a secret that nobody gave a place
	case s.block == "none":
		return absent
	case s.near == Elsewhere && (closed || s.secret || s.group == "same"):
		return absent
	case s.ofCode() && closed && s.beside != "within": // whose file x names
		return "error"
	}
	return "filled"
}

// says reports whether the code says something about x.
func (s situation) says() bool {
	switch s.code {
	case "value":
		return true
	case "empty":
		return s.empty
	case "false":
		return true
	}
	return false
}

const given = "true" // by a variable or a layer, of any type

// table declares x and what may stand beside it.
func (s situation) table() attr.Table {
	x := attr.Attr{Name: "x", Type: cty.String, Env: []string{"X"}, Harmless: "reason"}
	x.Sensitive, x.Empty = s.secret, s.empty
	switch s.harmless {
	case "closed":
		x.Harmless = ""
	case "this":
		x.HarmlessIf = attr.OneOf(given)
	case "others":
		x.HarmlessIf = attr.OneOf("another")
	}
	if s.boolean {
		x.Type = cty.Bool
	}
	if s.must {
		x.Default = cty.StringVal("default")
		if s.boolean {
			x.Default = cty.False
		}
	}
	secret := attr.Attr{Name: "secret", Type: cty.String, Sensitive: true, Env: []string{"SECRET"}, Harmless: "reason"}
	secret.Local = s.beside == "local"
	part := attr.Attr{Name: "part", Type: cty.String}
	switch s.group {
	case "same":
		x.Group, secret.Group = "identity", "identity"
	case "half":
		x.Group, part.Group = "half", "half"
	case "follows":
		x.Follows, part.Group = "half", "half"
	}
	entry := attr.Attr{Name: "profile", Type: cty.String, Secret: true, Within: []string{"x"}}
	return attr.Table{Name: "kind", Attrs: []attr.Attr{
		{Name: "url", Type: cty.String}, {Name: "name", Type: cty.String}, entry, part, secret, x}}
}

func (s situation) entry() *attr.Entry {
	text := cty.StringVal
	values := map[string]cty.Value{"url": text("https://example.com/")}
	switch s.code {
	case "null":
		values["x"] = cty.NullVal(cty.String)
	case "empty":
		values["x"] = text("")
	case "false":
		values["x"] = cty.False
	case "value":
		values["x"] = text("code")
		if s.boolean {
			values["x"] = cty.False
		}
	}
	switch s.beside {
	case "code", "local":
		values["secret"] = text("OWN")
	case "within":
		values["profile"] = text("OWN")
	case "both":
		values["secret"], values["profile"] = text("OWN"), text("OWN")
	}
	if s.group == "half" || s.group == "follows" {
		values["part"] = text("OWN")
	}
	if s.block == "named" {
		values["name"] = text("a")
	}
	e := attr.NewEntry("block", s.table(), values)
	if s.by == "layer" {
		e.Settings["x"] = attr.Setting{Value: text(given), FromEnvironment: true}
		if s.boolean {
			e.Settings["x"] = attr.Setting{Value: cty.True, FromEnvironment: true}
		}
	}
	return e
}

func (s situation) env() attr.LookupEnv {
	return func(name string) (string, bool) {
		switch {
		case name == "X" && s.by == "variable":
			return given, true
		case name == "SECRET" && s.beside == "environment":
			return "ENV", true
		}
		return "", false
	}
}

// resolve is what the code under test makes of s.
func (s situation) resolve() (attr.Values, error) {
	if s.block == "key provider" {
		return (&config.Config{LookupEnv: s.env()}).Decode(s.entry(), s.table())
	}
	c := Credentials{Table: s.table(), Env: s.env()}
	c.Home = Home{Vars: []string{"ADDRESS"}, Default: "home", Near: func(string, string) Nearness { return s.near }}
	if s.block != "none" {
		c.Entries = []*attr.Entry{s.entry()}
	}
	if s.block == "named" {
		g, err := c.Named("credentials_name", "a")
		return g.Values, err
	}
	u, err := url.Parse("https://example.com/a")
	if err != nil {
		return attr.Values{}, err
	}
	g, err := c.For(u)
	return g.Values, err
}

// got is the outcome, in the words of want.
func (s situation) got() string {
	v, err := s.resolve()
	if err != nil {
		if !strings.Contains(err.Error(), "X") && !strings.Contains(err.Error(), "block.x") {
			return "an error that does not name x: " + err.Error()
		}
		return "error"
	}
	x := v.String
	if s.boolean {
		x = func(name string) string { return fmt.Sprint(v.Bool(name)) }
	}
	switch text := x("x"); {
	case !v.Has("x"), s.must && (text == "default" || s.boolean && text == "false") && !s.says():
		return "absent"
	case text == given:
		return "filled"
	}
	return "code"
}

// possible leaves out what cannot be.
func (s situation) possible() bool {
	half := s.group == "half" || s.group == "follows"
	switch {
	case s.code == "false" && !s.boolean, s.code == "empty" && s.boolean:
	case s.by == "layer" && s.block != "key provider": // TF_ENCRYPTION says nothing of sources
	case s.by == "layer" && s.code == "value": // a layer over the code: see TestEnvironmentDoesNotRoute
	case s.block == "key provider" && s.near != SamePlace, s.block == "named" && s.near != SamePlace:
	case s.block == "none" && (s.code != "absent" || s.beside != "none" && s.beside != "environment" || half):
	case s.block == "none" && s.beside == "environment" && s.near == Unsaid: // the secret is the error
	case s.secret && s.boolean, s.empty && s.code != "empty", s.must && s.group != "", s.by != "variable" && s.near != SamePlace:
	default:
		return true
	}
	return false
}

// each runs f for every possible situation, and returns how many there are.
func each(f func(situation)) (n int) {
	for _, harmless := range []string{"closed", "always", "this", "others"} {
		for flags := range 16 {
			for _, group := range []string{"", "same", "half", "follows"} {
				for _, code := range []string{"absent", "null", "empty", "false", "value"} {
					for _, by := range []string{"nobody", "layer", "variable"} {
						for _, beside := range besides {
							for _, block := range []string{"key provider", "found", "named", "none"} {
								for _, near := range []Nearness{Unsaid, Elsewhere, SameServer, SamePlace} {
									s := situation{harmless, flags&1 > 0, flags&2 > 0, flags&4 > 0, flags&8 > 0, group, code, by, beside, block, near}
									if s.possible() {
										n++
										f(s)
									}
								}
							}
						}
					}
				}
			}
		}
	}
	return n
}

// TestRules: every combination of what an attribute is declared to be, of who
// sets it, of which secret stands beside it and of which server is asked.
func TestRules(t *testing.T) {
	t.Parallel()
	failed := 0
	n := each(func(s situation) {
		if got, want := s.got(), s.want(); got != want {
			if failed++; failed <= 20 {
				t.Errorf("%+v: got %s, want %s", s, got, want)
			}
		}
	})
	if failed > 20 || n < 5000 {
		t.Errorf("%d of %d combinations fail", failed, n)
	}
}
