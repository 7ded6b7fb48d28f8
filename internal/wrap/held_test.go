package wrap_test

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

const (
	lock   = `{"ID":"4711","Operation":"OperationTypeApply","Who":"somebody@host","Created":"2026-01-01T00:00:00Z"}`
	nested = `{"ID":"other"}`
)

// withoutLocks is the environment without the addresses for locks.
func withoutLocks(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool { return strings.Contains(pair, "LOCK_ADDRESS=") })
}

// refuse has the store refuse requests of a method.
func (s *store) refuse(method string) {
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == method {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return r.Method == method
	})
}

// bodies are those of the requests of a method.
func (s *store) bodies(method string) <-chan string {
	got := make(chan string, 9)
	s.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == method {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			got <- string(body)
		}
		return false
	})
	return got
}

// TestChildLock: whoever finds the address of this run, such as a CLI that a provisioner
// starts, gets no lock beside that of the child, writes nothing without it, and does not
// give it back; whether the backend has locks or not.
//
// Promise: Only encrypted states
func TestChildLock(t *testing.T) {
	t.Parallel()
	const written = "POST=" + state
	mistakes := wraptest.OpenMistakes(t, "lock of the child")
	for name, c := range map[string]struct {
		script  string
		args    []string
		code    int
		written int
	}{
		"the child's":          {script: "LOCK=" + lock + " GET POST:4711=" + state + " UNLOCK=" + lock, written: 1},
		"a second":             {script: "LOCK=" + lock + " GET LOCK=" + nested, code: 9},
		"after it":             {script: "LOCK=" + lock + " GET UNLOCK=" + lock + " LOCK=" + nested + " UNLOCK=" + nested},
		"a write without it":   {script: "LOCK=" + lock + " GET " + written, code: 9},
		"a write of another":   {script: "LOCK=" + lock + " GET POST:other=" + state, code: 9},
		"a write after it":     {script: "LOCK=" + lock + " GET UNLOCK=" + lock + " " + written, code: 9},
		"a removal":            {script: "LOCK=" + lock + " GET DELETE", code: 9},
		"given back by force":  {script: "LOCK=" + lock + " GET UNLOCK", code: 9},
		"given back by others": {script: "LOCK=" + lock + " GET UNLOCK=" + nested, code: 9},
		"no locks": {script: "GET " + written + " LOCK=" + nested, args: []string{"state", "rm", "-lock=false", "x"}, code: 9,
			written: 1},
		"no locks, as a number": {script: "GET LOCK=" + nested, args: []string{"state", "rm", "-lock=0", "x"}, code: 9},
		"locks after all": {
			script: "LOCK=" + lock + " GET UNLOCK=" + lock, args: []string{"state", "rm", "-lock=false", "-lock=true", "x"},
		},
	} {
		for there, environ := range map[string]func([]string) []string{"": slices.Clone[[]string], ", none in the backend": withoutLocks} {
			t.Run(name+there, func(t *testing.T) {
				t.Parallel()
				args := c.args
				if args == nil {
					args = []string{"state", "rm", "x"}
				}
				s := newStore(t)
				o, _, out := scripted(t, s, c.script, args...)
				o.Environ = environ(o.Environ)
				code, err, told := run(t, o)
				mistakes.Ended(t, name+there, told, code, err)
				if code != c.code {
					t.Errorf("got %d, %v, want %d\n%s", code, err, c.code, out)
				}
				seen := s.requests()
				if n := count(seen, "POST"); n != c.written || there != "" && count(seen, "LOCK")+count(seen, "UNLOCK") > 0 {
					t.Errorf("the backend was asked to %q", seen)
				}
			})
		}
	}
}

// TestLeftLock: a lock that the child has left is given back after a command that only
// reads. After any other it stays, and wrap says so, and how it is given back.
//
// Promise: Runs under wrap
func TestLeftLock(t *testing.T) {
	needSignals(t)
	mistakes := wraptest.OpenMistakes(t, "lock that is left")
	for name, c := range map[string]struct {
		script string
		args   []string
		code   int
		gone   bool
		lock   string
		broken bool // the backend does not take it back
	}{
		"plan":            {script: "die", args: []string{"plan"}, code: 137, gone: true},
		"plan, failed":    {script: "exit=1", args: []string{"plan"}, code: 1, gone: true},
		"apply":           {script: "die", args: []string{"apply"}, code: 137},
		"apply, failed":   {script: "exit=1", args: []string{"apply"}, code: 1},
		"apply, done":     {script: "exit=0", args: []string{"apply"}, code: 1},
		"destroy":         {script: "die", args: []string{"destroy"}, code: 137},
		"state rm":        {script: "die", args: []string{"state", "rm", "x"}, code: 137},
		"apply, no ID":    {script: "die", lock: "{}", args: []string{"apply"}, code: 137},
		"apply, given":    {script: "UNLOCK=" + lock + " die", args: []string{"apply"}, code: 137, gone: true},
		"apply, not then": {script: "UNLOCK=" + lock, args: []string{"apply"}, code: 9, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			if c.broken {
				s.refuse("UNLOCK")
			}
			o, _, _ := scripted(t, s, "LOCK="+cmp.Or(c.lock, lock)+" GET "+c.script, c.args...)
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if code != c.code || (err == nil) != c.gone {
				t.Errorf("got %d, %v", code, err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if (s.lock == nil) != c.gone {
				t.Errorf("the lock is %s", s.lock)
			}
		})
	}
}

// TestKilledWithoutLock: also if no lock stays in the backend, wrap says that what the
// program has changed may be in no state.
func TestKilledWithoutLock(t *testing.T) {
	needSignals(t)
	mistakes := wraptest.OpenMistakes(t, "killed without a lock")
	for name, c := range map[string]struct {
		script string
		args   []string
		locks  bool // the backend has them
		code   int
		silent bool
	}{
		"apply":                {script: "LOCK=" + lock + " GET die", args: []string{"apply"}, code: 137},
		"apply, failed":        {script: "LOCK=" + lock + " GET exit=1", args: []string{"apply"}, code: 1},
		"apply, given back":    {script: "LOCK=" + lock + " GET UNLOCK=" + lock + " exit=1", args: []string{"apply"}, code: 1, silent: true},
		"apply, no lock":       {script: "GET die", args: []string{"apply", "-lock=false"}, code: 137},
		"apply, no lock taken": {script: "GET die", args: []string{"apply", "-lock=false"}, locks: true, code: 137},
		"apply, not begun":     {script: "GET die", args: []string{"apply"}, locks: true, code: 137, silent: true},
		"failed, no lock":      {script: "GET exit=1", args: []string{"apply", "-lock=false"}, code: 1, silent: true},
		"state rm, no lock":    {script: "GET die", args: []string{"state", "rm", "-lock=false", "x"}, code: 137},
		"plan":                 {script: "LOCK=" + lock + " GET die", args: []string{"plan"}, code: 137, silent: true},
		"plan, no lock":        {script: "GET die", args: []string{"plan", "-lock=false"}, code: 137, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, _ := scripted(t, newStore(t), c.script, c.args...)
			if !c.locks {
				o.Environ = withoutLocks(o.Environ)
			}
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if code != c.code || (err == nil) != c.silent {
				t.Errorf("got %d, %v", code, err)
			}
		})
	}
}

// TestHolder: wrap says once who has the lock, and how it is given back.
//
// Promise: Runs under wrap
func TestHolder(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.hold([]byte(lock))
	o, _, _ := scripted(t, s, "GET LOCK="+nested, "apply")
	code, err, told := run(t, o)
	wraptest.OpenMistakes(t, "holder").Ended(t, "once", told, code, err)
}

// TestForceUnlock: the backend is told which lock is to be given back, also if the CLI does
// not say so.
func TestForceUnlock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"nothing":        {script: "UNLOCK", want: `{"ID":"4711"}`},
		"as OpenTofu":    {script: `UNLOCK={"ID":"4711"}`, want: `{"ID":"4711"}`},
		"something else": {script: `UNLOCK={"ID":"1"}`, want: `{"ID":"1"}`},
	} {
		s := newStore(t)
		o, _, out := scripted(t, s, "GET "+c.script, "force-unlock", "4711")
		got := s.bodies("UNLOCK")
		if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
			t.Fatalf("%s: %d, %v\n%s", name, code, err, out)
		}
		if body := <-got; body != c.want {
			t.Errorf("%s: the backend got %q", name, body)
		}
	}
}

// TestAnotherRunWithoutLocks: if the backend has no locks, what the child has planned for is
// what it may replace, also if it has the lock of wrap.
func TestAnotherRunWithoutLocks(t *testing.T) {
	needSignals(t)
	theirs := seal(t, sealing, strings.Replace(state, `"serial":1`, `"serial":2`, 1))
	ours := strings.Replace(state, `"serial":1`, `"serial":3`, 1)
	for name, before := range map[string][]byte{"the first state": nil, "the next one": seal(t, sealing, state)} {
		for taken, script := range map[string]string{
			"": "GET GET POST=" + ours, ", with a lock": "LOCK=" + lock + " GET GET POST:4711=" + ours + " UNLOCK=" + lock,
		} {
			t.Run(name+taken, func(t *testing.T) {
				t.Parallel()
				s := newStore(t)
				if before != nil {
					s.put(before)
				}
				reads := 0
				s.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodGet {
						if reads++; reads == 2 { // by now, another run has written
							s.put(theirs)
						}
					}
					return false
				})
				args := []string{"apply"}
				if taken == "" {
					args = append(args, "-lock=false")
				}
				o, _, out := scripted(t, s, script, args...)
				o.Environ = withoutLocks(o.Environ)
				if code, err, _ := run(t, o); code != 9 || !bytes.Equal(s.stored(), theirs) {
					t.Errorf("got %d, %v, and the state of the other run is there: %t\n%s", code, err, bytes.Equal(s.stored(), theirs), out)
				}
			})
		}
	}
}
