package builtin_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

// leaf is an attribute of a kind, with the names of the blocks around it.
type leaf struct {
	attr.Attr
	path []string
}

func leaves(attrs []attr.Attr, path ...string) []leaf {
	var all []leaf
	for _, a := range attrs {
		at := append(path[:len(path):len(path)], a.Name)
		if a.Attrs == nil {
			all = append(all, leaf{a, at})
		}
		all = append(all, leaves(a.Attrs, at...)...)
	}
	return all
}

func (l leaf) isSecret() bool { return l.Secrecy != attr.Public }

// isClosed reports whether there is a value of l that the environment may not
// give beside a secret of the code.
func (l leaf) isClosed() bool { return l.Harmless == "" || l.HarmlessIf != nil }

// routed is a kind whose secrets are sent somewhere.
type routed struct {
	what           string // "key_provider" or "method"
	table          attr.Table
	secrets, route []leaf
}

func routedKinds() []routed {
	keyProviders, methods := unstable.Tables(builtin.Registry())
	var all []routed
	for what, tables := range map[string][]attr.Table{"key_provider": keyProviders, "method": methods} {
		for _, table := range tables {
			r := routed{what: what, table: table}
			for _, l := range leaves(table.Attrs) {
				if l.Secrecy.IsSent() {
					r.secrets = append(r.secrets, l)
				}
				if l.isClosed() && l.Form != attr.Command && (!l.Secrecy.IsSent() || l.Env != nil) {
					r.route = append(r.route, l)
				}
			}
			if len(r.secrets) > 0 && len(r.route) > 0 {
				all = append(all, r)
			}
		}
	}
	return all
}

// setting writes an attribute down, with the blocks around it.
func (l leaf) setting(value string) string {
	text := l.path[len(l.path)-1] + " = " + l.expression(value)
	for i := len(l.path) - 2; i >= 0; i-- {
		text = l.path[i] + " {\n" + text + "\n}"
	}
	return text
}

func (l leaf) expression(value string) string {
	switch {
	case strings.HasPrefix(value, "var.") || value == "null":
		return value
	case l.Type == cty.Bool:
		isDefault := value == "code"
		return strconv.FormatBool(isDefault == (l.Default != cty.NilVal && l.Default.True()))
	case l.Type.IsListType():
		return `["` + value + `"]`
	}
	return `"` + value + `"`
}

func (r routed) text(settings ...string) string {
	return r.what + ` "` + r.table.Name + "\" \"x\" {\n" + strings.Join(settings, "\n") + "\n}"
}

// refusals is what each error says of a setting of TF_ENCRYPTION beside a secret, up to the name of the secret. The
// golden has the whole error ("a setting of TF_ENCRYPTION: an address").
func refusals(t *testing.T) string {
	t.Helper()
	r := routed{what: "key_provider", table: openbao.Block().Table}
	err := r.resolve(t, r.text(`token = "code"`), r.text(`address = "https://a"`))
	if err == nil {
		t.Fatal("an address goes to a token of the code")
	}
	_, says, _ := strings.Cut(err.Error(), ".address: ")
	says, _, found := strings.Cut(says, " must not affect the secret in token")
	if !found {
		t.Fatalf("got %v", err)
	}
	return says
}

func (r routed) resolve(t *testing.T, code, environment string) error {
	t.Helper()
	canary := encryption.Variables(map[string]cty.Value{"canary": cty.StringVal("canary")})
	lookup := func(name string) (string, bool) { return environment, name == "TF_ENCRYPTION" }
	merged, err := unstable.Read(builtin.Registry(), encryption.Code(code, "code", canary), encryption.Environment(lookup, canary))
	if err != nil {
		t.Fatal(err)
	}
	entry := merged.KeyProviders[r.what+"."+r.table.Name+".x"]
	if entry == nil {
		entry = merged.Methods[r.what+"."+r.table.Name+".x"]
	}
	_, err = entry.Resolve(r.table, unstable.Scope{Lookup: merged.LookupEnv, AllowCommands: merged.AllowCommands})
	return err
}

// refusal is the error that says what the environment must not do. Other mistakes
// do not matter here: these are no complete settings.
func (r routed) refusal(t *testing.T, says, code, environment string) string {
	t.Helper()
	err := r.resolve(t, code, environment)
	if err == nil || !strings.Contains(err.Error(), says) {
		return ""
	}
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("a value is shown: %v", err)
	}
	return err.Error()
}

// TestEnvironmentDoesNotRoute: TF_ENCRYPTION sets nothing beside a secret of the
// code that is not harmless.
//
// Promise: TF_ENCRYPTION (every key provider and method)
func TestEnvironmentDoesNotRoute(t *testing.T) {
	t.Parallel()
	says := refusals(t)
	for _, r := range routedKinds() {
		for _, secret := range r.secrets {
			for _, route := range r.route {
				if route.path[0] == secret.path[0] {
					continue // one attribute or block, which the environment replaces as a whole
				}
				r.test(t, says, secret, route)
			}
		}
	}
}

func (r routed) test(t *testing.T, says string, secret, route leaf) {
	t.Helper()
	ofCode, ofEnvironment := secret.setting("code"), secret.setting("environment")
	place := strings.Join(route.path, ".")
	namesBoth := func(text string) bool { // of a block, the position is that of the block
		return strings.Contains(text, "TF_ENCRYPTION:2,1: "+r.what+"."+r.table.Name+".x."+route.path[0]) &&
			strings.Contains(text, secret.path[0]) && strings.Contains(text, " (code:2,1)")
	}
	for name, c := range map[string]struct {
		code, environment string
		refused           bool
	}{
		"adds a route":        {r.text(ofCode), r.text(route.setting("environment")), true},
		"changes the route":   {r.text(ofCode, route.setting("code")), r.text(route.setting("environment")), true},
		"takes it away":       {r.text(ofCode, route.setting("code")), r.text(route.setting("null")), true},
		"repeats the route":   {r.text(ofCode, route.setting("code")), r.text(route.setting("code")), false},
		"names nothing":       {r.text(ofCode), r.text(), false},
		"brings own secret":   {r.text(ofCode, route.setting("code")), r.text(ofEnvironment, route.setting("environment")), false},
		"brings secret alone": {r.text(ofCode, route.setting("code")), r.text(ofEnvironment), false},
		"is all there is":     {"", r.text(ofEnvironment, route.setting("environment")), false},
		"uses a variable":     {"", r.text(secret.setting("var.canary"), route.setting("environment")), true},
	} {
		if name == "brings secret alone" && slices.ContainsFunc(r.secrets, func(l leaf) bool { return l.path[0] == route.path[0] }) {
			continue // the route is a secret itself, or stands beside one
		}
		refusal := r.refusal(t, says, c.code, c.environment)
		if (refusal != "") != c.refused {
			t.Errorf("%s: %s, where the environment %s: %q", r.table.Name, place, name, refusal)
		}
		if c.code != "" && c.refused && !namesBoth(refusal) {
			t.Errorf("%s: %s, where the environment %s, is not named: %s", r.table.Name, place, name, refusal)
		}
	}
}

// TestRoutesAreClosed: what sounds like a place, or like a switch that protects
// secrets, is not harmless, and what holds a secret is marked as one.
//
// Promise: TF_ENCRYPTION
// Promise: Where secrets go
func TestRoutesAreClosed(t *testing.T) {
	t.Parallel()
	route := regexp.MustCompile(`(^|_)(address(es)?|endpoints?|hosts?|ur[il]|prox(y|ies)|ca|tls|insecure|skip|verify|redirects?|vaults)(_|$)`)
	secret := regexp.MustCompile(`secret|token|password|passphrase|credential|private|(^|_)jwt|identit(y_file|ies)|key_file|key_pem|profile$`)
	not := map[string]string{
		"aws_kms.endpoints.iam":                      "nothing is sent in any case",
		"aws_kms.ec2_metadata_service_endpoint":      "where credentials come from",
		"aws_kms.ec2_metadata_service_endpoint_mode": "where credentials come from",
		"aws_kms.use_fips_endpoint":                  "a host of AWS in any case",
		"aws_kms.use_dualstack_endpoint":             "a host of AWS in any case",
		"azure_vault.oidc_request_url":               "where a token comes from, and its own goes",
		"azure_vault.msi_endpoint":                   "where a token comes from",
	}
	for _, r := range allKinds() {
		for _, l := range leaves(r.Attrs) {
			name := strings.Join(append([]string{r.Name}, l.path...), ".")
			if _, known := not[name]; known || l.Form == attr.Command {
				delete(not, name)
				continue
			}
			last := strings.Join(l.path, "_")
			if route.MatchString(last) && !l.isClosed() {
				t.Errorf("%s is Harmless", name)
			}
			if secret.MatchString(l.Name) && !l.isSecret() && l.Type != cty.Bool {
				t.Errorf("%s is Public", name)
			}
		}
	}
	for name := range not {
		t.Errorf("there is no %s", name)
	}
}

// TestReasonsOfTheHarmless: each says in a sentence why it does no harm, and the
// words do not say the name of an attribute only.
//
// Promise: Where secrets go
func TestReasonsOfTheHarmless(t *testing.T) {
	t.Parallel()
	for _, table := range allKinds() {
		for _, l := range leaves(table.Attrs) {
			name := table.Name + "." + strings.Join(l.path, ".")
			switch reason := l.Harmless; {
			case reason == "" && l.HarmlessIf != nil:
				t.Errorf("%s is harmless for some values, and does not say why", name)
			case reason != "" && (len(strings.Fields(reason)) < 4 || !strings.HasSuffix(reason, ".")):
				t.Errorf("%s: %q is no sentence", name, reason)
			}
		}
	}
}

func allKinds() []attr.Table {
	keyProviders, methods := unstable.Tables(builtin.Registry())
	return append(keyProviders, methods...)
}
