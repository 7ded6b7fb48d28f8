package provider

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

type set = map[string]cty.Value

// several is a block each for these settings.
func several(blocks ...set) cty.Value {
	var out []cty.Value
	for _, b := range blocks {
		out = append(out, cty.ObjectVal(b))
	}
	return cty.TupleVal(out)
}

func staticKeys(names ...string) cty.Value {
	var out []set
	for _, name := range names {
		entry := set{"key": text1(staticKey)}
		if name != "" {
			entry["name"] = text1(name)
		}
		out = append(out, entry)
	}
	return one(set{"static": several(out...)})
}

const mainText = `key_provider "static" "main" { key = "` + staticKey + `" }
method "aes_gcm" "main" { keys = key_provider.static.main }
state { method = method.aes_gcm.main }
`

// What is the only one of its kind need not be named; of two, one must be.
func TestOnlyOne(t *testing.T) {
	t.Parallel()
	bare := several(set{})
	m := &memory{files: map[string][]byte{"sealed": sealedAs(t, mainText, plainState), "plain": []byte(plainState)}}
	golden := openMistakes(t, "only one")
	for name, tt := range map[string]struct {
		provider set
		read     set    // beside the source
		with     string // decrypted_with
		fails    bool   // as in the golden
	}{
		"a key":                  {provider: set{"key_provider": staticKeys("")}, with: "method.aes_gcm.main"},
		"a key with name":        {provider: set{"key_provider": staticKeys("k")}, with: "method.aes_gcm.main"},
		"two keys":               {provider: set{"key_provider": staticKeys("new", "old")}, fails: true},
		"two keys without names": {provider: set{"key_provider": staticKeys("", "")}, fails: true},
		"a method without keys": {provider: set{"key_provider": staticKeys("k"), "method": one(set{"aes_gcm": several(set{"name": text1("m")})})},
			with: "method.aes_gcm.m"},
		"a method without keys, of two": {provider: set{"key_provider": staticKeys("new", "old"), "method": one(set{"aes_gcm": bare})},
			fails: true},
		"a method without any key": {provider: set{"method": one(set{"aes_gcm": bare})}, fails: true},
		"a method that chooses of two": {provider: set{"key_provider": staticKeys("new", "old"), "method": one(set{"aes_gcm": several(
			set{"keys": text1("key_provider.static.old")})})}, with: "method.aes_gcm.main"},
		"two methods": {provider: set{"key_provider": staticKeys(""), "method": one(set{"aes_gcm": several(set{}, set{"name": text1("b")})})},
			fails: true},
		"two methods, one chosen": {provider: set{"key_provider": staticKeys(""),
			"method":  one(set{"aes_gcm": several(set{}, set{"name": text1("b")})}),
			"default": one(set{"method": text1("method.aes_gcm.b")})}, with: "method.aes_gcm.b"},
		"two methods, one chosen by the data source": {provider: set{"key_provider": staticKeys(""),
			"method": one(set{"aes_gcm": several(set{}, set{"name": text1("b")})})}, read: set{"method": text1("method.aes_gcm.b")},
			with: "method.aes_gcm.b"},
		"a default with nothing but a fallback": {provider: set{"key_provider": staticKeys(""),
			"default": one(set{"fallback": one(set{"method": text1("unencrypted")})})}, with: "method.aes_gcm.main"},
		"plaintext by that fallback": {provider: set{"key_provider": staticKeys(""),
			"default": one(set{"fallback": one(set{"method": text1("unencrypted")})})}, read: set{"file": text1("plain")}},
		"an empty default": {provider: set{"key_provider": staticKeys(""), "default": bare},
			with: "method.aes_gcm.main"},
		"an empty default of two": {provider: set{"key_provider": staticKeys("a", "b"), "default": bare}, fails: true},
		"plaintext is no default": {provider: set{"method": one(set{"unencrypted": bare})}, read: set{"file": text1("plain")},
			fails: true},
		"plaintext is no default of a key": {provider: set{"key_provider": staticKeys("")}, read: set{"file": text1("plain")},
			fails: true},
		"plaintext beside a key": {provider: set{"key_provider": staticKeys(""), "method": one(set{"unencrypted": bare})},
			fails: true},
		"a file method is the default": {provider: set{"method": one(set{"sops": bare})}, read: set{"file": text1("plain")},
			fails: true},
		"by kind":           {read: set{"method": text1("sops")}, fails: true},
		"plaintext by kind": {read: set{"method": text1("unencrypted"), "file": text1("plain")}},
		"by a kind that requires settings": {provider: set{"key_provider": staticKeys("")}, read: set{"method": text1("aes_gcm")},
			fails: true},
		"by a kind that requires settings and has none": {read: set{"method": text1("aes_gcm")}, fails: true},
		"by kind, with settings": {provider: set{"method": one(set{"sops": several(set{"name": text1("s")})})},
			read: set{"method": text1("sops")}, fails: true},
		"by something else":             {read: set{"method": text1("aes-gcm")}, fails: true},
		"by something else, with a dot": {read: set{"method": text1("aes_gcm.main")}, fails: true},
		"default by kind":               {provider: set{"default": one(set{"method": text1("sops")})}, fails: true},
		"then by kind": {provider: set{"method": one(set{"age": several(set{"passphrase": text1("p"), "then": text1("sops")})})},
			fails: true},
		"dangling default": {provider: set{"key_provider": staticKeys(""), "default": one(set{"method": text1("method.aes_gcm.mian")})},
			fails: true},
		"dangling keys": {provider: set{"key_provider": staticKeys(""), "method": one(set{"aes_gcm": several(
			set{"keys": text1("key_provider.static.mian")})})}, fails: true},
		"a bad key": {provider: set{"key_provider": one(set{"static": several(set{"key": text1("xyz")})})}, fails: true},
	} {
		c := newCatalog(m)
		read := set{"memory": at("sealed")}
		maps.Copy(read, tt.read)
		if f, ok := read["file"]; ok {
			read["memory"] = at(f.AsString())
			delete(read, "file")
		}
		method, err := decryptedWith(t, c, tt.provider, read)
		switch {
		case tt.fails != (err != nil) || method != tt.with:
			t.Errorf("%s: got %q, %v, want %q", name, method, err, tt.with)
		case tt.fails:
			golden.Check(t, name, readerOf(nil).tell(err))
		}
	}
}

// decryptedWith reads a state: with which method, or the first mistake.
func decryptedWith(t *testing.T, c kinds, provider, read set) (string, error) {
	t.Helper()
	configured, problems := c.configure(object(t, typeOf(c.providerFields()), provider), func(string) (string, bool) { return "", false })
	if len(problems) > 0 {
		return "", problems[0].err
	}
	r, err := requestFor(t, c, read)
	if err != nil {
		return "", err
	}
	state, err := configured.open(t.Context(), r.stateRequest)
	if err != nil {
		return "", err
	}
	if !state.opened.Encrypted {
		return "", nil
	}
	return state.opened.Method, nil
}

// A file of sops, with a key from the environment and nothing in the configuration.
func TestMethodByKindReadsTheEnvironment(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "conformance", "cases", "tbg_sops_age")
	file, err := os.ReadFile(filepath.Join(dir, "state.raw"))
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{files: map[string][]byte{"sealed": file}}
	c := newCatalog(m)
	env := func(name string) (string, bool) {
		return filepath.Join(dir, "age_identity.txt"), name == "SOPS_AGE_KEY_FILE"
	}
	r, err := requestFor(t, c, set{"memory": at("sealed"), "method": text1("sops")})
	if err != nil {
		t.Fatal(err)
	}
	state, err := configureWith(t, c, env, nil).open(t.Context(), r.stateRequest)
	if err != nil || state.opened.Method != "sops" {
		t.Fatalf("got %+v, %v", state, err)
	}
	if _, err := configureWith(t, c, env, set{"use_environment": cty.False}).open(t.Context(), r.stateRequest); !errors.Is(err,
		encryption.ErrNoKey) {
		t.Errorf("without the environment: got %v", err)
	}
}

// A key provider without a name serves derived keys under its default address.
func TestDerivedKeyOfTheOnlyOne(t *testing.T) {
	t.Parallel()
	c := newCatalog(&memory{})
	out := configureWith(t, c, nil, set{"key_provider": one(set{"static": several(set{"key": text1(staticKey), "exportable": cty.True})})})
	key, err := out.encryption.DeriveKey(t.Context(), "key_provider.static.main", encryption.Derivation{Info: "i", Length: 32})
	if err != nil || len(key) != 32 {
		t.Errorf("got %d bytes, %v", len(key), err)
	}
}

// Validation of a data source knows the methods of the provider block, if there is no text.
func TestValidateFindsDanglingMethods(t *testing.T) {
	t.Parallel()
	file := one(set{"path": text1("x")})
	read := set{"file": file, "method": text1("method.aes_gcm.main"), "fallback": one(set{"method": text1("method.aes_gcm.old")})}
	golden := openMistakes(t, "dangling method")
	for name, provider := range map[string]set{
		"blocks":        {"key_provider": staticKeys("")},
		"nothing known": {"key_provider": cty.DynamicVal},
		"text":          {"encryption": text1("method \"unencrypted\" \"u\" {}")},
		"environment":   nil,
	} {
		s := NewServer("test")
		if _, diags := validateProvider(t, s, "", s.block.sends(t, provider)); hasError(diags) {
			t.Fatalf("%s: %v", name, shown(diags))
		}
		w := find(t, s, "data statecrypt_remote_state")
		_, diags := w.validate(t, s, w.typeName, w.codec.sends(t, read))
		if got := shown(diags); name == "blocks" {
			golden.Check(t, name, strings.Join(got, "\n"))
		} else if len(got) > 0 {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
