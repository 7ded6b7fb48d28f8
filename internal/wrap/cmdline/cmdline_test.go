package cmdline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// A short word is near to any other, so nothing is suggested for it.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	plan := Command{Name: "plan", Flags: operation}
	mistakes := wraptest.OpenMistakes(t, "suggestion")
	for _, flag := range []string{"--", "-x", "-log", "-refesh", "-minimal-refesh", "--no-colour"} {
		mistakes.Failed(t, flag, "", (&Line{Command: plan}).parse([]string{flag}))
	}
	for _, word := range []string{
		"test", "test cleanup", "stacks list", "state migrate", "workspace new", "env", "push", "pln", "state lst", "state foo",
		"state migrat", "plam foo", "-config keys.hcl plan", "--encrypt-existing init", "-no-color plan",
	} {
		_, err := (&Line{}).subcommand(strings.Fields(word))
		mistakes.Failed(t, word, "", err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".terraform"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Program([]string{filepath.Join(dir, "terraform")})
	mistakes.Failed(t, "a program beside its data", "", err)
}

// The page of the command says what wrap runs.
func TestCommandsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/guides/command.md")
	if err != nil {
		t.Fatal(err)
	}
	for does, what := range map[Effect]string{Passes: "nothing", Reads: "read it", Writes: "write it", Changes: "change what it describes"} {
		var names []string
		for _, c := range commands() {
			if c.Does == does {
				names = append(names, c.Name)
			}
		}
		if row := "\n| " + what + " | `" + strings.Join(names, "`, `") + "` |\n"; !strings.Contains(string(page), row) {
			t.Errorf("the page lacks %s", row)
		}
	}
}
