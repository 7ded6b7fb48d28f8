package all

import (
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/file"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/git"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

// TestPathIsNoAddress: an address in the place of a path may hold a password, and paths are
// shown.
func TestPathIsNoAddress(t *testing.T) {
	t.Parallel()
	for kind, check := range map[string]func(path string) error{
		"file": file.CheckPath, "object": object.CheckKey,
		"git": func(path string) error { _, err := git.CleanPath(path); return err },
	} {
		for _, text := range []string{"https://u:canary@h/a", "git::https://u:canary@h/a//s", " https://u:canary@h/a", `"https://u:canary@h/a"`} {
			if err := check(text); err == nil || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s, %q: got %v", kind, text, err)
			}
		}
	}
}
