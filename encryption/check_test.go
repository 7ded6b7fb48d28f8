package encryption_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

// TestCheck finds every mistake in the settings before there is a file, and neither runs
// nor contacts anything.
//
// Promise: Checks
func TestCheck(t *testing.T) {
	t.Parallel()
	const (
		short = `key_provider "pbkdf2" "short" { passphrase = "c4n4ry" }
			method "aes_gcm" "short" { keys = key_provider.pbkdf2.short }` + "\n"
		chain = `key_provider "pbkdf2" "chain" { chain = key_provider.pbkdf2.short }
			method "aes_gcm" "chain" { keys = key_provider.pbkdf2.chain }` + "\n"
		doubtful = `key_provider "pbkdf2" "k" { passphrase = "'correct horse battery'" }
			method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }` + "\n"
	)
	state := func(methods ...string) string { // the second is a fallback
		return "state {\nmethod = " + strings.Join(methods, "\nfallback {\nmethod = ") + strings.Repeat("\n}", len(methods)) + "\n"
	}
	says := golden(t, "check")
	marker := filepath.ToSlash(filepath.Join(t.TempDir(), "ran"))
	for name, c := range map[string]struct {
		text  string
		found string // where, with the target behind "@"; doubts begin with "?"
	}{
		"nothing": {},
		"good":    {text: keys + state("method.aes_gcm.a", "method.aes_gcm.b")},
		"a literal key": {text: `method "aes_gcm" "m" {
			keys = {
				encryption_key = [1]
				decryption_key = [1]
			}
		}`},
		"a program": {text: `key_provider "external" "k" { command = ["touch", "` + marker + `"] }
			method "aes_gcm" "m" { keys = key_provider.external.k }`},
		"a short passphrase": {text: short, found: "key_provider.pbkdf2.short.passphrase"},
		"a short passphrase of all methods": {text: short + chain + state("method.aes_gcm.short", "method.aes_gcm.chain"),
			found: "key_provider.pbkdf2.short.passphrase@state"},
		"a short passphrase of a fallback": {text: keys + short + state("method.aes_gcm.a", "method.aes_gcm.short"),
			found: "key_provider.pbkdf2.short.passphrase"},
		"a short passphrase beside a fallback": {text: keys + short + state("method.aes_gcm.short", "method.aes_gcm.a"),
			found: "key_provider.pbkdf2.short.passphrase"},
		"age without identities": {text: `method "age" "m" {}` + "\n" + state("method.age.m"), found: "method.age.m@state"},
		"no key provider of a target": {text: `method "aes_gcm" "m" { keys = key_provider.pbkdf2.gone }` + "\n" + state("method.aes_gcm.m"),
			found: "method.aes_gcm.m.keys@state"},
		"of a chain": {text: short + chain, found: "key_provider.pbkdf2.short.passphrase"},
		"of then": {found: "key_provider.pbkdf2.short.passphrase", text: short + `method "kubeform" "m" {
			key  = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
			then = method.aes_gcm.short
		}`},
		"then is a circle": {found: "method.kubeform.m.then@state method.kubeform.m.then@plan", text: `method "kubeform" "m" {
			key  = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
			then = method.kubeform.m
		}` + "\n" + state("method.kubeform.m") + strings.Replace(state("method.kubeform.m"), "state", "plan", 1)},
		"then is a circle of no target": {found: "method.kubeform.m.then", text: `method "kubeform" "m" {
			key  = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
			then = method.kubeform.m
		}`},
		"an unknown kind":                    {text: `method "xyz" "m" {}`, found: "method.xyz.m"},
		"an unknown kind, named by a target": {found: "state@state method.aes_gmc.m", text: `method "aes_gmc" "m" {}` + "\n" + state("method.aes_gcm.m")},
		"an unknown kind of key provider": {text: `key_provider "xyz" "k" {}` + "\n" + `method "aes_gcm" "m" { keys = key_provider.xyz.k }`,
			found: "key_provider.xyz.k"},
		"no key provider":      {text: `method "aes_gcm" "m" { keys = key_provider.static.gone }`, found: "method.aes_gcm.m.keys"},
		"another key provider": {text: keys + `method "aes_gcm" "m" { keys = key_provider.pbkdf2.gone }`, found: "method.aes_gcm.m.keys"},
		"a circle": {text: `key_provider "pbkdf2" "k" { chain = key_provider.pbkdf2.k }
			key_provider "pbkdf2" "l" { chain = key_provider.pbkdf2.k }
			method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }`, found: "key_provider.pbkdf2.k"},
		"no argument":            {text: `method "aes_gcm" "m" {}`, found: "method.aes_gcm.m.keys"},
		"no method":              {text: state("method.aes_gcm.a"), found: "state@state"},
		"two that are not there": {text: keys + state("method.aes_gcm.x", "method.aes_gcm.y"), found: "state@state state@state"},
		"enforced":               {text: strings.Replace(state(`"unencrypted"`), "}", "enforced = true\n}", 1), found: "state@state"},
		"of other states": {text: "remote_state_data_sources {\ndefault { method = method.a.b }\n}",
			found: "remote_state_data_sources.default@remote_state_data_sources.default"},
		"of one other state": {text: "remote_state_data_sources {\nremote_state_data_source \"x\" { method = method.a.b }\n}",
			found: "remote_state_data_source x@remote_state_data_source x"},
		"a doubt": {text: doubtful + state("method.aes_gcm.m"), found: "?key_provider.pbkdf2.k.passphrase@state"},
		"a doubt behind then": {found: "?key_provider.pbkdf2.k.passphrase@state", text: doubtful + `method "age" "outer" {
			recipients = ["age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z"]
			then       = method.aes_gcm.m
		}` + "\n" + state("method.age.outer")},
		"a doubt that nothing is sealed with": {text: doubtful + keys + state("method.aes_gcm.a", "method.aes_gcm.m")},
	} {
		var found []string
		var errs []error
		for _, f := range newEncryption(t, lighttest.Registry(), c.text).Check() {
			where := strings.Trim(f.Err.Address+"."+f.Err.Attr, ".")
			if f.Target != "" {
				where += "@" + f.Target
			}
			if f.Doubt {
				where = "?" + where
			}
			found, errs = append(found, where), append(errs, f.Err)
		}
		if errs != nil {
			says.Error(t, name, errors.Join(errs...))
		}
		if got := strings.Join(found, " "); got != c.found {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if found, _ := filepath.Glob(marker); found != nil {
		t.Error("the program was run")
	}
	lone, err := encryption.Load(lighttest.Registry(), encryption.Passphrase("too short"))
	if err != nil {
		t.Fatal(err)
	}
	if found := lone.Check(); len(found) != 2 || found[0].Err.Attr != "passphrase" || found[0].Target != "state" || found[1].Target != "plan" {
		t.Errorf("got %v", found)
	}
	if found := use(t, lone, lone.State().Methods()...).Check(); len(found) != 1 || found[0].Err.Attr != "passphrase" {
		t.Errorf("got %v", found)
	}
	unknown, err := encryption.Load(lighttest.Registry(), unstable.Layer(&config.Config{Methods: map[string]*entries.Entry{
		"method.xyz.m": entries.NewEntry("method.xyz.m", attr.Table{Name: "xyz"}, map[string]cty.Value{}),
	}}))
	if err != nil {
		t.Fatal(err)
	}
	if found := unknown.Check(); len(found) != 1 { // which lists the kinds in any order
		t.Errorf("got %v", found)
	}
}

// TestCheckTwoOfOneArgument: what excludes two others has two mistakes.
func TestCheckTwoOfOneArgument(t *testing.T) {
	t.Parallel()
	registry := withBox()
	registry.Methods[len(registry.Methods)-1].Attrs = []attr.Attr{
		{Name: "key", Type: cty.String, Excludes: []string{"b", "c"}}, {Name: "b", Type: cty.String}, {Name: "c", Type: cty.String},
	}
	found := newEncryption(t, registry, `method "box" "m" {
		key = "a"
		b   = "b"
		c   = "c"
	}`).Check()
	if len(found) != 2 || found[0].Err.Attr != "key" || found[1].Err.Attr != "key" {
		t.Errorf("got %v", found)
	}
}

// TestCheckIsNoCondition: a fallback that cannot be used harms nobody before its turn, as
// in OpenTofu.
func TestCheckIsNoCondition(t *testing.T) {
	t.Parallel()
	enc := newEncryption(t, lighttest.Registry(), keys+`
		key_provider "pbkdf2" "short" { passphrase = "too short" }
		method "aes_gcm" "short" { keys = key_provider.pbkdf2.short }`)
	target := use(t, enc, "method.aes_gcm.a", "method.aes_gcm.short")
	if enc.Check() == nil {
		t.Error("nothing is wrong")
	}
	if _, err := target.Decrypt(t.Context(), seal(t, all, state)); err != nil {
		t.Error(err)
	}
	if _, err := target.Encrypt(t.Context(), []byte(state)); err != nil {
		t.Error(err)
	}
}

// A method is named by its kind if it can do without a block: all that it requires may
// come from the environment.
func TestUseByKind(t *testing.T) {
	t.Parallel()
	says := golden(t, "a method by its kind")
	for name, c := range map[string]struct {
		attr attr.Attr
		ok   bool
	}{
		"required":                        {attr: attr.Attr{Required: true}},
		"optional":                        {ok: true},
		"required, or in the environment": {attr: attr.Attr{Required: true, Env: []string{"BOX_KEY"}}, ok: true},
		"optional, or in the environment": {attr: attr.Attr{Env: []string{"BOX_KEY"}}, ok: true},
	} {
		registry := withBox()
		c.attr.Name, c.attr.Type = "key", cty.String
		registry.Methods[len(registry.Methods)-1].Attrs = []attr.Attr{c.attr}
		_, err := newEncryption(t, registry, "").Use("box")
		if !c.ok {
			says.Error(t, name, err)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
