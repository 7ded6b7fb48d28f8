package provider

import (
	"strings"
	"testing"
)

// TF_ENCRYPTION beside blocks is not read. Whoever reads a file says so only if it
// cannot be opened: the variable may be for OpenTofu's own states.
func TestUnreadEnvironment(t *testing.T) {
	t.Setenv("TF_ENCRYPTION", "key_provider \"static\" \"env\" { key = \"c4n4ry\" }")
	file := reads("s", fromFile(writeTemp(t, "state", sealed(t, argumentsState))))
	right, wrong := keyBlock("static {\nkey = \""+staticKey+"\"\n}"), keyBlock("static {\nkey = \""+strings.Repeat("ab", 32)+"\"\n}")
	golden := openMistakes(t, "unread environment")
	if e := evaluate(t, settings(right), file).succeeds(); strings.Contains(shownText(e.warnings), "TF_ENCRYPTION") {
		t.Errorf("got %q", e.warnings)
	}
	for name, provider := range map[string]string{
		"another key":            settings(wrong),
		"the environment is off": settings(wrong, "use_environment = false"),
		"text":                   textProvider(strings.Replace(staticText, staticKey, strings.Repeat("ab", 32), 1)),
	} {
		evaluate(t, provider, file).wantMistake(golden, name)
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
	if !strings.Contains(got, remedy) {
		t.Errorf("got %s", got)
	}
	if got := newProject(t, module(strings.Replace(remedy, "ALIAS", "states", 1))).firstMistakes(); got != "no mistake was found" {
		t.Errorf("with the remedy: got %s", got)
	}
}
