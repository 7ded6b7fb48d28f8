package source

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

// server is a kind with two switches, and with an address beside its host.
func server() Credentials {
	table := attr.Table{Name: "test", Attrs: []attr.Attr{
		{Name: "name", Type: cty.String},
		{Name: "host", Type: cty.String, Env: []string{"X_HOST"}},
		{Name: "proxy", Type: cty.String, Env: []string{"X_PROXY"}},
		{Name: "use_directory", Type: cty.Bool, Group: "key", Env: []string{"X_USE_DIRECTORY"}},
		{Name: "in_cluster", Type: cty.Bool, Group: "cluster", Env: []string{"X_IN_CLUSTER"}},
	}}
	return Credentials{Table: table, Home: Home{Vars: []string{"X_HOST"}, Attrs: []string{"host"}, Compare: func(home, asked string) Match {
		if home == asked {
			return SameServer
		}
		return OtherServer
	}}}
}

// completed returns what a block says, completed by the variables of env.
func (c Credentials) completed(t *testing.T, block map[string]cty.Value, env map[string]string) Grant {
	t.Helper()
	c.Entries = []*unstable.Entry{unstable.NewEntry("block", c.Table, block)}
	c.Env = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	g, err := c.Named("credentials_name", "")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestFalseOfABlockStays: a switch that the block turns off is off, whatever a
// variable says.
func TestFalseOfABlockStays(t *testing.T) {
	t.Parallel()
	for name, variable := range map[string]string{"use_directory": "X_USE_DIRECTORY", "in_cluster": "X_IN_CLUSTER"} {
		env := map[string]string{variable: "true"}
		if g := server().completed(t, map[string]cty.Value{name: cty.False}, env); g.Bool(name) || g.Variable(name) != "" {
			t.Errorf("%s = false: %s makes it %t", name, variable, g.Bool(name))
		}
		if g := server().completed(t, nil, env); !g.Bool(name) || g.Variable(name) != variable {
			t.Errorf("without %s, %s has no effect", name, variable)
		}
	}
}

// TestNoPlaceAwayFromHome: an address of the environment is for the server that its
// family names, and for no other.
func TestNoPlaceAwayFromHome(t *testing.T) {
	t.Parallel()
	env := map[string]string{"X_HOST": "home", "X_PROXY": "ENV"}
	for host, want := range map[string]string{"home": "ENV", "other": ""} {
		if g := server().completed(t, map[string]cty.Value{"host": cty.StringVal(host)}, env); g.String("proxy") != want {
			t.Errorf("a block for %s: got %q, want %q", host, g.String("proxy"), want)
		}
	}
}
