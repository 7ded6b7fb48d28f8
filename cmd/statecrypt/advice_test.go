package main

import (
	"strings"
	"testing"
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
