package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestNamesakes: a file was encrypted by another module, which calls its key as this one calls another. Whatever is
// selected, the right key opens the file, or the error says how to have it tried.
func TestNamesakes(t *testing.T) {
	t.Parallel()
	provider := func(name, passphrase, more string) string {
		return fmt.Sprintf("key_provider \"pbkdf2\" %q {\n  passphrase = %q\n  iterations = 200000\n%s}\n"+
			"method \"aes_gcm\" %[1]q { keys = key_provider.pbkdf2.%[1]s }\n", name, passphrase, more)
	}
	const own, theirs, alias = "c4n4ry of our own module", "c4n4ry of another module", `encrypted_metadata_alias = "key_provider.pbkdf2.main"`
	const first = "state {\n  method = method.aes_gcm.app\n  fallback { method = method.aes_gcm.main }\n}\n"
	selects := func(name string) string { return "state { method = method.aes_gcm." + name + " }\n" }
	sealed := must(t, provider("main", theirs, "")+selects("main"), plain, "encrypt")
	both := provider("main", own, "") + provider("app", theirs, "")
	mistakes := openMistakes(t, "namesakes")
	for name, c := range map[string]struct {
		settings string
		opens    bool
	}{
		"the right key is selected":   {settings: both + selects("app"), opens: true},
		"the other one is selected":   {settings: both + selects("main")},
		"the other one is a fallback": {settings: both + first},
		"with what the error says":    {settings: provider("main", own, "") + provider("app", theirs, alias+"\n") + first, opens: true},
		"none of them is the right":   {settings: provider("main", own, "") + provider("app", own, "") + selects("app")},
		"the selected one has no alias": {settings: provider("main", own, "") + provider("x", own, "") +
			provider("app", own, "") + selects("app")},
	} {
		got := statecrypt(t, c.settings, sealed, "decrypt")
		if (got.code == 0) != c.opens || !c.opens && !strings.Contains(got.stderr, alias) {
			t.Errorf("%s: exit code %d, %s", name, got.code, got.stderr)
		}
		mistakes.check(t, name, got)
	}
}
