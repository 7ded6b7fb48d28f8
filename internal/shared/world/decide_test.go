package world_test

import (
	"fmt"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// TestDecide: each rule about variables has one example, which testdata/rules.txt shows. Among all
// combinations of facts, no other rule decides, and none lets a variable pass that a fact excludes.
//
// Promise: Where secrets go
func TestDecide(t *testing.T) {
	t.Parallel()
	type facts struct {
		name string
		world.Attribute
		world.Beside
	}
	examples := []struct {
		example string
		facts
	}{
		{"AWS_REGION is not set", facts{}},
		{"only TF_ENCRYPTION has a command for the key provider external",
			facts{name: "TF_ENCRYPTION", Attribute: world.Attribute{IsCommand: true}}},
		{"PG_CONN_STR, and the block of credentials has a conn_str", facts{name: "PG_CONN_STR", Attribute: world.Attribute{IsWritten: true}}},
		{"AZURE_REGIONAL_AUTHORITY_NAME beside a client_secret of the configuration",
			facts{name: "AZURE_REGIONAL_AUTHORITY_NAME", Attribute: world.Attribute{IsFollowed: true}, Beside: world.Beside{Withholds: true}}},
		{"SSL_CERT_DIR with the system's own folder, and use_environment = false",
			facts{name: "SSL_CERT_DIR", Attribute: world.Attribute{IsFollowed: true, IsHarmless: true}, Beside: world.Beside{Withholds: true}}},
		{"TF_HTTP_PASSWORD, and TF_HTTP_ADDRESS names another server than the data source",
			facts{name: "TF_HTTP_PASSWORD", Attribute: world.Attribute{IsIdentity: true, IsHarmless: true},
				Beside: world.Beside{OtherServer: true}}},
		{"TF_HTTP_PASSWORD without TF_HTTP_ADDRESS, and no block covers the server",
			facts{name: "TF_HTTP_PASSWORD", Attribute: world.Attribute{IsIdentity: true}, Beside: world.Beside{NoServer: true}}},
		{"TF_ENCRYPTION uses var.token as the name of a key, which files contain",
			facts{name: "TF_ENCRYPTION", Attribute: world.Attribute{IsShown: true, IsHarmless: true}, Beside: world.Beside{Secret: true}}},
		{"TF_ENCRYPTION has an access_key, and the configuration its secret_key",
			facts{name: "TF_ENCRYPTION", Attribute: world.Attribute{IsSplit: true, IsHarmless: true}, Beside: world.Beside{Secret: true}}},
		{"VAULT_TOKEN beside an address of the configuration",
			facts{name: "VAULT_TOKEN", Attribute: world.Attribute{IsHarmless: true}, Beside: world.Beside{Secret: true}}},
		{"https_proxy beside a secret_key of the configuration", facts{name: "https_proxy", Beside: world.Beside{Secret: true}}},
		{"AWS_REGION without secrets in the configuration", facts{name: "AWS_REGION"}},
		{"VAULT_ADDR beside a token of the configuration", facts{name: "VAULT_ADDR", Beside: world.Beside{Secret: true}}},
	}
	decide := func(f facts) world.Verdict {
		return world.Decide(f.name, f.Attribute, f.Beside)
	}
	golden := testkit.OpenGolden(t, "testdata/rules.txt", "rules")
	has := map[string]bool{}
	for _, e := range examples {
		verdict := decide(e.facts)
		golden.Check(t, verdict.Rule, fmt.Sprintf("%s: %s", verdict.Answer, e.example))
		has[verdict.Rule] = true
	}
	if len(has) != len(examples) {
		t.Errorf("%d examples are of %d rules", len(examples), len(has))
	}
	for n := range 1 << 12 {
		is := func(bit int) bool { return n&(1<<bit) > 0 }
		f := facts{"HTTPS_PROXY", world.Attribute{is(0), is(1), is(2), is(3), is(4), is(5), is(6)},
			world.Beside{is(7), is(8), is(9), is(10), is(11)}}
		verdict := decide(f)
		if !has[verdict.Rule] {
			t.Errorf("the rule %q has no example", verdict.Rule)
			has[verdict.Rule] = true
		}
		if verdict.Answer == world.Used && (f.IsWritten || f.Withholds || f.IsCommand && !f.AllowsCommand || f.OtherServer && f.IsIdentity ||
			f.NoServer && f.IsIdentity || f.Secret && (f.IsShown || f.IsSplit)) {
			t.Errorf("%+v: used, by the rule %s", f, verdict.Rule)
		}
	}
}
