package wrap_test

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestErroredIsInTheWay: beside a state that could not be written, nothing is changed,
// whether it is encrypted or not, nor is it pushed, and every other command says that it is
// there.
//
// Promise: Runs under wrap
func TestErroredIsInTheWay(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "errored.tfstate there")
	push := []string{"state", "push", "errored.tfstate"}
	for name, c := range testkit.Some(map[string]struct {
		left    string
		args    []string
		refused bool
	}{
		"plaintext, apply":     {left: state, args: []string{"apply"}, refused: true},
		"plaintext, destroy":   {left: state, args: []string{"destroy"}, refused: true},
		"plaintext, import":    {left: state, args: []string{"import", "a", "b"}, refused: true},
		"plaintext, refresh":   {left: state, args: []string{"refresh"}, refused: true},
		"plaintext, plan":      {left: state, args: []string{"plan"}},
		"plaintext, init":      {left: state, args: []string{"init"}},
		"plaintext, push":      {left: state, args: push, refused: true},
		"plaintext, by a link": {left: state, args: []string{"state", "push", "link"}, refused: true},
		"sealed, apply":        {left: "sealed", args: []string{"apply"}, refused: true},
		"sealed, plan":         {left: "sealed", args: []string{"plan"}},
		"sealed, push":         {left: "sealed", args: push, refused: true},
		"an empty one":         {left: " ", args: []string{"apply"}, refused: true},
		"no bytes":             {args: []string{"apply"}},
		"something else":       {left: "something " + canary, args: []string{"apply"}, refused: true},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "GET", c.args...)
			left := c.left
			if left == "sealed" {
				left = string(seal(t, sealing, state))
			}
			write(t, filepath.Join(dir, "errored.tfstate"), left)
			if err := os.Symlink("errored.tfstate", filepath.Join(dir, "link")); err != nil {
				t.Skip(err)
			}
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if (code == 1) != c.refused || c.refused == strings.Contains(out.String(), "GET 404") {
				t.Errorf("got %d, %v\n%s", code, err, out)
			}
		})
	}
}

// TestSaved: what neither the backend nor the folder of the module takes, the child would print. It
// is kept, encrypted, where the error says, and nothing is changed beside it.
//
// Promise: Runs under wrap
func TestSaved(t *testing.T) {
	const mine = `{"ID":"1","Operation":"OperationTypeApply","Who":"me@host","Created":"2026-11-27T00:00:00Z"}`
	const stuck = ".terraform.tfstate.journal,errored.tfstate" // which are written to in vain
	newer := strings.Replace(state, `"serial":1`, `"serial":2`, 1)
	place := regexp.MustCompile(`(?m) (?:(/\S*errored\S*\.tfstate);|([A-Za-z0-9+/]{100,}=*)$)`)
	locked := func(script string) string { return "LOCK=" + mine + " GET " + script + " UNLOCK=" + mine }
	for name, c := range testkit.Some(map[string]struct {
		script     string
		args       []string
		home, temp bool // can be written to
		code       int
		want       string // what is kept
		beside     bool   // a later run sees it
	}{
		"at home":         {script: "mkdir=" + stuck + " POST:1=" + newer, home: true, temp: true, code: 1, want: newer, beside: true},
		"twice":           {script: "mkdir=" + stuck + " POST:1=" + state + " POST:1=" + newer, home: true, code: 1, want: newer, beside: true},
		"no home":         {script: "mkdir=" + stuck + " POST:1=" + newer, temp: true, code: 1, want: newer},
		"no home, twice":  {script: "mkdir=" + stuck + " POST:1=" + state + " POST:1=" + newer, temp: true, code: 1, want: newer},
		"nowhere":         {script: "mkdir=" + stuck + " POST:1=" + newer, code: 1, want: newer},
		"only once":       {script: "mkdir=" + stuck + " POST:1=" + state + " rmdir=" + stuck + " POST:1=" + newer, home: true},
		"the child can":   {script: "mkdir=.terraform.tfstate.journal POST:1=" + newer, home: true, code: 9},
		"nothing changes": {script: "mkdir=" + stuck + " POST:1=" + newer, args: []string{"state", "rm", "x"}, home: true, code: 9},
	}) {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			o, dir, out := inFile(t, locked(c.script), append(c.args, "apply")[:max(1, len(c.args))]...)
			write(t, filepath.Join(dir, "terraform.tfstate"), string(seal(t, sealing, state)))
			home := t.TempDir()
			t.Setenv("HOME", filepath.Join(home, map[bool]string{true: "", false: "none"}[c.home]))
			t.Setenv("TMPDIR", filepath.Join(temporary, map[bool]string{true: "", false: "none"}[c.temp]))
			code, err, told := run(t, o)
			if code != c.code || strings.Contains(told+out.String(), `"serial":2`) {
				t.Errorf("got %d, %v, want %d\n%s%s", code, err, c.code, told, out)
			}
			kept := []string(nil)
			if err != nil {
				kept = place.FindStringSubmatch(err.Error())
			}
			if (kept != nil) != (c.want != "") {
				t.Fatalf("got %v", err)
			}
			if kept == nil {
				return
			}
			text, _ := base64.StdEncoding.DecodeString(kept[2])
			if kept[1] != "" {
				text = []byte(read(t, kept[1]))
			}
			if opened, err := target(t, sealing).Decrypt(t.Context(), text); err != nil || !opened.Encrypted || string(opened.Data) != c.want {
				t.Errorf("it is not kept, but %.200s, %v", text, err)
			}
			for _, left := range strings.Split(stuck, ",") {
				_ = os.Remove(filepath.Join(dir, left))
			}
			o.Environ = append(o.Environ, "WRAP_TEST_SCRIPT="+locked(""))
			if code, err, told := run(t, o); (code == 1) != c.beside {
				t.Errorf("the next run: %d, %v\n%s", code, err, told)
			}
		})
	}
}

// TestLeftUnderALock: while someone has the lock, perhaps the program of the run that was killed, what is left in
// plaintext is named, and stays.
func TestLeftUnderALock(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "left under a lock")
	for name, c := range map[string]struct{ held, broken bool }{"held": {held: true}, "no key": {broken: true}} {
		s := newStore(t)
		o, dir, _ := scripted(t, s, "GET", "plan")
		if c.held {
			s.hold([]byte(lock))
		}
		if c.broken {
			o.Keys.State = target(t, `method "external" "e" {
  encrypt_command = ["false"]
  decrypt_command = ["false"]
}
state { method = method.external.e }`)
		}
		path := filepath.Join(dir, "errored.tfstate")
		write(t, path, state)
		code, err, told := run(t, o)
		mistakes.Ended(t, name, told, code, err)
		if read(t, path) != state || !strings.HasPrefix(told, "statecrypt: warning: errored.tfstate ") {
			t.Errorf("%s: %s", name, told)
		}
		if c.held != (string(s.held()) == lock) {
			t.Errorf("%s: the lock is %s", name, s.held())
		}
	}
}

// TestCrash has the child crash while it has the lock, as OpenTofu does from 1.13 on: what it had made is left in a
// state of the next serial, which is encrypted. The lock stays, and recover writes the state.
//
// Promise: Only encrypted states
func TestCrash(t *testing.T) {
	const panicked = 11
	mistakes := wraptest.OpenMistakes(t, "crash")
	s := newStore(t)
	s.put(seal(t, sealing, state))
	before := s.stored()
	r, dir := recovering(t, s)
	o, _, out := scripted(t, s, "LOCK="+lock+" GET leave=errored.tfstate,"+newer+" exit=11", "apply")
	o.Command[1] = "-chdir=" + dir
	code, err, told := run(t, o)
	mistakes.Ended(t, "apply", told, code, err)
	if code != panicked || err == nil || !bytes.Equal(s.stored(), before) || s.held() == nil {
		t.Fatalf("%d, %v, the lock is %s\n%s", code, err, s.held(), out)
	}
	left := []byte(read(t, filepath.Join(dir, "errored.tfstate")))
	if opened, err := o.Keys.State.Decrypt(t.Context(), left); err != nil || !opened.Encrypted || string(opened.Data) != newer {
		t.Errorf("this is left: %.200s, %v", left, err)
	}
	if err, told := recovered(t, r, states.Recovery{Unlock: id(s.held())}); err != nil {
		t.Fatalf("%v\n%s", err, told)
	}
	if opened, err := o.Keys.State.Decrypt(t.Context(), s.stored()); err != nil || string(opened.Data) != newer || s.held() != nil {
		t.Errorf("%v, this is stored: %.200s; the lock is %s", err, s.stored(), s.held())
	}
}
