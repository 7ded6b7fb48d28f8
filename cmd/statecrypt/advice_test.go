package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// The command advises the text that its users write.
func TestAdvice(t *testing.T) {
	t.Parallel()
	const (
		sops = `{"version":4,"outputs":{},"sops":{"mac":"ENC[AES256_GCM,data:x]","version":"3.9.0","lastmodified":"2026-01-01T00:00:00Z"}}`
		key  = `key_provider "static" "a" { key = "` + canaryKey + `01" }` + "\n"
		none = "state { method = method.unencrypted.p }\nplan { method = method.unencrypted.p }\n" + plainText
	)
	sealed, sealedPlan := must(t, onlyOld, plain, "encrypt"), must(t, onlyOld, emptyPlan(t), "encrypt", "-plan")
	mistakes := openMistakes(t, "advice")
	for name, c := range map[string]struct{ settings, file, args string }{
		"only plaintext":  {settings: none, file: sealed, args: "decrypt"},
		"a key":           {settings: key + none, file: sealed, args: "decrypt"},
		"a method":        {settings: oldText + none, file: sealed, args: "decrypt"},
		"two methods":     {settings: oldText + newText + none, file: sealed, args: "decrypt"},
		"a plan":          {settings: oldText + none, file: sealedPlan, args: "decrypt -plan"},
		"sops":            {settings: onlyOld, file: sops, args: "decrypt"},
		"method for sops": {settings: onlyOld + `method "sops" "m" {}`, file: sops, args: "decrypt"},
	} {
		mistakes.check(t, name, statecrypt(t, c.settings, c.file, strings.Fields(c.args)...))
	}
}

// A fallback that opens a file comes with why the method before it did not, and with no
// advice, which would be wrong: the key was replaced on purpose.
func TestFallbackHasNoAdvice(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	key := func(name, passphrase, alias string) string {
		return fmt.Sprintf("key_provider \"pbkdf2\" %q {\n  passphrase = %q\n  iterations = 200000\n%s}\nmethod \"aes_gcm\" %[1]q "+
			"{ keys = key_provider.pbkdf2.%[1]s }\n", name, canary+" "+passphrase+" passphrase", alias)
	}
	sealed := must(t, key("main", "old", "")+"state { method = method.aes_gcm.main }", plain, "encrypt")
	const alias = "  encrypted_metadata_alias = \"key_provider.pbkdf2.main\"\n"
	rotated := key("main", "new", "") + key("old", "old", alias) + "state {\n  method = method.aes_gcm.main\n  fallback {\n    method = " +
		"method.aes_gcm.old\n  }\n}"
	renamed := key("new", "new", "") + key("main", "old", "") + "state {\n  method = method.aes_gcm.new\n  fallback {\n    method = " +
		"method.aes_gcm.main\n  }\n}"
	mistakes := openMistakes(t, "fallback")
	for name, settings := range map[string]string{"the name of the old key": rotated, "another name": renamed} {
		mistakes.check(t, name, statecrypt(t, settings, sealed, "decrypt"))
	}
}
