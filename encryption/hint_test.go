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
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
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
	const ends, sealedWith = "passphrase of key_provider.pbkdf2.", `encrypted with (its metadata names "key_provider.pbkdf2.main")`
	const path = "looks like the path of a file"
	const address, masked = "looks like a reference to a secret", "is what logs show in place of a secret; set the secret itself"
	const encoded, mark, lines = "is text in base64", "byte order mark", "has several lines"
	for name, c := range map[string]struct {
		settings string
		want     []string // and no other of these
	}{
		"line break": {settings("pbkdf2", "main", `passphrase = "correct horse battery\n"`), []string{ends}},
		"alias of itself": {settings("pbkdf2", "main", `passphrase = "another horse battery\n"
			encrypted_metadata_alias = "key_provider.pbkdf2.main"`), []string{ends}},
		"wrong":               {settings("pbkdf2", "main", `passphrase = "another horse battery"`), nil},
		"two lines":           {settings("pbkdf2", "main", `passphrase = "another horse\nbattery\n"`), []string{ends, lines}},
		"of another name":     {settings("pbkdf2", "x", `passphrase = "another horse battery\n"`), []string{ends}},
		"another kind":        {settings("static", "k", `key = "`+strings.Repeat("00", 32)+`"`), []string{sealedWith}},
		"a path":              {settings("pbkdf2", "main", `passphrase = "/run/secrets/passphrase"`), []string{ends, path}},
		"a path at home":      {settings("pbkdf2", "main", `passphrase = "~/secrets/passphrase"`), []string{ends, path}},
		"a relative path":     {settings("pbkdf2", "main", `passphrase = "./secrets/passphrase"`), []string{ends, path}},
		"an address":          {settings("pbkdf2", "main", `passphrase = "op://team/states/passphrase"`), []string{ends, address}},
		"an ARN":              {settings("pbkdf2", "main", `passphrase = "arn:aws:ssm:eu-west-1:1:parameter/s"`), []string{ends, address}},
		"masked":              {settings("pbkdf2", "main", `passphrase = "********************"`), []string{ends, masked}},
		"in base64":           {settings("pbkdf2", "main", `passphrase = "Y29ycmVjdCBob3JzZSBiYXR0ZXJ5"`), []string{ends, encoded}},
		"random, in base64":   {settings("pbkdf2", "main", `passphrase = "3q2+7wABAgMEBQYHCAkKCwwNDg8="`), nil},
		"byte order mark":     {settings("pbkdf2", "main", "passphrase = \"\ufeffcorrect horse battery\""), []string{ends, mark}},
		"a name like a path":  {settings("pbkdf2", "main", "passphrase = \"another horse battery\"\nencrypted_metadata_alias = \"/x\""), nil},
		"another kind, right": {settings("pbkdf2", "x", right), nil},
	} {
		enc, err := encryption.Load(lighttest.Registry(), encryption.Code(c.settings, "test.hcl"))
		if err != nil {
			t.Fatal(name, err)
		}
		_, err = enc.State().Decrypt(t.Context(), file)
		if right := strings.HasSuffix(name, "right"); right != (err == nil) || !right && !errors.Is(err, encryption.ErrNoKey) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		for _, hint := range []string{ends, sealedWith, path, address, masked, encoded, mark, lines} {
			wanted := false
			for _, w := range c.want {
				wanted = wanted || w == hint
			}
			if err != nil && strings.Contains(err.Error(), hint) != wanted {
				t.Errorf("%s: got %v; %q is wanted: %t", name, err, hint, wanted)
			}
		}
	}
}

// TestDoubts: what is surely a mistake is said before something is sealed with it, and no
// secret that is only unusual. With what is no secret, nothing is sealed.
func TestDoubts(t *testing.T) {
	t.Parallel()
	file := filepath.ToSlash(filepath.Join(t.TempDir(), "passphrase"))
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const method = "\nmethod \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.main }\nstate { method = method.aes_gcm.m }\n"
	for _, c := range []struct{ passphrase, env, want, refused string }{
		{passphrase: "correct horse battery"},
		{passphrase: "your horse is a battery"},
		{passphrase: "your secret is safe with me", want: "is a placeholder"},
		{passphrase: "error is my middle name"},
		{passphrase: "correct horse battery\n", want: "ends with a line break, as text files do: trimspace(…) removes it"},
		{passphrase: "correct horse\nbattery\n"},
		{passphrase: "correct horse battery ", want: "begins or ends with a space"},
		{passphrase: "'correct horse battery'", want: "has quotation marks around it"},
		{passphrase: "$STATE_PASSPHRASE", refused: "begins with a variable of the shell"},
		{passphrase: "$${statePassphrase}", refused: "begins with a variable of the shell"},
		{passphrase: "${{ secrets.PASSPHRASE }}", refused: "is an expression"},
		{passphrase: "$(cat passphrase.txt)", refused: "is an expression"},
		{passphrase: "op://infra/tofu/password", refused: "looks like a reference to a secret of another system"},
		{passphrase: "vault:secret/data/tofu#passphrase", refused: "looks like a reference to a secret of another system"},
		{passphrase: "****************", refused: "is what logs show in place of a secret; set the secret itself"},
		{passphrase: `{\"passphrase\":\"correct horse\"}`, want: "is JSON, as stores of secrets keep it"},
		{passphrase: `passphrase = \"correct horse battery\"`, want: "is a line NAME = VALUE"},
		{passphrase: "An error occurred (AccessDenied)", refused: "is what a program printed when it failed; set the secret itself"},
		{passphrase: "<your passphrase here>", refused: "is a placeholder"},
		{passphrase: "CHANGEME-CHANGEME-CHANGEME", refused: "is a placeholder"},
		{passphrase: "correct horse battery\r", want: "ends with a carriage return"},
		{passphrase: "%STATE_PASSPHRASE%", refused: "begins with a variable of the shell"},
		{passphrase: "$env:STATE_PASSPHRASE", refused: "begins with a variable of the shell"},
		{passphrase: "{correct horse battery}"},
		{passphrase: "error-prone horse battery"},
		{passphrase: "$Kq9 of random characters"},
		{passphrase: "$KQ9of-random-characters"},
		{passphrase: file, refused: "is the path of a file"},
		{passphrase: "@" + file, refused: "is the path of a file"},
		{passphrase: "var.state_passphrase", refused: "is the name of a variable in quotation marks"},
		{passphrase: "var.random/characters"},
		{passphrase: file + ".old", want: "looks like the path of a file"},
		{passphrase: "/run/secrets/no_such_passphrase", want: "looks like the path of a file"},
		{passphrase: "{{ state_passphrase_of_production }}", refused: "is an expression"},
		{passphrase: "{{correct}} horse {{battery}}"},
		{passphrase: "/8JqX5+random/base64"},
		{passphrase: "correct horse battery", env: "another horse battery", want: "is that of TF_ENCRYPTION, which is merged over"},
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
		got := strings.Join(enc.State().Doubts(), "\n")
		if (got == "") != (c.want == "") || got != "" && !strings.HasPrefix(got, "passphrase of key_provider.pbkdf2.main "+c.want) {
			t.Errorf("%s: got %q", c.passphrase, got)
		}
		_, err = enc.State().Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"l"}`))
		refused := "passphrase of key_provider.pbkdf2.main " + c.refused
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: sealing: %v", c.passphrase, err)
		}
	}
}

// TestHintOfTheEnvironment: TF_ENCRYPTION of another project is merged over the right
// settings, and is named if no key fits, but only if it changed something.
func TestHintOfTheEnvironment(t *testing.T) {
	t.Parallel()
	const method = `method "aes_gcm" "m" { keys = key_provider.static.main }
		state { method = method.aes_gcm.m }`
	settings := func(key string) string { return `key_provider "static" "main" { key = "` + key + "\" }\n" + method }
	right, wrong := strings.Repeat("01", 32), strings.Repeat("02", 32)
	const replaced, chosen = "key of key_provider.static.main is that of TF_ENCRYPTION, which is merged over the other settings; " +
		"unset it if it is meant for another file",
		"the method was chosen by TF_ENCRYPTION, which is merged over the other settings"
	file := seal(t, settings(right), `{"version":4,"serial":1,"lineage":"l"}`)
	for name, c := range map[string]struct{ code, env, want string }{
		"key":        {settings(right), settings(wrong), replaced},
		"same":       {settings(wrong), settings(wrong), ""},
		"code alone": {settings(wrong), "", ""},
		"alone":      {"", settings(wrong), ""},
		"key alone":  {method, settings(wrong), ""}, // the code leaves it to TF_ENCRYPTION
		"method": {settings(right), `key_provider "static" "k" { key = "` + wrong + `" }
			method "aes_gcm" "o" { keys = key_provider.static.k }
			state { method = method.aes_gcm.o }`, chosen},
	} {
		env := func(name string) (string, bool) { return c.env, name == "TF_ENCRYPTION" }
		enc, err := encryption.Load(lighttest.Registry(), encryption.Code(c.code, "test.hcl"), encryption.Environment(env))
		if err != nil {
			t.Fatal(name, err)
		}
		_, err = enc.State().Decrypt(t.Context(), file)
		if !errors.Is(err, encryption.ErrNoKey) || strings.Contains(err.Error(), replaced) != (c.want == replaced) ||
			strings.Contains(err.Error(), chosen) != (c.want == chosen) {
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
	if !errors.Is(err, encryption.ErrNoKey) || strings.Count(err.Error(), "passphrase of key_provider.pbkdf2.p ends with a line break") != 1 {
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
	file := seal(t, settings(a, "pbkdf2.a"), `{"version":4,"serial":1,"lineage":"l"}`)
	bare := regexp.MustCompile(`"meta":\{[^}]*\}`).ReplaceAll(file, []byte(`"meta":{}`))
	two := regexp.MustCompile(`"meta":\{"[^"]*":("[^"]*")\}`).ReplaceAll(file, []byte(`"meta":{"x":$1,"y":$1}`))
	const alias, none = `set encrypted_metadata_alias (its metadata names "x", "y")`, "nor of any other: it was encrypted with a key as it is"
	for name, c := range map[string]struct {
		settings string
		file     []byte
		want     string
	}{
		"the name of another": {settings(a+b, "pbkdf2.b"), file, "key_provider.pbkdf2.a, which is configured: let keys of a method name it"},
		"two names":           {settings(b, "pbkdf2.b"), two, alias},
		"no metadata":         {settings(a, "pbkdf2.a"), bare, none},
	} {
		enc, err := encryption.Load(lighttest.Registry(), encryption.Code(c.settings, "test.hcl"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = enc.State().Decrypt(t.Context(), c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
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
	cfg, err := config.Parse(fmt.Sprintf(text, strings.Repeat("02", 32)), "text", lighttest.Registry().Options(cty.NilVal))
	if err != nil {
		t.Fatal(err)
	}
	cfg.KeyProviders["key_provider.static.k"].Settings["key_base64"] = attr.Setting{Value: cty.NullVal(cty.String)}
	enc, err := encryption.New(lighttest.Registry(), cfg)
	if err == nil {
		_, err = enc.State().Decrypt(t.Context(), file)
	}
	if !errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("got %v", err)
	}
}
