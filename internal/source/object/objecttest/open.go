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

// Attrs are the attributes of a block.
type Attrs map[string]cty.Value

// Strings returns attributes from alternating names and values.
func Strings(pairs ...string) Attrs {
	out := Attrs{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = cty.StringVal(pairs[i+1])
	}
	return out
}

// With returns a copy of a in which one attribute is set. If value is "" or nil, the attribute is removed.
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

// Settings returns provider settings with these credentials blocks. With a nil env, the environment is not
// used.
func Settings(kind source.Kind, env attr.LookupEnv, blocks ...Attrs) source.Settings {
	s := source.Settings{LookupEnv: env}
	for _, b := range blocks {
		s.Credentials.Entries = append(s.Credentials.Entries, unstable.NewEntry("credentials."+kind.Name, kind.Credentials, b))
	}
	return s
}

// Variables returns an environment with these variables. A nil map means that the environment must not be
// used.
func Variables(env map[string]string) attr.LookupEnv {
	if env == nil {
		return nil
	}
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// Open opens a source in the same way as a data source does.
func Open(kind source.Kind, s source.Settings, a Attrs, workspace string) (source.Source, error) {
	values, err := unstable.NewEntry("data.statecrypt_remote_state.test."+kind.Name, kind.Table, a).Decode(kind.Table, s.LookupEnv)
	if err != nil {
		return nil, err
	}
	return kind.Start(s)(source.Request{Values: values, Workspace: workspace, MaxSize: 1 << 20})
}

// Read opens a source and reads from it once. It fails the test if the error shows a secret or a server's
// message.
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

// Hurried returns network settings with almost no waiting time between attempts.
func Hurried() object.Network {
	return object.Network{MaxWait: time.Millisecond, Attempts: 2}
}

// Through returns network settings that connect to the hosts of internet.
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

// Asked returns the first host that a vendor's client would contact. It returns an empty string if the block
// or the place is refused before that. Nothing is sent.
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
