package encryption_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

// TestHints: what is most often wrong with a key is said, and only if a key is wrong.
func TestHints(t *testing.T) {
	t.Parallel()
	settings := func(kind, name, arguments string) string {
		return `key_provider "` + kind + `" "` + name + `" {` + "\n" + arguments + "\n}\n" +
			`method "aes_gcm" "m" { keys = key_provider.` + kind + "." + name + " }\nstate { method = method.aes_gcm.m }\n"
	}
	const right, short = `passphrase = "correct horse battery"`, "\niterations = 200000"
	file := seal(t, settings("pbkdf2", "main", right+short), `{"version":4,"serial":1,"lineage":"l"}`)
	says := golden(t, "hints")
	for name, text := range map[string]string{
		"line break": settings("pbkdf2", "main", `passphrase = "correct horse battery\n"`),
		"alias of itself": settings("pbkdf2", "main", `passphrase = "another horse battery\n"
			encrypted_metadata_alias = "key_provider.pbkdf2.main"`),
		"codes of an address": settings("pbkdf2", "main", `passphrase = "correct%20horse%20battery"`),
		"a long dash":         settings("pbkdf2", "main", `passphrase = "correct horse – battery"`),
		"hexadecimal":         settings("pbkdf2", "main", `passphrase = "`+strings.Repeat("0a", 32)+`"`),
		"wrong":               settings("pbkdf2", "main", `passphrase = "another horse battery"`),
		"two lines":           settings("pbkdf2", "main", `passphrase = "another horse\nbattery\n"`),
		"of another name":     settings("pbkdf2", "x", `passphrase = "another horse battery\n"`),
		"another kind":        settings("static", "k", `key = "`+strings.Repeat("00", 32)+`"`),
		"a path":              settings("pbkdf2", "main", `passphrase = "/run/secrets/passphrase"`),
		"a path at home":      settings("pbkdf2", "main", `passphrase = "~/secrets/passphrase"`),
		"a relative path":     settings("pbkdf2", "main", `passphrase = "./secrets/passphrase"`),
		"an address":          settings("pbkdf2", "main", `passphrase = "op://team/states/passphrase"`),
		"an ARN":              settings("pbkdf2", "main", `passphrase = "arn:aws:ssm:eu-west-1:1:parameter/s"`),
		"masked":              settings("pbkdf2", "main", `passphrase = "********************"`),
		"in base64":           settings("pbkdf2", "main", `passphrase = "Y29ycmVjdCBob3JzZSBiYXR0ZXJ5"`),
		"random, in base64":   settings("pbkdf2", "main", `passphrase = "3q2+7wABAgMEBQYHCAkKCwwNDg8="`),
		"byte order mark":     settings("pbkdf2", "main", "passphrase = \"\ufeffcorrect horse battery\""),
		"a name like a path":  settings("pbkdf2", "main", "passphrase = \"another horse battery\"\nencrypted_metadata_alias = \"/x\""),
		"another kind, right": settings("pbkdf2", "x", right),
	} {
		enc, err := encryption.Load(lighttest.Registry(), encryption.Code(text, "test.hcl"))
		if err != nil {
			t.Fatal(name, err)
		}
		_, err = enc.State().Decrypt(t.Context(), file)
		if right := strings.HasSuffix(name, "right"); right != (err == nil) || !right && !errors.Is(err, encryption.ErrNoKey) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if err != nil {
			says.Error(t, name, err)
		}
	}
}

// TestDoubts: what is surely a mistake is said before something is sealed with it, and no
// secret that is only unusual. With what is no secret, nothing is sealed.
//
// Promise: Passphrases
func TestDoubts(t *testing.T) {
	t.Parallel()
	file := filepath.ToSlash(filepath.Join(t.TempDir(), "passphrase"))
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const method = "\nmethod \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.main }\nstate { method = method.aes_gcm.m }\n"
	says := golden(t, "doubts")
	for _, c := range []struct {
		passphrase, env string
		refuses         bool
		doubt           bool
	}{
		{passphrase: "correct horse battery"},
		{passphrase: "your horse is a battery"},
		{passphrase: "your secret is safe with me"},
		{passphrase: "error is my middle name"},
		{passphrase: "correct horse battery\n", doubt: true},
		{passphrase: "correct horse\nbattery\n"},
		{passphrase: "correct horse battery ", doubt: true},
		{passphrase: "'correct horse battery'", doubt: true},
		{passphrase: "$STATE_PASSPHRASE", refuses: true},
		{passphrase: "$${statePassphrase}", refuses: true},
		{passphrase: "${{ secrets.PASSPHRASE }}", refuses: true},
		{passphrase: "$(cat passphrase.txt)", refuses: true},
		{passphrase: "op://infra/tofu/password", refuses: true},
		{passphrase: "vault:secret/data/tofu#passphrase", refuses: true},
		{passphrase: "****************", refuses: true},
		{passphrase: `{\"passphrase\":\"correct horse\"}`, doubt: true},
		{passphrase: `passphrase = \"correct horse battery\"`, doubt: true},
		{passphrase: "An error occurred (AccessDenied)", refuses: true},
		{passphrase: "<your passphrase here>", refuses: true},
		{passphrase: "CHANGEME-CHANGEME-CHANGEME", refuses: true},
		{passphrase: "correct horse battery\r", doubt: true},
		{passphrase: "%STATE_PASSPHRASE%", refuses: true},
		{passphrase: "$env:STATE_PASSPHRASE", refuses: true},
		{passphrase: "{correct horse battery}"},
		{passphrase: "error-prone horse battery"},
		{passphrase: "$Kq9 of random characters"},
		{passphrase: "$KQ9of-random-characters"},
		{passphrase: file, refuses: true},
		{passphrase: "@" + file, refuses: true},
		{passphrase: "var.state_passphrase", refuses: true},
		{passphrase: "var.random/characters"},
		{passphrase: file + ".old", doubt: true},
		{passphrase: "/run/secrets/no_such_passphrase", doubt: true},
		{passphrase: "{{ state_passphrase_of_production }}", refuses: true},
		{passphrase: "{{correct}} horse {{battery}}"},
		{passphrase: "(known after apply)", refuses: true},
		{passphrase: "random_password.state.result", refuses: true},
		{passphrase: "data.vault_generic_secret.state.data", refuses: true},
		{passphrase: "key_provider.pbkdf2.other", refuses: true},
		{passphrase: "correct_horse.battery.staple"},
		{passphrase: "data.driven.decisions.win"},
		{passphrase: "./no/such/passphrase", doubt: true},
		{passphrase: "`cat passphrase.txt`", refuses: true},
		{passphrase: "ENC[AES256_GCM,data:aGVsbG8=,type:str]", refuses: true},
		{passphrase: "@Microsoft.KeyVault(VaultName=infra;SecretName=state)", refuses: true},
		{passphrase: "ssm:/infra/state/passphrase", refuses: true},
		{passphrase: "env:STATE_PASSPHRASE", refuses: true},
		{passphrase: "env: correct horse battery"},
		{passphrase: "1password://infra/state/password", refuses: true},
		{passphrase: "/8JqX5+random/base64"},
		{passphrase: "correct horse battery", env: "another horse battery", doubt: true},
		{passphrase: "correct horse battery", env: "correct horse battery"},
	} {
		block := func(passphrase string) string {
			passphrase = strings.NewReplacer("\n", `\n`, "\r", `\r`, "${{", "$${{").Replace(passphrase)
			return `key_provider "pbkdf2" "main" {` + "\nencrypted_metadata_alias = \"a \"\npassphrase = \"" + passphrase + "\"\n}"
		}
		layers := []encryption.Layer{encryption.Code(block(c.passphrase)+method, "test.hcl")}
		if c.env != "" {
			layers = append(layers, encryption.Environment(func(name string) (string, bool) { return block(c.env), name == "TF_ENCRYPTION" }))
		}
		enc, err := encryption.Load(lighttest.Registry(), layers...)
		if err != nil {
			t.Fatal(c.passphrase, err)
		}
		got, name := doubts(enc), fmt.Sprintf("%q", strings.ReplaceAll(c.passphrase, file, "/file"))
		if (got == "") == c.doubt || strings.Contains(got, c.passphrase) {
			t.Errorf("%s: got %q", name, got)
		}
		if c.doubt {
			says.Check(t, name, got)
		}
		_, err = enc.State().Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"l"}`))
		if (err != nil) != c.refuses || err != nil && strings.Contains(err.Error(), c.passphrase) {
			t.Errorf("%s: sealing: %v", name, err)
		}
		if c.refuses {
			says.Error(t, name, err)
		}
	}
}

// doubts are what is doubtful in the key that states are sealed with.
func doubts(enc *encryption.Encryption) (text string) {
	for _, f := range enc.Check() {
		if f.Doubt && f.Target == "state" {
			text += fmt.Sprintf("%s of %s %v\n", f.Err.Attr, f.Err.Address, f.Err.Err)
		}
	}
	return strings.TrimSuffix(text, "\n")
}

// TestHintOfTheEnvironment: TF_ENCRYPTION of another project is merged over the right
// settings, and is named if no key fits, but only if it changed something.
func TestHintOfTheEnvironment(t *testing.T) {
	t.Parallel()
	const method = `method "aes_gcm" "m" { keys = key_provider.static.main }
		state { method = method.aes_gcm.m }`
	settings := func(key string) string { return `key_provider "static" "main" { key = "` + key + "\" }\n" + method }
	right, wrong := strings.Repeat("01", 32), strings.Repeat("02", 32)
	says := golden(t, "hints of the environment")
	file := seal(t, settings(right), `{"version":4,"serial":1,"lineage":"l"}`)
	for name, c := range map[string]struct{ code, env string }{
		"key":        {settings(right), settings(wrong)},
		"same":       {settings(wrong), settings(wrong)},
		"code alone": {settings(wrong), ""},
		"alone":      {"", settings(wrong)},
		"key alone":  {method, settings(wrong)}, // the code leaves it to TF_ENCRYPTION
		"method": {settings(right), `key_provider "static" "k" { key = "` + wrong + `" }
			method "aes_gcm" "o" { keys = key_provider.static.k }
			state { method = method.aes_gcm.o }`},
	} {
		env := func(name string) (string, bool) { return c.env, name == "TF_ENCRYPTION" }
		enc, err := encryption.Load(lighttest.Registry(), encryption.Code(c.code, "test.hcl"), encryption.Environment(env))
		if err != nil {
			t.Fatal(name, err)
		}
		_, err = enc.State().Decrypt(t.Context(), file)
		if says.Error(t, name, err); !errors.Is(err, encryption.ErrNoKey) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestHintOfAChain: the passphrase may be that of a key provider that another builds on.
func TestHintOfAChain(t *testing.T) {
	t.Parallel()
	chain := func(passphrase string) string {
		return `key_provider "pbkdf2" "p" {
			passphrase = "` + passphrase + `"
			iterations = 200000
		}
		key_provider "static" "k" { key = "` + strings.Repeat("01", 32) + `" }
		key_provider "xor" "x" {
			a = key_provider.pbkdf2.p
			b = key_provider.static.k
		}
		method "aes_gcm" "m" { keys = key_provider.xor.x }
		state { method = method.aes_gcm.m }`
	}
	file := seal(t, chain("correct horse battery"), `{"version":4,"serial":1,"lineage":"l"}`)
	enc := newEncryption(t, lighttest.Registry(), chain(`correct horse battery\n`))
	_, err := enc.State().Decrypt(t.Context(), file)
	if golden(t, "hints of a chain").Error(t, "a line break", err); !errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("got %v", err)
	}
}

// The alias is advised if it may help, and no sooner.
func TestHintOfTheAlias(t *testing.T) {
	t.Parallel()
	settings := func(providers, keys string) string {
		return providers + "method \"aes_gcm\" \"m\" { keys = key_provider." + keys + " }\nstate { method = method.aes_gcm.m }\n"
	}
	const a = "key_provider \"pbkdf2\" \"a\" {\npassphrase = \"correct horse battery\"\niterations = 200000\n}\n"
	const b = "key_provider \"pbkdf2\" \"b\" { passphrase = \"another horse battery\" }\n"
	wrong := strings.Replace(a, "correct", "another", 1)
	ofBoth := func(first, second string) string {
		return wrong + b + "method \"aes_gcm\" \"a\" { keys = key_provider.pbkdf2.a }\n" +
			"method \"aes_gcm\" \"b\" { keys = key_provider.pbkdf2.b }\n" +
			"state {\nmethod = method.aes_gcm." + first + "\nfallback {\nmethod = method.aes_gcm." + second + "\n}\n}\n"
	}
	file := seal(t, settings(a, "pbkdf2.a"), `{"version":4,"serial":1,"lineage":"l"}`)
	bare := regexp.MustCompile(`"meta":\{[^}]*\}`).ReplaceAll(file, []byte(`"meta":{}`))
	two := regexp.MustCompile(`"meta":\{"[^"]*":("[^"]*")\}`).ReplaceAll(file, []byte(`"meta":{"x":$1,"y":$1}`))
	says := golden(t, "hints of the alias")
	for name, c := range map[string]struct {
		settings string
		file     []byte
	}{
		"the name of another":                     {settings(a+b, "pbkdf2.b"), file},
		"two names":                               {settings(b, "pbkdf2.b"), two},
		"no metadata":                             {settings(a, "pbkdf2.a"), bare},
		"a new key before the wrong old one":      {ofBoth("b", "a"), file},
		"an old key behind a new one of its name": {ofBoth("a", "b"), file},
	} {
		enc, err := encryption.Load(lighttest.Registry(), encryption.Code(c.settings, "test.hcl"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = enc.State().Decrypt(t.Context(), c.file)
		says.Error(t, name, err)
	}
}

// TestHintsPassOverNothing: blocks of a provider say of each argument that is absent that
// it is null.
func TestHintsPassOverNothing(t *testing.T) {
	t.Parallel()
	const text = `key_provider "static" "k" { key = "` + "%s" + `" }
method "aes_gcm" "m" { keys = key_provider.static.k }
state { method = method.aes_gcm.m }`
	file := seal(t, fmt.Sprintf(text, strings.Repeat("01", 32)), state)
	cfg, err := unstable.Read(lighttest.Registry(), encryption.Code(fmt.Sprintf(text, strings.Repeat("02", 32)), "text"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.KeyProviders["key_provider.static.k"].Settings["key_base64"] = entries.Setting{Value: cty.NullVal(cty.String)}
	enc, err := encryption.Load(lighttest.Registry(), unstable.Layer(cfg))
	if err == nil {
		_, err = enc.State().Decrypt(t.Context(), file)
	}
	if !errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("got %v", err)
	}
}

// TestNamesakes: two modules may call different keys by one name. The key that the selected method names is tried,
// and if it does not open the file, the error says how to have another one tried.
func TestNamesakes(t *testing.T) {
	t.Parallel()
	provider := func(name, passphrase string) string {
		return fmt.Sprintf("key_provider \"pbkdf2\" %q {\n  passphrase = %q\n  iterations = 200000\n}\n"+
			"method \"aes_gcm\" %[1]q { keys = key_provider.pbkdf2.%[1]s }\n", name, passphrase)
	}
	const own, others, wrong = "our horse battery", "their horse battery", "no horse battery"
	selects := func(name string) string { return "state { method = method.aes_gcm." + name + " }\n" }
	file := seal(t, provider("main", others)+selects("main"), `{"version":4,"serial":1,"lineage":"l"}`)
	says := golden(t, "namesakes")
	for name, c := range map[string]struct {
		settings string
		opens    bool
	}{
		"selected":              {settings: provider("main", own) + provider("app", others) + selects("app"), opens: true},
		"no other has the name": {settings: provider("net", own) + provider("app", others) + selects("app"), opens: true},
		"selected, and a fallback": {opens: true, settings: provider("main", own) + provider("app", others) + provider("x", wrong) +
			"state {\n  method = method.aes_gcm.app\n  fallback { method = method.aes_gcm.x }\n}\n"},
		"selected, and wrong": {settings: provider("main", own) + provider("app", wrong) + selects("app")},
		"not selected":        {settings: provider("main", own) + provider("app", others) + selects("main")},
		"before a fallback": {settings: provider("main", own) + provider("app", others) +
			"state {\n  method = method.aes_gcm.app\n  fallback { method = method.aes_gcm.main }\n}\n"},
		"before a fallback, with an alias": {opens: true, settings: provider("main", own) +
			strings.Replace(provider("app", others), "\n", "\n  encrypted_metadata_alias = \"key_provider.pbkdf2.main\"\n", 1) +
			"state {\n  method = method.aes_gcm.app\n  fallback { method = method.aes_gcm.main }\n}\n"},
	} {
		enc, err := encryption.Load(lighttest.Registry(), encryption.Code(c.settings, "test.hcl"))
		if err != nil {
			t.Fatal(name, err)
		}
		_, err = enc.State().Decrypt(t.Context(), file)
		if c.opens != (err == nil) {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil {
			says.Error(t, name, err)
		}
	}
}
