package wrap_test

import (
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestOnlyTheFallbackOpens: a run that reads a state which only a fallback opens says so, also if it changes
// nothing: without the old key, nobody would open the state. The state stays as it is.
func TestOnlyTheFallbackOpens(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "only the fallback opens")
	both := wraptest.Keys + `
key_provider "static" "new" { key = "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f" }
method "aes_gcm" "new" { keys = key_provider.static.new }
state {
  method = method.aes_gcm.new
  fallback { method = method.aes_gcm.m }
}`
	for name, c := range map[string]struct {
		settings, script, command string
		said                      bool
	}{
		"apply without changes": {settings: both, script: "GET", command: "apply", said: true},
		"plan":                  {settings: both, script: "GET GET", command: "plan", said: true},
		"written":               {settings: both, script: "GET POST=" + newer + " GET", command: "apply", said: true},
		"the first method":      {settings: sealing, script: "GET", command: "apply"},
	} {
		s := newStore(t)
		before := seal(t, sealing, state)
		s.put(before)
		o, _, _ := scripted(t, s, c.script, c.command)
		o.Keys.State = target(t, c.settings)
		code, err, told := run(t, o)
		mistakes.Ended(t, name, told, code, err)
		if err != nil || (strings.Count(told, "rotate -again -to FILE -backend") == 1) != c.said {
			t.Errorf("%s: %v, %s", name, err, told)
		}
		if isSame := string(s.stored()) == string(before); isSame != (name != "written") {
			t.Errorf("%s: the state stays as it is: %t", name, isSame)
		}
	}
}
