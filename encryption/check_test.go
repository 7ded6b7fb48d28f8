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

// TestCheck finds every mistake in the settings of a target before there is a file, and
// neither runs nor contacts anything.
func TestCheck(t *testing.T) {
	t.Parallel()
	const (
		short = `key_provider "pbkdf2" "short" { passphrase = "c4n4ry" }
			method "aes_gcm" "short" { keys = key_provider.pbkdf2.short }` + "\n"
		chain = `key_provider "pbkdf2" "chain" { chain = key_provider.pbkdf2.short }
			method "aes_gcm" "chain" { keys = key_provider.pbkdf2.chain }` + "\n"
	)
	says := golden(t, "check")
	marker := filepath.ToSlash(filepath.Join(t.TempDir(), "ran"))
	for name, c := range map[string]struct {
		text    string
		methods string // named in the target; those that cannot be used begin with "!"
	}{
		"good": {text: keys, methods: "method.aes_gcm.a method.aes_gcm.b unencrypted"},
		"a literal key": {methods: "method.aes_gcm.m", text: `method "aes_gcm" "m" {
			keys = {
				encryption_key = [1]
				decryption_key = [1]
			}
		}`},
		"a program": {methods: "method.aes_gcm.m", text: `key_provider "external" "k" { command = ["touch", "` + marker + `"] }
			method "aes_gcm" "m" { keys = key_provider.external.k }`},
		"a short passphrase": {text: short, methods: "!method.aes_gcm.short"},
		"of a chain":         {text: short + chain, methods: "!method.aes_gcm.chain"},
		"of a fallback":      {text: keys + short, methods: "method.aes_gcm.a !method.aes_gcm.short"},
		"of two":             {text: keys + short + chain, methods: "!method.aes_gcm.chain method.aes_gcm.a !method.aes_gcm.short"},
		"of then": {text: short + `method "kubeform" "m" {
			key  = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
			then = method.aes_gcm.short
		}`, methods: "!method.kubeform.m"},
		"an unknown kind": {text: `method "xyz" "m" {}`, methods: "!method.xyz.m"},
		"an unknown kind of key provider": {text: `key_provider "xyz" "k" {}` + "\n" + `method "aes_gcm" "m" { keys = key_provider.xyz.k }`,
			methods: "!method.aes_gcm.m"},
		"no key provider": {text: `method "aes_gcm" "m" { keys = key_provider.static.gone }`, methods: "!method.aes_gcm.m"},
		"a circle": {text: `key_provider "pbkdf2" "k" { chain = key_provider.pbkdf2.k }
			method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }`, methods: "!method.aes_gcm.m"},
		"no argument": {text: `method "aes_gcm" "m" {}`, methods: "!method.aes_gcm.m"},
	} {
		var methods, broken []string
		for _, m := range strings.Fields(c.methods) {
			address, isBroken := strings.CutPrefix(m, "!")
			methods = append(methods, address)
			if isBroken {
				broken = append(broken, address)
			}
		}
		err := use(t, newEncryption(t, lighttest.Registry(), c.text), methods...).Check()
		if len(broken) == 0 {
			if err != nil {
				t.Errorf("%s: got %v", name, err)
			}
			continue
		}
		failed, ok := errors.AsType[*encryption.Error](err)
		if !ok || failed.Step != encryption.StepConfiguration || reason(t, err) != "other" {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		says.Error(t, name, err)
		var named []string
		for _, a := range failed.Attempts {
			named = append(named, a.Method)
		}
		if strings.Join(named, " ") != strings.Join(broken, " ") {
			t.Errorf("%s: got %q: %v", name, named, err)
		}
	}
	if found, _ := filepath.Glob(marker); found != nil {
		t.Error("the program was run")
	}
	lone, err := encryption.Load(lighttest.Registry(), encryption.Passphrase("too short"))
	if err != nil {
		t.Fatal(err)
	}
	if mistake, ok := errors.AsType[*attr.Error](lone.State().Check()); !ok || mistake.Attr != "passphrase" {
		t.Errorf("got %v", lone.State().Check())
	}
	unknown, err := encryption.Load(lighttest.Registry(), unstable.Layer(&config.Config{Methods: map[string]*entries.Entry{
		"method.xyz.m": entries.NewEntry("method.xyz.m", attr.Table{Name: "xyz"}, map[string]cty.Value{}),
	}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := use(t, unknown, "method.xyz.m").Check(); reason(t, err) != "other" { // which lists the kinds in any order
		t.Errorf("got %v", err)
	}
}

// TestCheckIsNoCondition: a fallback that cannot be used harms nobody before its turn, as
// in OpenTofu.
func TestCheckIsNoCondition(t *testing.T) {
	t.Parallel()
	target := use(t, newEncryption(t, lighttest.Registry(), keys+`
		key_provider "pbkdf2" "short" { passphrase = "too short" }
		method "aes_gcm" "short" { keys = key_provider.pbkdf2.short }`), "method.aes_gcm.a", "method.aes_gcm.short")
	if err := target.Check(); err == nil {
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
