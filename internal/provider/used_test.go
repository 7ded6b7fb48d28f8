package provider

import (
	"path/filepath"
	"strings"
	"testing"
)

// TF_ENCRYPTION beside blocks is not read, and the provider says so once, whatever it
// reads; use_environment = false silences it.
func TestUnreadEnvironment(t *testing.T) {
	t.Setenv("TF_ENCRYPTION", "key_provider \"static\" \"env\" { key = \"c4n4ry\" }")
	file := writeTemp(t, "state", sealed(t, argumentsState))
	blocks := keyBlock("static {\nkey = \"" + staticKey + "\"\n}")
	twice := reads("s", fromFile(file)) + reads("again", fromFile(filepath.Join(filepath.Dir(file), "state")))
	e := evaluate(t, settings(blocks), twice)
	e.wantWarning("TF_ENCRYPTION is not read", "use_environment = false")
	if n := strings.Count(shownText(e.warnings), "TF_ENCRYPTION is not read"); n != 1 || strings.Contains(shownText(e.warnings), "c4n4ry") {
		t.Errorf("got %d times: %q", n, e.warnings)
	}
	for name, quiet := range map[string]*evaluation{
		"the environment is off": evaluate(t, settings(blocks, "use_environment = false"), twice),
		"text":                   evaluate(t, textProvider(staticText), twice),
	} {
		if strings.Contains(shownText(quiet.succeeds().warnings), "TF_ENCRYPTION") {
			t.Errorf("%s: got %q", name, quiet.warnings)
		}
	}
}

// A module that is not passed the block with the alias gets one that a CLI makes up. The
// error names what to write, and that helps.
func TestAccModuleWithoutProvider(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	file := writeTemp(t, "state", sealed(t, argumentsState))
	provider := settings(`alias = "states"`, keyBlock("static {\nkey = \""+staticKey+"\"\n}"))
	module := func(arguments string) map[string]string {
		return map[string]string{
			"main.tf":   configuration(provider, "module \"m\" {\nsource = \"./m\"\n"+arguments+"\n}\n"),
			"m/main.tf": configuration(reads("s", fromFile(file))),
		}
	}
	got := newProject(t, module("")).firstMistakes()
	const remedy = "providers = { statecrypt = statecrypt.ALIAS }"
	if !strings.Contains(got, "The provider block that was used is empty") || !strings.Contains(got, remedy) {
		t.Errorf("got %s", got)
	}
	if got := newProject(t, module(strings.Replace(remedy, "ALIAS", "states", 1))).firstMistakes(); got != "no mistake was found" {
		t.Errorf("with the remedy: got %s", got)
	}
}
