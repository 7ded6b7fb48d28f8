package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// TestContentInPlaceOfNames: whatever command gets the content of a file in the place of
// its name, as "$(cat FILE)" gives it, does not print it.
//
// Promise: Secrets in text
func TestContentInPlaceOfNames(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Chdir(t.TempDir())
	keys, state := write(t, "keys.hcl", onlyOld), write(t, "s.tfstate", must(t, onlyOld, plain, "encrypt"))
	contents := testkit.InPlaceOfPaths()
	contents["settings"] = "key_provider \"pbkdf2\" \"main\" {\n  passphrase = \"c4n4ry\"\n}\n"
	contents["a state"] = `{"version":4,"outputs":{"p":{"value":"c4n4ry","type":"string","sensitive":true}}}`
	contents["an identity"] = "AGE-SECRET-KEY-1C4N4RYc4n4ry"
	delete(contents, "a token") // which may be the name of a file
	tried := 0
	for _, c := range commands() {
		runs := [][]string{{c.Name, "CONTENT"}, {"CONTENT"}, {c.Name, "-json", "CONTENT"}}
		for _, flag := range c.FlagNames() {
			if !slices.Contains([]string{"config", "from", "to", "var-file", "o", "i", "R"}, flag) {
				continue
			}
			run := []string{c.Name, "-" + flag, "CONTENT"}
			for _, other := range []string{"config", "from", "to"} {
				if other != flag && c.HasFlag(other) {
					run = append(run, "-"+other, keys)
				}
			}
			if c.Name == "wrap" {
				runs = append(runs, append(run, "--", "terraform", "plan"))
				continue
			}
			runs = append(runs, append(run, state), run)
		}
		for what, content := range contents {
			for _, run := range runs {
				tried++
				args := strings.Split(strings.ReplaceAll(strings.Join(run, "\x00"), "CONTENT", content), "\x00")
				got := statecrypt(t, onlyOld, "null", args...)
				if strings.Contains(got.stdout+got.stderr, testkit.CanaryOfPaths) {
					t.Errorf("%s, %q: got %+v", what, run, got)
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d runs", tried)
	}
	left, err := os.ReadDir(".")
	for _, f := range left {
		t.Errorf("%q was written: %v", filepath.Base(f.Name()), err)
	}
}
