package provider

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestTextIsChecked: what no file could do without is found by validate, in text as in
// blocks. What is not in the text may be in TF_ENCRYPTION, unless that is not read.
func TestTextIsChecked(t *testing.T) {
	const (
		pass = `key_provider "pbkdf2" "k" { passphrase = "correct horse c4n4ry" }` + "\n"
		with = `method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }` + "\n"
		uses = "state { method = method.aes_gcm.m }\n"
	)
	read := reads("s", fromFile(filepath.Join(t.TempDir(), "no-such-file")))
	for name, c := range map[string]struct {
		text  string
		adds  bool // TF_ENCRYPTION may
		reads string
	}{
		"a short passphrase":      {text: strings.Replace(pass, "correct horse ", "", 1) + with + uses},
		"a misspelt key provider": {text: pass + strings.Replace(with, ".k ", ".c ", 1) + uses, adds: true},
		"a fallback of nobody": {
			text: pass + with + "state {\nmethod = method.aes_gcm.m\nfallback {\nmethod = method.aes_gcm.n\n}\n}", adds: true},
		"no address":               {text: pass + strings.Replace(with, "key_provider.pbkdf2.k", `"x"`, 1) + uses},
		"a circle":                 {text: `key_provider "pbkdf2" "k" { chain = key_provider.pbkdf2.k }` + "\n" + with + uses},
		"plaintext that is denied": {text: "state {\nmethod = \"unencrypted\"\nenforced = true\n}"},
		"no method":                {text: pass + with + "state {}", adds: true},
		"a data source's own":      {text: pass, reads: `method = "method.aes_gcm.m"`, adds: true},
		"age without identities":   {text: `method "age" "m" {}` + "\nstate { method = method.age.m }", adds: true},
	} {
		t.Run(name, func(t *testing.T) {
			read := strings.Replace(read, "}", "}\n"+c.reads, 1)
			text := "encryption = " + quote(c.text)
			if e := evaluate(t, settings(text, "use_environment = false"), read); e.stage != "validate" || len(e.errors) == 0 {
				t.Errorf("not found by %s: %v", e.stage, e.errors)
			}
			e := evaluate(t, settings(text), read)
			if want := map[bool]string{false: "validate", true: "plan"}[c.adds]; e.stage != want || len(e.errors) == 0 {
				t.Errorf("not found by %s: %v", e.stage, e.errors)
			}
			if shown := fmt.Sprint(e.errors); strings.Contains(shown, "c4n4ry") {
				t.Error(shown)
			}
		})
	}
}

// A text is complete with TF_ENCRYPTION, and a fallback that nobody can use does no harm.
func TestTextThatIsComplete(t *testing.T) {
	file := fromFile(writeTemp(t, "state", sealed(t, argumentsState)))
	t.Setenv("TF_ENCRYPTION", `key_provider "static" "k" { key = "`+staticKey+`" }`)
	const text = `method "aes_gcm" "m" { keys = key_provider.static.k }
		key_provider "pbkdf2" "short" { passphrase = "c4n4ry" }
		method "aes_gcm" "short" { keys = key_provider.pbkdf2.short }
		state {
			method = method.aes_gcm.m
			fallback {
				method = method.aes_gcm.short
			}
		}`
	evaluate(t, textProvider(text), reads("s", file)).succeeds()
}
