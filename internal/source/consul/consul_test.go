package consul

import (
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclsimple"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/consul/consultest"
)

type attrs = map[string]cty.Value

func text(s string) cty.Value { return cty.StringVal(s) }

func settingsOf(blocks ...attrs) source.Settings {
	s := source.Settings{Credentials: source.Credentials{Table: credentials()}}
	for _, b := range blocks {
		s.Credentials.Entries = append(s.Credentials.Entries, unstable.NewEntry("credentials[0].consul[0]", credentials(), b))
	}
	return s
}

func request(t *testing.T, a attrs, env attr.LookupEnv) source.Request {
	t.Helper()
	v, err := unstable.NewEntry("data.statecrypt_remote_state.test.consul", table(), a).Decode(table(), env)
	if err != nil {
		t.Fatal(err)
	}
	return source.Request{Values: v, Workspace: "default", MaxSize: 1 << 20}
}

func opened(t *testing.T, s source.Settings, r source.Request) source.Source {
	t.Helper()
	src, err := Kind().Start(s)(r)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// reader is the policy of the example.
func reader(t *testing.T) consultest.Policy {
	t.Helper()
	type rule struct {
		Key    string `hcl:"key,label"`
		Policy string `hcl:"policy"`
	}
	var policy struct {
		Keys     []rule `hcl:"key,block"`
		Prefixes []rule `hcl:"key_prefix,block"`
	}
	file, err := os.ReadFile("../../../examples/sources/consul/policy.hcl")
	if err != nil {
		t.Fatal(err)
	}
	if err := hclsimple.Decode("policy.hcl", file, nil, &policy); err != nil {
		t.Fatal(err)
	}
	return func(verb, key string) bool {
		for _, r := range policy.Keys {
			if r.Policy == verb && r.Key == key {
				return true
			}
		}
		for _, r := range policy.Prefixes {
			if r.Policy == verb && strings.HasPrefix(key, r.Key) {
				return true
			}
		}
		return false
	}
}
