package encryption_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

// TestAdvice: programs advise OpenTofu's text, and the provider its blocks, unless
// its users write text.
func TestAdvice(t *testing.T) {
	t.Parallel()
	const (
		sops      = `{"version":4,"outputs":{},"sops":{"mac":"ENC[AES256_GCM,data:x]","version":"3.9.0","lastmodified":"2026-01-01T00:00:00Z"}}`
		twoKeys   = `key_provider "static" "a" { key = "00" }` + "\n" + `key_provider "static" "b" { key = "01" }`
		oneMethod = twoKeys + "\n" + `method "aes_gcm" "m" { keys = key_provider.static.a }`
	)
	aesGCM := func(key string) string {
		return fmt.Sprintf("key_provider \"static\" \"a\" { key = %s }\nmethod \"aes_gcm\" \"m\" { keys = key_provider.static.a }", key)
	}
	sealed, sealedPlan := string(seal(t, all, state)), sealPlan(t)
	for name, c := range map[string]struct {
		text, file string
		use        string // the method; that of the text if empty
		plan       bool
		program    string // how the error of a program ends
		provider   string // what stands in that of the provider
	}{
		"nothing": {
			file:     sealed,
			program:  "; set TF_ENCRYPTION to the settings that it was encrypted with",
			provider: "; add its key provider, such as key_provider { pbkdf2 { passphrase = … } }",
		},
		"only plaintext": {
			text: `state { method = "unencrypted" }`, file: sealed,
			program:  `; add its key provider, such as key_provider "pbkdf2" "main" { … }, a method with its key, and state { method = … }`,
			provider: "; add its key provider, such as key_provider { pbkdf2 { passphrase = … } }",
		},
		"keys": {
			text: twoKeys, file: sealed,
			program:  `; add method "aes_gcm" "main" { keys = key_provider.static.a } and state { method = method.aes_gcm.main }`,
			provider: `; add method "aes_gcm" "main" { keys = key_provider.static.a } and state { method = method.aes_gcm.main }`,
		},
		"a method": {
			text: oneMethod, file: sealed,
			program:  "; add state { method = method.aes_gcm.m }",
			provider: "; add state { method = method.aes_gcm.m }",
		},
		"a plan": {
			text: oneMethod, file: sealedPlan, plan: true,
			program:  "; add plan { method = method.aes_gcm.m }",
			provider: "; add plan { method = method.aes_gcm.m }",
		},
		"sops": {
			file:     sops,
			program:  `; add method "sops" "main" { … } and state { method = method.sops.main }`,
			provider: `; set method = "sops" on the data source`,
		},
		"a method of sops": {
			text: `method "sops" "m" {}`, file: sops,
			program:  "; add state { method = method.sops.m }",
			provider: "; add state { method = method.sops.m }",
		},
		"a kind": {
			file: sealed, use: "aes_gcm",
			program:  `: add method "aes_gcm" "main" { … }, and name method.aes_gcm.main`,
			provider: `: add a aes_gcm block to method, and name method.aes_gcm.main`,
		},
		"a variable": {
			text: aesGCM("var.x"), file: sealed, use: "method.aes_gcm.m",
			program:  "var.x has no value",
			provider: "var.x has no value: add x to encryption_variables",
		},
		"no variable": {
			text: aesGCM("x"), file: sealed, use: "method.aes_gcm.m",
			program:  "only var.<name> can be used here; if this is meant to be text, put it in quotes",
			provider: "only var.<name> can be used here, with its value in encryption_variables; if this is meant to be text",
		},
		"a command": {
			text: "method \"external\" \"m\" {\ndecrypt_command = [\"x\"]\nencrypt_command = [\"x\"]\n}", file: sealed,
			use:      "method.external.m",
			program:  "it runs if it also stands in the configuration",
			provider: "it runs if it also stands in the configuration, or with allow_external = true",
		},
	} {
		environment := attr.LookupEnv(func(variable string) (string, bool) { return c.text, variable == "TF_ENCRYPTION" })
		fail := func(layer encryption.Layer) string {
			enc, err := encryption.Load(builtin.Registry(), layer)
			if err != nil {
				t.Fatal(err)
			}
			target := enc.State()
			switch {
			case c.use != "":
				target = enc.Use(c.use)
			case c.plan:
				target = enc.Plan()
			}
			_, err = target.Decrypt(t.Context(), []byte(c.file))
			if err == nil {
				t.Fatalf("%s: no error", name)
			}
			return err.Error()
		}
		program := fail(encryption.Environment(environment))
		provider := fail(func(options config.Options) (*config.Config, error) {
			options.Provider = true
			layer, err := config.ParseEnvironment(environment, options)
			return config.Merge(layer, &config.Config{Provider: true}), err
		})
		if !strings.HasSuffix(program, c.program) {
			t.Errorf("%s:\n got %v\nwant %s", name, program, c.program)
		}
		if !strings.Contains(provider, c.provider) {
			t.Errorf("%s, provider:\n got %v\nwant %s", name, provider, c.provider)
		}
		for _, word := range []string{"provider block", "data source", "encryption_variables", "allow_external"} {
			if strings.Contains(program, word) {
				t.Errorf("%s: %v", name, program)
			}
		}
	}
}
