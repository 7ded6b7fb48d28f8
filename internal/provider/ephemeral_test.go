package provider

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/zclconf/go-cty/cty"
)

// echoes stores an ephemeral value, which nothing but a test should do, so
// that it can be looked at.
func echoes(expression string) string {
	return "provider \"echo\" {\ndata = " + expression + "\n}\nresource \"echo\" \"it\" {}\n"
}

func echoed(path ...string) tfjsonpath.Path {
	p := tfjsonpath.New("data")
	for _, name := range path {
		p = p.AtMapKey(name)
	}
	return p
}

func opens(name string, body string) string {
	return fmt.Sprintf("ephemeral \"statecrypt_remote_state\" %q {\n%s\n}\n", name, body)
}

func TestAccEphemeralRemoteState(t *testing.T) {
	file := fromFile(writeTemp(t, "state", sealed(t, argumentsState)))
	check := func(want knownvalue.Check, path ...string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("echo.it", echoed(path...), want)
	}
	runEphemeral(t,
		resourceStep(configuration(textProvider(staticText), opens("s", file), echoes("ephemeral.statecrypt_remote_state.s")),
			check(knownvalue.StringExact("o"), "outputs", "open"),
			check(knownvalue.Null(), "outputs", "null"),
			check(knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("a"), knownvalue.StringExact("b")}), "outputs", "list"),
			check(knownvalue.ObjectExact(map[string]knownvalue.Check{"hidden": knownvalue.StringExact("hidden-canary")}), "sensitive_outputs"),
			check(knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("hidden")}), "sensitive_output_names"),
			check(knownvalue.Int64Exact(7), "serial"),
			check(knownvalue.Bool(true), "encrypted"),
			check(knownvalue.StringExact("method.aes_gcm.m"), "decrypted_with")))
}

// Promise: Secrets in text
func TestAccEphemeralStoresNothing(t *testing.T) {
	file := fromFile(writeTemp(t, "state", sealed(t, argumentsState)))
	runEphemeral(t,
		failing(configuration(textProvider(staticText), opens("s", file),
			sensitiveOutput("o", "ephemeral.statecrypt_remote_state.s.sensitive_outputs.hidden")), "ephemeral"),
		resourceStep(configuration(textProvider(staticText), opens("s", file),
			"resource \"terraform_data\" \"it\" {\ninput = \"x\"\nlifecycle {\nprecondition {\ncondition = "+
				"ephemeral.statecrypt_remote_state.s.sensitive_outputs.hidden == \"hidden-canary\"\nerror_message = \"no\"\n}\n}\n}\n"),
			stateHolds{"hidden-canary", false}))
}

// Errors and arguments are those of the data source.
func TestEphemeralMistakes(t *testing.T) {
	t.Parallel()
	plain := fromFile(writeTemp(t, "state", []byte(argumentsState)))
	golden := openMistakes(t, "ephemeral resource")
	evaluate(t, textProvider(staticText), opens("s", plain)).wantMistake(golden, "plaintext")
	evaluate(t, textProvider(staticText), opens("s", plain+"\nstore_sensitive = true")).
		wantError(`an argument named "store_sensitive" is not expected here`)
	evaluate(t, textProvider(staticText), opens("s", "")).wantMistake(golden, "no source")
	evaluate(t, textProvider(staticText), opens("s", fromFile("/no/such/file")+"\nminimum_serial = 1\non_missing = \"defaults\"")).
		wantMistake(golden, "no state")

	unknown := "variable \"p\" {}\n" + settings(entry("key_provider", "pbkdf2", "k", "passphrase = var.p\nexportable = true"),
		entry("method", "aes_gcm", "m", `keys = "key_provider.pbkdf2.k"`), staticDefault)
	sealed := fromFile(writeTemp(t, "state", sealed(t, argumentsState)))
	evaluate(t, unknown, reads("s", sealed)).wantMistake(golden, "unknown passphrase, data source")
	evaluate(t, unknown, opens("s", sealed)).wantMistake(golden, "unknown passphrase")
	evaluate(t, unknown, derives("k", "pbkdf2.k", fmt.Sprintf("info = \"x\"\nsalt = %q", derivedSalt))).
		wantMistake(golden, "unknown passphrase, derived key")
}

// What is not there can have a sensitive default, which nothing stores.
func TestEphemeralDefaults(t *testing.T) {
	t.Parallel()
	file := fromFile(writeTemp(t, "state", sealed(t, argumentsState)))
	evaluate(t, textProvider(staticText), opens("s", file+"\nonly = [\"new\"]\nsensitive_defaults = { new = \"default\" }"),
		output("all", "[ephemeral.statecrypt_remote_state.s.outputs, ephemeral.statecrypt_remote_state.s.sensitive_outputs]")).
		wantOutputs(map[string]cty.Value{"all": cty.TupleVal([]cty.Value{cty.EmptyObjectVal,
			cty.ObjectVal(map[string]cty.Value{"new": cty.StringVal("default")})})})
}

// A key from the state of one team opens the state of another.
func TestAccEphemeralFeedsAnotherProvider(t *testing.T) {
	needAcceptance(t)
	if !knowsEphemeral() {
		t.Skip("this CLI has no ephemeral values")
	}
	t.Parallel()
	keys := fmt.Sprintf(`{"version":4,"serial":1,"lineage":"k","resources":[],"outputs":{"key":{"value":%q,"type":"string","sensitive":true}}}`, staticKey)
	second := `provider "statecrypt" {
  alias = "second"
  key_provider {
    static {
      name = "k"
      key  = ephemeral.statecrypt_remote_state.keys.sensitive_outputs.key
    }
  }
  method {
    aes_gcm {
      name = "m"
      keys = "key_provider.static.k"
    }
  }
}
`
	plain := fromFile(writeTemp(t, "keys", []byte(keys)))
	newProject(t, map[string]string{"main.tf": configuration(opens("keys", plain+"\nmethod = \"unencrypted\""), second,
		reads("s", "provider = statecrypt.second", fromFile(writeTemp(t, "state", sealed(t, argumentsState))), `method = "method.aes_gcm.m"`),
		output("serial", "data.statecrypt_remote_state.s.serial"))}).wantOutputs(map[string]cty.Value{"serial": cty.NumberIntVal(7)})
}

var derivedSalt = base64.StdEncoding.EncodeToString([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"))

const derivingText = `key_provider "static" "root" {
  key        = "` + staticKey + `"
  exportable = true
}
key_provider "static" "kept" { key = "` + staticKey + `" }
key_provider "pbkdf2" "documented_sha256" {
  passphrase    = "correct horse battery staple"
  iterations    = 200000
  hash_function = "sha256"
  exportable    = true
}`

func derives(name, keyProvider, more string) string {
	return fmt.Sprintf("ephemeral \"statecrypt_derived_key\" %q {\nkey_provider = %q\n%s\n}\n", name, "key_provider."+keyProvider, more)
}

// The keys are those of encryption/derive_test.go and of the documentation.
func TestAccDerivedKey(t *testing.T) {
	provider := textProvider(derivingText)
	hex := func(name, key string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("echo.it", echoed(name, "key_hex"), knownvalue.StringExact(key))
	}
	t.Run("vectors", func(t *testing.T) {
		runEphemeral(t, resourceStep(configuration(provider,
			derives("backup", "static.root", `info = "backup"`),
			derives("signing", "static.root", "info = \"signing\"\nlength = 16"),
			derives("pbkdf2", "pbkdf2.documented_sha256", fmt.Sprintf("info = \"backup\"\nsalt = %q", derivedSalt)),
			echoes("{ backup = ephemeral.statecrypt_derived_key.backup, signing = ephemeral.statecrypt_derived_key.signing, pbkdf2 = "+
				"ephemeral.statecrypt_derived_key.pbkdf2 }")),
			hex("backup", "f22d91157d798b22401e104b7199bed931070301f77890dde9329e17bc7d8219"),
			hex("signing", "870f87635baa3bff5e2d7eed5a4fcd08"),
			hex("pbkdf2", "dd806e52e30dd72a14e599bc923f404885ec935bcf729c0dd2056a7676fa77ad"),
			statecheck.ExpectKnownValue("echo.it", echoed("backup", "key_base64"),
				knownvalue.StringExact("8i2RFX15iyJAHhBLcZm+2TEHAwH3eJDd6TKeF7x9ghk="))))
	})
	t.Run("nothing stored", func(t *testing.T) {
		runEphemeral(t, resourceStep(configuration(provider, derives("backup", "static.root", `info = "backup"`),
			"resource \"terraform_data\" \"it\" {\ninput = \"x\"\nlifecycle {\nprecondition {\ncondition = "+
				"startswith(ephemeral.statecrypt_derived_key.backup.key_hex, \"f22d9115\")\nerror_message = \"no\"\n}\n}\n}\n"),
			stateHolds{"f22d9115", false}, stateHolds{"8i2RFX15", false}))
	})
}

func TestDerivedKeyMistakes(t *testing.T) {
	t.Parallel()
	golden := openMistakes(t, "derived key")
	for name, c := range map[string]struct{ keyProvider, more string }{
		"not exportable":  {"static.kept", `info = "x"`},
		"pbkdf2, no salt": {"pbkdf2.documented_sha256", `info = "x"`},
		"short salt":      {"pbkdf2.documented_sha256", "info = \"x\"\nsalt = \"AAAA\""},
		"no base64":       {"static.root", "info = \"x\"\nsalt = \"?\""},
		"too short":       {"static.root", "info = \"x\"\nlength = 15"},
		"undeclared":      {"static.nobody", `info = "x"`},
		"weak parameters": {"pbkdf2.documented_sha256", "info = \"x\"\nwrapped_key = jsonencode({ salt = " + fmt.Sprintf("%q", derivedSalt) +
			", iterations = 1000, hash_function = \"sha256\", key_length = 32 })"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			evaluate(t, textProvider(derivingText), derives("k", c.keyProvider, c.more)).wantMistake(golden, name)
		})
	}
}
