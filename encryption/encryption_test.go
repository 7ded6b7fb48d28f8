package encryption_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

const state = `{"version":4,"terraform_version":"1.12.6","serial":7,"lineage":"l-1","outputs":{},"resources":[]}`

// The keys are as fast to get as a static key can be.
const keys = `
key_provider "static" "a" { key = "00000000000000000000000000000000" }
key_provider "static" "b" { key = "11111111111111111111111111111111" }
method "aes_gcm" "a" { keys = key_provider.static.a }
method "aes_gcm" "b" { keys = key_provider.static.b }
method "unencrypted" "u" {}
`

// golden has the texts of a group of errors, in which there is none of the secrets of these tests.
func golden(t *testing.T, group string) texts {
	t.Helper()
	return texts{testkit.OpenGolden(t, "testdata/mistakes.txt", group, "c4n4ry", "C4N4RY", "canary", "Y2FuYXJ5",
		"horse", "battery", "sixteen bytes or more", "0a0a0a", "0001020304", "0000000000", "1111111111")}
}

// texts are those of a golden, with what is known of each attempt.
type texts struct{ *testkit.Golden }

func (g texts) Error(t *testing.T, name string, err error) {
	t.Helper()
	if failed, ok := err.(*encryption.Error); ok && len(failed.Attempts) > 0 {
		err = tried{failed}
	}
	g.Golden.Error(t, name, err)
}

// tried is an error that wraps its attempts.
type tried struct{ failed *encryption.Error }

func (e tried) Error() string { return e.failed.Error() }

func (e tried) Unwrap() (all []error) {
	for _, a := range e.failed.Attempts {
		all = append(all, a.Err)
	}
	return all
}

func newEncryption(t *testing.T, registry encryption.Registry, text string) *encryption.Encryption {
	t.Helper()
	enc, err := encryption.Load(registry, encryption.Code(text, "test"))
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

// use is the target of methods that are configured.
func use(t testing.TB, enc *encryption.Encryption, methods ...string) encryption.Target {
	t.Helper()
	target, err := enc.Use(methods...)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func seal(t *testing.T, text, plain string) []byte {
	t.Helper()
	file, err := newEncryption(t, lighttest.Registry(), text).State().Encrypt(context.Background(), []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"static": `key_provider "static" "k" { key = "000102030405060708090a0b0c0d0e0f" }
			method "aes_gcm" "m" { keys = key_provider.static.k }`,
		"base64": `key_provider "static" "k" { key_base64 = "AAECAwQFBgcICQoLDA0ODw==" }
			method "aes_gcm" "m" { keys = key_provider.static.k }`,
		"pbkdf2": `key_provider "pbkdf2" "k" {
				passphrase = "sixteen bytes or more"
				iterations = 200000
			}
			method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }`,
		"chain, alias and aad": `key_provider "static" "root" { key = "000102030405060708090a0b0c0d0e0f" }
			key_provider "pbkdf2" "k" {
				chain                    = key_provider.static.root
				iterations               = 200000
				hash_function            = "sha256"
				key_length               = 16
				encrypted_metadata_alias = "other"
			}
			method "aes_gcm" "m" {
				keys = key_provider.pbkdf2.k
				aad  = [1, 2, 255]
			}`,
		"null alias": `key_provider "static" "k" {
				key                      = "000102030405060708090a0b0c0d0e0f"
				encrypted_metadata_alias = null
			}
			method "aes_gcm" "m" { keys = key_provider.static.k }`,
		"literal": `method "aes_gcm" "m" {
				keys = {
					encryption_key = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
					decryption_key = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
				}
			}`,
		"unencrypted": `method "unencrypted" "m" {}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := "aes_gcm"
			if name == "unencrypted" {
				kind = name
			}
			text += "\nstate { method = method." + kind + ".m }\nplan { method = method." + kind + ".m }"
			enc := newEncryption(t, lighttest.Registry(), text)
			for _, c := range []struct {
				target encryption.Target
				plain  string
			}{{enc.State(), state}, {enc.Plan(), plan}} {
				file, err := c.target.Encrypt(context.Background(), []byte(c.plain))
				if err != nil {
					t.Fatal(err)
				}
				if kind != "unencrypted" && bytes.Contains(file, []byte("terraform_version")) {
					t.Fatalf("not encrypted: %s", file)
				}
				opened, err := c.target.Decrypt(context.Background(), file)
				if err != nil {
					t.Fatal(err)
				}
				if string(opened.Data) != c.plain || opened.Method != "method."+kind+".m" || opened.UsedFallback ||
					opened.Encrypted == (kind == "unencrypted") {
					t.Errorf("got %+v", opened)
				}
			}
		})
	}
}

func TestFallback(t *testing.T) {
	t.Parallel()
	sealed := seal(t, keys+`state { method = method.aes_gcm.b }`, state)
	says := golden(t, "fallbacks")
	for name, c := range map[string]struct {
		methods []string
		want    string // the method that opens the file
		ok      bool
	}{
		"primary":                    {[]string{"method.aes_gcm.b"}, "method.aes_gcm.b", true},
		"fallback":                   {[]string{"method.aes_gcm.a", "method.aes_gcm.b"}, "method.aes_gcm.b", true},
		"second fallback":            {[]string{"method.aes_gcm.a", "method.aes_gcm.a", "method.aes_gcm.b"}, "method.aes_gcm.b", true},
		"unencrypted is passed over": {[]string{"unencrypted", "method.unencrypted.u", "method.aes_gcm.b"}, "method.aes_gcm.b", true},
		"wrong key":                  {[]string{"method.aes_gcm.a"}, "", false},
		"every attempt is named":     {[]string{"method.aes_gcm.a", "method.aes_gcm.also_a"}, "", false},
		"the same twice":             {[]string{"method.aes_gcm.a", "method.aes_gcm.a"}, "", false},
		"undeclared fallback":        {[]string{"method.aes_gcm.b", "method.aes_gcm.c"}, "", false},
		"only unencrypted":           {[]string{"unencrypted"}, "", false},
		"none":                       {nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enc := newEncryption(t, lighttest.Registry(), keys+`method "aes_gcm" "also_a" { keys = key_provider.static.a }`)
			target, err := enc.Use(c.methods...)
			var opened *encryption.Opened
			if err == nil {
				opened, err = target.Decrypt(context.Background(), bytes.Clone(sealed))
			}
			switch {
			case c.ok && err != nil:
				t.Fatal(err)
			case c.ok && (opened.Method != c.want || string(opened.Data) != state || opened.UsedFallback != (c.methods[0] != c.want)):
				t.Errorf("got %+v", opened)
			case !c.ok:
				says.Error(t, name, err)
			}
		})
	}
}

// A plaintext file where encryption is expected may be a downgrade.
//
// Promise: Plaintext
func TestPlaintextOnlyByName(t *testing.T) {
	t.Parallel()
	enc := newEncryption(t, lighttest.Registry(), keys)
	for _, c := range []struct {
		target encryption.Target
		ok     bool
	}{
		{use(t, enc, "method.aes_gcm.a"), false},
		{use(t, enc), false},
		{enc.State(), false},
		{use(t, enc, "unencrypted"), true},
		{use(t, enc, "method.aes_gcm.a", "unencrypted"), true},
		{use(t, enc, "method.aes_gcm.a", "method.unencrypted.u"), true},
		{use(t, enc, "unencrypted").Enforce(), false},
		{use(t, enc, "method.aes_gcm.a", "method.unencrypted.u").Enforce(), false},
	} {
		opened, err := c.target.Decrypt(context.Background(), []byte(state))
		if (err == nil) != c.ok {
			t.Errorf("%v: %v", c.target.Methods(), err)
		}
		if c.ok && (opened.Encrypted || string(opened.Data) != state || opened.UsedFallback != (len(c.target.Methods()) > 1)) {
			t.Errorf("%v: %+v", c.target.Methods(), opened)
		}
	}
}

// Promise: Authentication
func TestEnvelope(t *testing.T) {
	t.Parallel()
	file := seal(t, keys+`state { method = method.aes_gcm.a }`, state)
	enc, says := newEncryption(t, lighttest.Registry(), keys), golden(t, "envelopes")
	change := func(name string, value any) []byte {
		var m map[string]any
		if err := json.Unmarshal(file, &m); err != nil {
			t.Fatal(err)
		}
		if m[name] = value; value == nil {
			delete(m, name)
		}
		out, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, c := range map[string]struct {
		file []byte
		step encryption.Step // "" when it opens
	}{
		"untouched":              {file, ""},
		"without serial":         {change("serial", nil), ""},
		"without lineage":        {change("lineage", nil), ""},
		"unknown member":         {change("more", 1), ""},
		"another serial":         {change("serial", 8), encryption.StepDecrypt},
		"another lineage":        {change("lineage", "l-2"), encryption.StepDecrypt},
		"serial is text":         {change("serial", "7"), encryption.StepEnvelope},
		"serial is a fraction":   {change("serial", 7.5), encryption.StepEnvelope},
		"later version":          {change("encryption_version", "v1"), encryption.StepEnvelope},
		"empty version":          {change("encryption_version", ""), encryption.StepEnvelope},
		"data is not base64":     {change("encrypted_data", "%%"), encryption.StepEnvelope},
		"metadata is not base64": {change("meta", map[string]any{"x": "%"}), encryption.StepEnvelope},
		"a line end in the data": {bytes.Replace(file, []byte(`","encryption_version"`), []byte("\n\",\"encryption_version\""), 1),
			encryption.StepEnvelope},
		"no data":         {change("encrypted_data", ""), encryption.StepDecrypt},
		"cut off":         {file[:len(file)/2], encryption.StepEnvelope},
		"empty":           {nil, encryption.StepEnvelope},
		"some other file": {[]byte("hello"), encryption.StepEnvelope},
		"deeply nested":   {[]byte(strings.Repeat("[", 1<<20)), encryption.StepEnvelope},
	} {
		opened, err := use(t, enc, "method.aes_gcm.a").Decrypt(context.Background(), bytes.Clone(c.file))
		var failed *encryption.Error
		switch {
		case c.step != "":
			if says.Error(t, name, err); !errors.As(err, &failed) || failed.Step != c.step {
				t.Errorf("%s: got %v, want it at %q", name, err, c.step)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case string(opened.Data) != state:
			t.Errorf("%s: got %s", name, opened.Data)
		}
	}
}

func TestMetadataNames(t *testing.T) {
	t.Parallel()
	writer := func(name, alias string) string {
		return fmt.Sprintf(`key_provider "pbkdf2" %q {
			passphrase    = "sixteen bytes or more"
			iterations    = 200000
			hash_function = "sha256"
			%s
		}
		method "aes_gcm" "m" { keys = key_provider.pbkdf2.%[1]s }
		state { method = method.aes_gcm.m }`, name, alias)
	}
	other := "\n" + `key_provider "pbkdf2" "other" { passphrase = "another passphrase!" }`
	for name, c := range map[string]struct {
		written, read string
		ok            bool
	}{
		"same name":                   {writer("k", ""), writer("k", ""), true},
		"same alias":                  {writer("k", `encrypted_metadata_alias = "x"`), writer("j", `encrypted_metadata_alias = "x"`), true},
		"alias added later":           {writer("k", ""), writer("k", `encrypted_metadata_alias = "x"`), true},
		"renamed":                     {writer("k", ""), writer("j", ""), true},
		"renamed, beside another":     {writer("k", ""), writer("j", "") + other, true},
		"the name belongs to another": {writer("other", ""), writer("j", "") + other, true},
		"the name belongs to a fallback": {writer("other", ""), strings.Replace(writer("j", ""), "method = method.aes_gcm.m }",
			"\nmethod = method.aes_gcm.m\nfallback { method = method.aes_gcm.o }\n}", 1) + other + "\n" +
			`method "aes_gcm" "o" { keys = key_provider.pbkdf2.other }`, false},
		"the alias belongs to another": {writer("k", `encrypted_metadata_alias = "x"`), writer("j", "") + "\n" + `key_provider "pbkdf2" "o" {
			passphrase               = "another passphrase!"
			encrypted_metadata_alias = "x"
		}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := seal(t, c.written, state)
			_, err := newEncryption(t, lighttest.Registry(), c.read).State().Decrypt(context.Background(), file)
			if (err == nil) != c.ok {
				t.Error(err)
			}
			if !c.ok && !errors.Is(err, encryption.ErrNoKey) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Two entries of the same shape that nobody claims: a guess could be wrong.
func TestAmbiguousMetadata(t *testing.T) {
	t.Parallel()
	file := seal(t, `key_provider "pbkdf2" "up" {
		passphrase    = "sixteen bytes or more"
		iterations    = 200000
		hash_function = "sha256"
	}
	key_provider "pbkdf2" "k" {
		chain         = key_provider.pbkdf2.up
		iterations    = 200000
		hash_function = "sha256"
	}
	method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
	state { method = method.aes_gcm.m }`, state)
	_, err := newEncryption(t, lighttest.Registry(), `key_provider "pbkdf2" "renamed" { passphrase = "sixteen bytes or more" }
	method "aes_gcm" "m" { keys = key_provider.pbkdf2.renamed }
	state { method = method.aes_gcm.m }`).State().Decrypt(context.Background(), file)
	if golden(t, "metadata").Error(t, "two of the same shape", err); !errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("got %v", err)
	}
}

func TestCircle(t *testing.T) {
	t.Parallel()
	text := `key_provider "pbkdf2" "a" { chain = key_provider.pbkdf2.b }
key_provider "pbkdf2" "b" { chain = key_provider.pbkdf2.a }
method "aes_gcm" "m" { keys = key_provider.pbkdf2.a }
state { method = method.aes_gcm.m }`
	enc := newEncryption(t, lighttest.Registry(), text)
	file, says := seal(t, keys+`state { method = method.aes_gcm.a }`, state), golden(t, "key providers in a circle")
	_, err := enc.State().Decrypt(context.Background(), file)
	says.Error(t, "opening", err)
	_, err = enc.State().Encrypt(context.Background(), []byte(state))
	says.Error(t, "sealing", err)
}

// counting is a key provider of a third party. It counts how often it is asked.
type counting struct {
	asked *atomic.Int64
	fail  error
}

func (c counting) Key(context.Context, driver.Keys, json.RawMessage) ([]byte, error) {
	c.asked.Add(1)
	return make([]byte, 16), c.fail
}

func (c counting) NewKey(context.Context, driver.Keys) ([]byte, json.RawMessage, error) {
	return make([]byte, 16), json.RawMessage(`{"id":1}`), nil
}

func withCounting(asked *atomic.Int64, fail error) encryption.Registry {
	r := lighttest.Registry()
	r.KeyProviders = append(r.KeyProviders, driver.Block[driver.KeyProvider]{
		Table: attr.Table{Name: "counting"},
		Build: func(attr.Values) (driver.KeyProvider, error) { return counting{asked, fail}, nil },
	})
	return r
}

const counted = keys + `
key_provider "counting" "c" {}
method "aes_gcm" "c" { keys = key_provider.counting.c }
method "aes_gcm" "c_aad" {
	keys = key_provider.counting.c
	aad  = [1]
}
state { method = method.aes_gcm.c }`

func TestKeyProviderIsAskedOnce(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	enc := newEncryption(t, withCounting(&asked, nil), counted)
	file, err := enc.State().Encrypt(context.Background(), []byte(state))
	if err != nil {
		t.Fatal(err)
	}
	target := use(t, enc, "method.aes_gcm.c_aad", "method.aes_gcm.c")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			// Two methods share the key provider, the first with the wrong aad.
			if _, err := target.Decrypt(context.Background(), bytes.Clone(file)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// Promise: Fallbacks
func TestFallbackOnlyWithoutKey(t *testing.T) {
	t.Parallel()
	file := seal(t, keys+`state { method = method.aes_gcm.a }`, state)
	for _, c := range []struct {
		fail error
		ok   bool
	}{
		{fmt.Errorf("%w: the key is disabled", encryption.ErrNoKey), true},
		{errors.New("timeout"), false},
		{context.DeadlineExceeded, false},
	} {
		var asked atomic.Int64
		enc := newEncryption(t, withCounting(&asked, c.fail), counted)
		opened, err := use(t, enc, "method.aes_gcm.c", "method.aes_gcm.a").Decrypt(context.Background(), bytes.Clone(file))
		if (err == nil) != c.ok {
			t.Errorf("%v: %v", c.fail, err)
		}
		if c.ok && !opened.UsedFallback {
			t.Errorf("%v: %+v", c.fail, opened)
		}
		if !c.ok && !errors.Is(err, c.fail) {
			t.Errorf("%v: got %v", c.fail, err)
		}
	}
}

// What nothing uses may be broken.
func TestLazy(t *testing.T) {
	t.Parallel()
	file := seal(t, keys+`state { method = method.aes_gcm.a }`, state)
	enc := newEncryption(t, lighttest.Registry(), keys+`
key_provider "nonesuch" "x" { whatever = 1 }
key_provider "pbkdf2" "short" { passphrase = "short" }
key_provider "pbkdf2" "variable" { passphrase = var.nobody_gave }
method "nonesuch" "y" {}
method "aes_gcm" "x" { keys = key_provider.nonesuch.x }
method "aes_gcm" "short" { keys = key_provider.pbkdf2.short }
method "aes_gcm" "variable" { keys = key_provider.pbkdf2.variable }
method "aes_gcm" "gone" { keys = key_provider.pbkdf2.gone }`)
	says := golden(t, "unused settings that are used")
	for _, method := range []string{
		"method.nonesuch.y",
		"method.aes_gcm.x",
		"method.aes_gcm.short",
		"method.aes_gcm.variable",
		"method.aes_gcm.gone",
	} {
		if _, err := use(t, enc, "method.aes_gcm.a", method).Decrypt(context.Background(), bytes.Clone(file)); err != nil {
			t.Errorf("%s as an unused fallback: %v", method, err)
		}
		_, err := use(t, enc, method, "method.aes_gcm.a").Decrypt(context.Background(), bytes.Clone(file))
		says.Error(t, method, err)
	}
}

func TestSameMetadataNameTwice(t *testing.T) {
	t.Parallel()
	enc := newEncryption(t, lighttest.Registry(), `
key_provider "pbkdf2" "up" {
	passphrase               = "sixteen bytes or more"
	iterations               = 200000
	hash_function            = "sha256"
	encrypted_metadata_alias = "x"
}
key_provider "pbkdf2" "k" {
	chain                    = key_provider.pbkdf2.up
	iterations               = 200000
	hash_function            = "sha256"
	encrypted_metadata_alias = "x"
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state { method = method.aes_gcm.m }`)
	_, err := enc.State().Encrypt(context.Background(), []byte(state))
	golden(t, "metadata, sealing").Error(t, "the same name twice", err)
}

func TestInspect(t *testing.T) {
	t.Parallel()
	info, err := encryption.Inspect(seal(t, keys+`state { method = method.aes_gcm.b }`, state))
	if err != nil || info.Kind != encryption.KindEncrypted || *info.Serial != 7 || info.Lineage != "l-1" || info.Version != "v0" ||
		len(info.KeyProviders) != 1 || info.KeyProviders[0] != "key_provider.static.b" {
		t.Errorf("got %+v, %v", info, err)
	}
	for file, want := range map[string]encryption.FileKind{
		"": encryption.KindEmpty, plan: encryption.KindPlan, state: encryption.KindState,
		"{}": encryption.KindUnknown, "x": encryption.KindUnknown,
	} {
		if info, err := encryption.Inspect([]byte(file)); err != nil || info.Kind != want {
			t.Errorf("%q: %+v, %v", file, info, err)
		}
	}
	for file, want := range map[string]encryption.FileKind{ // whose plaintext is there to be read
		"\xef\xbb\xbf" + state: encryption.KindState, state + "\nx": encryption.KindState,
		state[:len(state)-1]: encryption.KindState, strings.Replace(state, `"outputs"`, "\n<<<<<<< HEAD\n", 1): encryption.KindState,
		plan + "x": encryption.KindPlan, plan[:len(plan)/2]: encryption.KindPlan,
		`{"version":1,"name":"x"`: encryption.KindUnknown, `{"serial":7,"lineage":"l-1"`: encryption.KindUnknown,
	} {
		if info, err := encryption.Inspect([]byte(file)); !errors.Is(err, encryption.ErrDamaged) || info.Kind != want {
			t.Errorf("%q: %+v, %v", file, info, err)
		}
	}
}

// Whoever can write the file chooses these numbers. None may cost anything.
//
// Promise: Cost
func TestHostileMetadata(t *testing.T) {
	t.Parallel()
	const text = `key_provider "pbkdf2" "k" { passphrase = "sixteen bytes or more" }
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state { method = method.aes_gcm.m }`
	enc := newEncryption(t, lighttest.Registry(), text)
	salt, says := base64.StdEncoding.EncodeToString(make([]byte, 32)), golden(t, "hostile metadata")
	for _, meta := range []string{
		`{"salt":"` + salt + `","iterations":2147483647,"hash_function":"sha512","key_length":32}`,
		`{"salt":"` + salt + `","iterations":9223372036854775807,"hash_function":"sha512","key_length":32}`,
		`{"salt":"` + salt + `","iterations":10000000,"hash_function":"sha256","key_length":64}`,
		`{"salt":"` + salt + `","iterations":10000000,"hash_function":"sha256","key_length":33}`,
		`{"salt":"` + salt + `","iterations":1,"hash_function":"sha512","key_length":9223372036854775807}`,
		`{"salt":"` + salt + `","iterations":-1,"hash_function":"sha512","key_length":32}`,
		`{"salt":"` + salt + `","iterations":1,"hash_function":"sha512","key_length":-32}`,
		`{"salt":"` + salt + `","iterations":1,"hash_function":"md5","key_length":32}`,
		`{"salt":"` + salt + `","iterations":"1","hash_function":"sha512","key_length":32}`,
		`{"salt":"","iterations":1,"hash_function":"sha512","key_length":32}`,
		`{"salt":"` + base64.StdEncoding.EncodeToString(make([]byte, 5000)) +
			`","iterations":1,"hash_function":"sha512","key_length":32}`,
		`[]`,
		``,
	} {
		file, err := json.Marshal(map[string]any{
			"meta":               map[string][]byte{"key_provider.pbkdf2.k": []byte(meta)},
			"encrypted_data":     make([]byte, 64),
			"encryption_version": "v0",
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = enc.State().Decrypt(context.Background(), file)
		says.Error(t, fmt.Sprintf("%.25s %.80s", meta, meta[strings.Index(meta, "iter")+1:]), err)
	}
}

// What is shown of a file is cut between characters, and behind five names.
func TestLongTextOfAFile(t *testing.T) {
	t.Parallel()
	enc, says := newEncryption(t, lighttest.Registry(), ""), golden(t, "long text of a file")
	for _, names := range []string{`"a":"","b":"","c":"","d":"","e":""`, `"a":"","b":"","c":"","d":"","e":"","f":""`} {
		_, err := use(t, enc).Decrypt(t.Context(), []byte(`{"meta":{`+names+`},"encrypted_data":"","encryption_version":"v0"}`))
		says.Error(t, names, err)
	}
	long := strings.Repeat("x", 99) + "é"
	_, err := encryption.Inspect([]byte(`{"encryption_version":"` + long + `"}`))
	says.Error(t, "version", err)
}
