package encryption_test

import (
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/kubeform"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

func TestPassphrase(t *testing.T) {
	t.Parallel()
	load := func(layers ...encryption.Layer) *encryption.Encryption {
		enc, err := encryption.Load(lighttest.Registry(), layers...)
		if err != nil {
			t.Fatal(err)
		}
		return enc
	}
	const passphrase = "correct-horse-battery-staple"
	byText := load(encryption.Code(exampleText, "text"))
	sealing, opening := load(encryption.Passphrase(passphrase)), load(encryption.Passphrase(passphrase))
	for plain, c := range map[string]struct{ sealing, opening encryption.Target }{
		state: {sealing.State(), opening.State()},
		plan:  {sealing.Plan(), opening.Plan()},
	} {
		file, err := c.sealing.Encrypt(t.Context(), []byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		if opened, err := use(t, byText, "method.aes_gcm.main").Decrypt(t.Context(), file); err != nil || string(opened.Data) != plain {
			t.Errorf("by OpenTofu's text: %v", err)
		}
		if opened, err := c.opening.Decrypt(t.Context(), file); err != nil || string(opened.Data) != plain {
			t.Errorf("%v", err)
		}
		if _, err := c.opening.Decrypt(t.Context(), []byte(plain)); reason(t, err) != "plaintext" {
			t.Errorf("plaintext: %v", err)
		}
	}

	says := golden(t, "a passphrase alone")
	_, err := load(encryption.Passphrase("short-canary")).State().Encrypt(t.Context(), []byte(state))
	says.Error(t, "a short one", err)
	own := ownRegistry()
	own.Methods = append(own.Methods[:0:0], lighttest.Method("aes_gcm"))
	for name, registry := range map[string]encryption.Registry{"without the kinds": {}, "without pbkdf2": own} {
		_, err := encryption.Load(registry, encryption.Passphrase(passphrase))
		says.Error(t, name, err)
	}
	environment := encryption.Environment(variables("TF_ENCRYPTION", `state { enforced = true }`))
	merged, err := encryption.Load(lighttest.Registry(), encryption.Passphrase(passphrase), environment)
	if err != nil || !merged.State().Enforced() || merged.Plan().Enforced() {
		t.Errorf("merged with another layer: %v", err)
	}
}

// TestMistakesInCode: settings that a program builds are checked as text is.
//
// Promise: Settings in code
func TestMistakesInCode(t *testing.T) {
	t.Parallel()
	const keys, method = "key_provider.pbkdf2.main", "method.aes_gcm.main"
	says := golden(t, "settings of code")
	passphrase, reference := cty.StringVal("correct-horse-battery-staple"), map[string]cty.Value{"keys": cty.StringVal(keys)}
	for name, c := range map[string]struct {
		keys, method map[string]cty.Value
		refused      bool
	}{
		"an alias": {keys: map[string]cty.Value{"passphrase": passphrase, "encrypted_metadata_alias": cty.StringVal("a"),
			"iterations": cty.NumberIntVal(200_000), "hash_function": cty.StringVal("sha256")}, method: reference},
		"an alias that is a number": {keys: map[string]cty.Value{"passphrase": passphrase, "encrypted_metadata_alias": cty.NumberIntVal(1),
			"iterations": cty.NumberIntVal(200_000), "hash_function": cty.StringVal("sha256")}, method: reference},
		"an alias that is not known": {
			keys:   map[string]cty.Value{"passphrase": passphrase, "encrypted_metadata_alias": cty.UnknownVal(cty.String)},
			method: reference, refused: true,
		},
		"misspelled": {
			keys:   map[string]cty.Value{"passphrase": passphrase, "iteratons": cty.NumberIntVal(1_000_000)},
			method: reference, refused: true,
		},
		"of another kind": {
			keys:   map[string]cty.Value{"passphrase": passphrase},
			method: map[string]cty.Value{"keys": cty.StringVal(keys), "then": cty.StringVal(method)}, refused: true,
		},
		"a reference that is a number": {
			keys:   map[string]cty.Value{"passphrase": passphrase},
			method: map[string]cty.Value{"keys": cty.NumberIntVal(1)}, refused: true,
		},
	} {
		enc, err := encryption.Load(lighttest.Registry(), unstable.Layer(&config.Config{
			KeyProviders: map[string]*entries.Entry{keys: entries.NewEntry(keys, lighttest.KeyProvider("pbkdf2").Table, c.keys)},
			Methods:      map[string]*entries.Entry{method: entries.NewEntry(method, lighttest.Method("aes_gcm").Table, c.method)},
			State:        &config.Target{Method: method},
		}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = enc.State().Encrypt(t.Context(), []byte(state))
		if c.refused {
			says.Error(t, name, err)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	for name, then := range map[string]cty.Value{
		"then a number": cty.NumberIntVal(1), "then no method": cty.StringVal("not a method"),
		"then nowhere": cty.StringVal("method.aes_gcm.nowhere"),
	} {
		outer := entries.NewEntry("method.kubeform.outer", kubeform.Block().Table, map[string]cty.Value{"then": then,
			"key": cty.StringVal("Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2E=")})
		layer := unstable.Layer(&config.Config{Methods: map[string]*entries.Entry{"method.kubeform.outer": outer}})
		enc, err := encryption.Load(lighttest.Registry(), layer)
		if err != nil {
			t.Fatal(err)
		}
		target, err := enc.Use("method.kubeform.outer")
		if err == nil {
			_, err = target.Decrypt(t.Context(), []byte(`{"sops":{"mac":"m","version":"3.9.0"}}`))
		}
		says.Error(t, name, err)
	}
}

// TestAliasOfAnother: an alias that has no value yet harms no file of another key provider.
func TestAliasOfAnother(t *testing.T) {
	t.Parallel()
	const one = "key_provider \"static\" \"%s\" { key = \"000102030405060708090a0b0c0d0e0f\" }\n" +
		"method \"aes_gcm\" \"m\" { keys = key_provider.static.%[1]s }\nstate { method = method.aes_gcm.m }"
	file := seal(t, fmt.Sprintf(one, "old"), state)
	renamed := encryption.Code(fmt.Sprintf(one, "new"), "text")
	for _, alias := range []cty.Value{cty.UnknownVal(cty.String), cty.NullVal(cty.String), cty.NilVal} {
		another := &config.Config{KeyProviders: map[string]*entries.Entry{"key_provider.static.z": {
			Address: "key_provider.static.z", Kind: "static", Settings: map[string]entries.Setting{"encrypted_metadata_alias": {Value: alias}},
		}}}
		enc, err := encryption.Load(lighttest.Registry(), renamed, unstable.Layer(another))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := enc.State().Decrypt(t.Context(), file); err != nil {
			t.Errorf("%#v: %v", alias, err)
		}
	}
}

// TestVariables: what is no object and no map is an error, and nil is no layer.
func TestVariables(t *testing.T) {
	t.Parallel()
	const text = keys + `state { method = var.method }`
	says := golden(t, "variables")
	for name, c := range map[string]struct {
		variables cty.Value
		ok        bool
	}{
		"an object": {variables: cty.ObjectVal(map[string]cty.Value{"method": cty.StringVal("method.aes_gcm.a")}), ok: true},
		"a map":     {variables: cty.MapVal(map[string]cty.Value{"method": cty.StringVal("method.aes_gcm.a")}), ok: true},
		"text":      {variables: cty.StringVal("canary")},
		"a list":    {variables: cty.ListVal([]cty.Value{cty.StringVal("canary")})},
		"nothing":   {},
		"null":      {variables: cty.NullVal(cty.String)},
	} {
		enc, err := encryption.Load(lighttest.Registry(), encryption.Code(text, "text", unstable.With(func(o *unstable.Options) {
			o.Variables = c.variables
		})))
		if err == nil {
			_, err = enc.State().Encrypt(t.Context(), []byte(state))
		}
		if !c.ok {
			says.Error(t, name, err)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var none encryption.Layer
	enc, err := encryption.Load(lighttest.Registry(), none, unstable.Layer(nil))
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := enc.State().Decrypt(t.Context(), []byte(state)); err != nil || opened.Encrypted {
		t.Errorf("without a layer: %v", err)
	}
}

// TestKindsInOrder: an error lists the kinds that there are in the same order each time.
func TestKindsInOrder(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 20 {
		entry := &entries.Entry{Address: "method.none.m", Kind: "none"}
		layer := unstable.Layer(&config.Config{Methods: map[string]*entries.Entry{"method.none.m": entry}})
		enc, err := encryption.Load(lighttest.Registry(), layer)
		if err != nil {
			t.Fatal(err)
		}
		target, err := enc.Use("method.none.m")
		if err == nil {
			_, err = target.Decrypt(t.Context(), []byte(`{}`))
		}
		if err == nil {
			t.Fatal("a kind that is not there is used")
		}
		seen[err.Error()] = true
	}
	if len(seen) != 1 {
		t.Errorf("got %v", seen)
	}
}
