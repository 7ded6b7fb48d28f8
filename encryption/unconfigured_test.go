package encryption_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// An encrypted file without a method for it is an error with what there is, so that a
// program can say in its own words what to do.
func TestNotConfigured(t *testing.T) {
	t.Parallel()
	const (
		sops      = `{"version":4,"outputs":{},"sops":{"mac":"ENC[AES256_GCM,data:x]","version":"3.9.0","lastmodified":"2026-01-01T00:00:00Z"}}`
		twoKeys   = `key_provider "static" "a" { key = "00" }` + "\n" + `key_provider "static" "b" { key = "01" }`
		oneMethod = twoKeys + "\n" + `method "aes_gcm" "m" { keys = key_provider.static.a }`
	)
	sealed, sealedPlan := string(seal(t, all, state)), sealPlan(t)
	ageInEnvelope := `{"encryption_version":"v0","meta":{},"encrypted_data":"` +
		base64.StdEncoding.EncodeToString([]byte("age-encryption.org/v1\n-> X25519 x\n")) + `"}`
	keys, says := []string{"key_provider.static.a", "key_provider.static.b"}, golden(t, "no method")
	for name, c := range map[string]struct {
		text, file string
		use        string // the method; that of the text if empty
		want       fault.NoMethod
		keys       []string
		methods    []string
	}{
		"nothing":        {file: sealed},
		"only plaintext": {text: `state { method = "unencrypted" }`, file: sealed},
		"keys":           {text: twoKeys, file: sealed, keys: keys},
		"a method":       {text: oneMethod, file: sealed, keys: keys, methods: []string{"method.aes_gcm.m"}},
		"another method": {text: oneMethod, file: sealed, use: "sops", keys: keys, methods: []string{"method.aes_gcm.m"}},
		"a plan": {text: oneMethod, file: sealedPlan, keys: keys, methods: []string{"method.aes_gcm.m"},
			want: fault.NoMethod{Plan: true}},
		"sops": {file: sops, want: fault.NoMethod{Format: "sops", ByKind: true}},
		"a method of sops": {text: `method "sops" "m" {}`, file: sops, methods: []string{"method.sops.m"},
			want: fault.NoMethod{Format: "sops"}},
		"sops, and a method of the envelope": {text: oneMethod, file: sops, keys: keys,
			want: fault.NoMethod{Format: "sops", ByKind: true}},
		"a method, and one of sops": {text: oneMethod + "\n" + `method "sops" "s" {}`, file: sealed, keys: keys,
			methods: []string{"method.aes_gcm.m"}},
		"age":                {file: "age-encryption.org/v1\n-> X25519 x\n", want: fault.NoMethod{Format: "age"}},
		"age in an envelope": {file: ageInEnvelope, text: oneMethod, keys: keys, want: fault.NoMethod{Format: "age"}},
	} {
		enc, err := encryption.Load(lighttest.Registry(), encryption.Code(c.text, "x"))
		if err != nil {
			t.Fatal(err)
		}
		target := enc.State()
		switch {
		case c.use != "":
			target = use(t, enc, c.use)
		case c.want.Plan:
			target = enc.Plan()
		}
		_, err = target.Decrypt(t.Context(), []byte(c.file))
		got, ok := fault.Find[fault.NoMethod](err)
		if !ok || !errors.Is(err, encryption.ErrNotConfigured) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		says.Error(t, name, err)
		if c.want.Format == "" {
			c.want.StoredKind = "static"
		}
		if got.StoredKind != c.want.StoredKind || got.Plan != c.want.Plan || got.Format != c.want.Format || got.ByKind != c.want.ByKind ||
			!slices.Equal(got.KeyProviders, c.keys) || !slices.Equal(got.Methods, c.methods) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestWhatTheFileNames: the file's own key providers come first, and its kind is said if
// there is one.
func TestWhatTheFileNames(t *testing.T) {
	t.Parallel()
	const a, b, c = `key_provider "static" "a" { key = "000102030405060708090a0b0c0d0e0f" }` + "\n",
		`key_provider "static" "b" { key = "101112131415161718191a1b1c1d1e1f" }` + "\n",
		`key_provider "static" "c" { key = "202122232425262728292a2b2c2d2e2f" }` + "\n"
	const both = "key_provider \"xor\" \"x\" {\na = key_provider.static.b\nb = key_provider.static.c\n}\n"
	aliased := strings.NewReplacer("{ ", "{\n", " }", "\nencrypted_metadata_alias = \"x\"\n}").Replace(a)
	sealedWith := func(keys, settings string) string {
		return string(seal(t, settings+"method \"aes_gcm\" \"m\" { keys = "+keys+" }\nstate { method = method.aes_gcm.m }", state))
	}
	// {"external_data":{"statecrypt_age_key":"YWdl"}}, as the program of the kind age has tofu store it
	const ofAge = `{"serial":1,"lineage":"l","meta":{"key_provider.external.team":` +
		`"eyJleHRlcm5hbF9kYXRhIjp7InN0YXRlY3J5cHRfYWdlX2tleSI6IllXZGwifX0="},"encrypted_data":"YWdl","encryption_version":"v0"}`
	for name, row := range map[string]struct {
		file string
		keys string // names, in order
		kind string
	}{
		"the first":  {file: sealedWith("key_provider.static.a", a), keys: "a b c", kind: "static"},
		"the second": {file: sealedWith("key_provider.static.b", b), keys: "b a c", kind: "static"},
		"the last":   {file: sealedWith("key_provider.static.c", c), keys: "c a b", kind: "static"},
		"another":    {file: sealedWith("key_provider.static.d", strings.Replace(a, `"a"`, `"d"`, 1)), keys: "a b c", kind: "static"},
		"an alias":   {file: sealedWith("key_provider.static.a", aliased), keys: "a b c"},
		"of age":     {file: ofAge, keys: "a b c", kind: "age"},
		"two":        {file: sealedWith("key_provider.xor.x", b+c+both), keys: "b c a"},
	} {
		_, err := newEncryption(t, lighttest.Registry(), a+b+c).State().Decrypt(t.Context(), []byte(row.file))
		got, ok := fault.Find[fault.NoMethod](err)
		if !ok {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		names := strings.ReplaceAll(strings.Join(got.KeyProviders, " "), "key_provider.static.", "")
		if names != row.keys || got.StoredKind != row.kind {
			t.Errorf("%s: got %q, %q", name, names, got.StoredKind)
		}
	}
}

// The errors about what only a program can give say what that is.
func TestWhatProgramsGive(t *testing.T) {
	t.Parallel()
	method := func(key string) string {
		return fmt.Sprintf("key_provider \"static\" \"a\" { key = %s }\nmethod \"aes_gcm\" \"m\" { keys = key_provider.static.a }", key)
	}
	variable := func(name string) func(err error) bool {
		return func(err error) bool {
			e, ok := fault.Find[fault.NoValue](err)
			return ok && e.Name == name
		}
	}
	says := golden(t, "what programs give")
	for name, c := range map[string]struct {
		text, use string
		is        func(err error) bool
	}{
		"a variable":  {text: method("var.x"), use: "method.aes_gcm.m", is: variable("x")},
		"no variable": {text: method("x"), use: "method.aes_gcm.m", is: variable("")},
		"a command": {text: "method \"external\" \"m\" {\ndecrypt_command = [\"x\"]\nencrypt_command = [\"x\"]\n}",
			use: "method.external.m", is: func(err error) bool { return errors.Is(err, entries.ErrCommand) }},
		"a kind": {use: "aes_gcm", is: func(error) bool { return true }},
	} {
		environment := attr.LookupEnv(func(variable string) (string, bool) { return c.text, variable == "TF_ENCRYPTION" })
		enc, err := encryption.Load(lighttest.Registry(), encryption.Environment(environment))
		if err != nil {
			t.Fatal(err)
		}
		target, err := enc.Use(c.use)
		if err == nil {
			_, err = target.Decrypt(t.Context(), seal(t, all, state))
		}
		if says.Error(t, name, err); !c.is(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
