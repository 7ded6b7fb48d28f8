package recognize

import (
	"path/filepath"
	"testing"
)

// What may be a secret in the place of a path is never taken for a path.
func TestIsPath(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"/no/such/account.json":           true,
		"~/keys/ca.pem":                   true,
		"../keys/client key.crt":          true,
		"account.json":                    true,
		`.\keys\account.json`:             true,
		"":                                false,
		"~/.ssh/id_ed25519":               true,
		filepath.Join(t.TempDir(), "key"): true,
		filepath.Join(t.TempDir(), "no", "such", "key"): true,
		"/no-such-folder/id_ed25519":                    false,
		"/id_ed25519":                                   false,
		"id_ed25519":                                    false,
		"./Zx0qN8w9c4n4ry":                              false,
		"ya29.a0AfH6SMBx":                               false,
		"eyJhbGciOi.eyJzdWIi.c2lnbmF0dXJl":              false,
		"/bXkgc2VjcmV0IGtleSBvZiAz+8=":                  false,
		`{"private_key": "x.pem"`:                       false,
		"-----BEGIN KEY-----\nx.pem":                    false,
		"line\nbreak.json":                              false,
	} {
		if got := IsPath(text); got != want {
			t.Errorf("%q: got %t", text, got)
		}
	}
	for text, want := range map[string]bool{`C:\keys`: true, "C:/keys": true, "C:keys": false, "CC:/keys": false} {
		if got := IsOfWindows(text); got != (want && filepath.Separator != '\\') {
			t.Errorf("%q: got %t", text, got)
		}
	}
}
