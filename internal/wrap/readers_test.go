package wrap_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestReadersWriteNothing: under a command that only reads the state, nobody writes or deletes it, whoever has found
// the proxy. The lock is given and taken back.
//
// Promise: Only encrypted states
func TestReadersWriteNothing(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "only reads")
	for _, command := range []string{
		"plan", "output", "show", "console", "graph", "state list",
	} {
		for _, script := range []string{"POST=" + state, "DELETE"} {
			s := newStore(t)
			before := seal(t, sealing, state)
			s.put(before)
			o, _, out := scripted(t, s, "GET "+script, strings.Fields(command)...)
			code, err, told := run(t, o)
			if command == "plan" {
				mistakes.Ended(t, script[:4], told, code, err)
			}
			if seen := s.requests(); code != 9 || !bytes.Equal(s.stored(), before) || count(seen, "POST")+count(seen, "DELETE") > 0 {
				t.Errorf("%s, %s: %d, %v, %q\n%s", command, script, code, err, seen, out)
			}
		}
		o, _, out := scripted(t, newStore(t), "LOCK={} GET UNLOCK={}", strings.Fields(command)...)
		if code, err, told := run(t, o); code != 0 || err != nil {
			t.Errorf("%s: %d, %v\n%s%s", command, code, err, told, out)
		}
	}
	for _, command := range []string{"refresh", "state rm x", "init"} {
		o, _, out := scripted(t, newStore(t), "GET POST="+state, strings.Fields(command)...)
		if code, err, told := run(t, o); code != 0 || err != nil {
			t.Errorf("%s: %d, %v\n%s%s", command, code, err, told, out)
		}
	}
}

// TestModesOfCopies: nobody else reads the copy of a plan that is applied, which names the backend of the run.
//
// Promise: Only encrypted states
func TestModesOfCopies(t *testing.T) {
	t.Parallel()
	o, dir, out := scripted(t, newStore(t), "modes GET", "apply", "p")
	write(t, dir+"/p", plan(t, "http", ""))
	code, err, told := run(t, o)
	if code != 0 || err != nil || !strings.Contains(out.String(), "\nmode -rw-------\n") {
		t.Errorf("%d, %v\n%s%s", code, err, told, out)
	}
}

// TestHashFails: if the program cannot run init, the user is told what it says, escaped, and without the password of
// the run, nor a log.
//
// Promise: Text from outside
func TestHashFails(t *testing.T) {
	t.Parallel()
	o, _, out := scripted(t, newStore(t), "ready GET", "plan")
	o.Environ = append(o.Environ, "WRAP_TEST_FAILS=no such version\n\x1b[2K::add-mask::x", "TF_LOG=trace-of-a-log",
		"TF_LOG_CORE=trace-of-a-log")
	code, err, told := run(t, o)
	if code != 1 || err == nil || out.String() != "" {
		t.Fatalf("%d, %v, and the child was run: %s", code, err, out)
	}
	shown := told + outside.Text(wraptest.Shown(err))
	if strings.ContainsAny(shown, "\x1b") || !strings.Contains(shown, "no such version") || strings.Contains(shown, "trace-of-a-log") ||
		regexp.MustCompile(`"password":"[A-Z2-7]{26}"`).MatchString(shown) {
		t.Errorf("it says %s", shown)
	}
}
