package objecttest

import (
	"errors"
	"maps"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Attrs are those of a block.
type Attrs map[string]cty.Value

// Strings makes attributes from names and values, in turn.
func Strings(pairs ...string) Attrs {
	out := Attrs{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = cty.StringVal(pairs[i+1])
	}
	return out
}

// With returns a with one more, or another, attribute; "" and nil take it out.
func (a Attrs) With(name string, value any) Attrs {
	out := maps.Clone(a)
	switch v := value.(type) {
	case cty.Value:
		out[name] = v
	case bool:
		out[name] = cty.BoolVal(v)
	case int:
		out[name] = cty.NumberIntVal(int64(v))
	case []string:
		var list []cty.Value
		for _, text := range v {
			list = append(list, cty.StringVal(text))
		}
		out[name] = cty.ListVal(list)
	case Attrs:
		out[name] = cty.ObjectVal(v)
	case string:
		out[name] = cty.StringVal(v)
	}
	if value == nil || value == "" {
		delete(out, name)
	}
	return out
}

// Settings are those of a provider with these blocks of credentials; env is nil
// where the environment is switched off.
func Settings(kind source.Kind, env attr.LookupEnv, blocks ...Attrs) source.Settings {
	s := source.Settings{LookupEnv: env}
	for _, b := range blocks {
		s.Credentials.Entries = append(s.Credentials.Entries, unstable.NewEntry("credentials."+kind.Name, kind.Credentials, b))
	}
	return s
}

// Variables is an environment; nil is one that is switched off.
func Variables(env map[string]string) attr.LookupEnv {
	if env == nil {
		return nil
	}
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// Open makes a source as a data source would.
func Open(kind source.Kind, s source.Settings, a Attrs, workspace string) (source.Source, error) {
	values, err := unstable.NewEntry("data.statecrypt_remote_state.test."+kind.Name, kind.Table, a).Decode(kind.Table, s.LookupEnv)
	if err != nil {
		return nil, err
	}
	return kind.Start(s)(source.Request{Values: values, Workspace: workspace, MaxSize: 1 << 20})
}

// Read opens a source and reads it, once. Its error must not show a secret, or
// what the server said.
func Read(t *testing.T, kind source.Kind, s source.Settings, a Attrs, workspace string) (*source.Snapshot, error) {
	t.Helper()
	src, err := Open(kind, s, a, workspace)
	if err != nil {
		return nil, shown(t, err)
	}
	snap, err := src.Fetch(t.Context())
	return snap, shown(t, err)
}

func shown(t *testing.T, err error) error {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), Canary) {
		t.Errorf("the error shows a secret or an answer: %v", err)
	}
	return err
}

// Hurried is a network on which nobody waits between two tries.
func Hurried() object.Network {
	return object.Network{MaxWait: time.Millisecond, Attempts: 2}
}

// Through is a network whose hosts are those of an internet.
func Through(t *testing.T, internet *cloudtest.Internet) object.Network {
	t.Helper()
	ca, err := os.ReadFile(internet.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	n := Hurried()
	n.Roots = nettest.Pool(string(ca))
	n.Proxy = func(*url.URL) (*url.URL, error) { return url.Parse(internet.Proxy) }
	return n
}

// Asked is the host that a vendor's client asks first, "" if the block or the
// place is refused before that. Nothing is sent.
func Asked(t *testing.T, v object.Vendor, block, place Attrs) (host string) {
	t.Helper()
	kind := v.KindOver(object.Network{Attempts: 1, Proxy: func(u *url.URL) (*url.URL, error) {
		host = u.Host
		return nil, errors.New("stop")
	}})
	src, err := Open(kind, Settings(kind, nil, block), place, "default")
	if err != nil {
		return ""
	}
	if _, err := src.Fetch(t.Context()); err == nil {
		t.Error("it was read")
	}
	if host == "" {
		t.Error("nobody was asked")
	}
	return host
}
