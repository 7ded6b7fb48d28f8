package wrap_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// The state in a backend is replaced under its lock, or stays, and whatever happens, the
// lock is given back.
//
// Promise: Files of the command
// Promise: Runs under wrap
func TestRotateInBackend(t *testing.T) {
	t.Parallel()
	const all = "LOCK GET GET POST GET UNLOCK"
	on := func(method string, do http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == method {
				do(w, r)
			}
			return r.Method == method
		}
	}
	answer := func(method string, status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return on(method, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
	afterPost := func(code int, body string) func(http.ResponseWriter, *http.Request) bool {
		posted := false
		return func(w http.ResponseWriter, r *http.Request) bool {
			posted = posted || r.Method == http.MethodPost
			if posted && r.Method == http.MethodGet {
				w.WriteHeader(code)
				_, _ = w.Write([]byte(body))
				return true
			}
			return false
		}
	}
	breakOff := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	mistakes := wraptest.OpenMistakes(t, "in the backend")
	for name, c := range map[string]struct {
		stored    string // "old" if it is empty, "none" is none
		change    func(string) ([]byte, error)
		lock      string // of someone else
		intercept func(http.ResponseWriter, *http.Request) bool
		interrupt string // the method of the request that is under way
		requests  string
		want      string // what is stored then
	}{
		"rotated": {requests: all, want: "new"},
		"skipped": {change: func(string) ([]byte, error) { return nil, nil }, requests: "LOCK GET UNLOCK", want: "old"},
		"another key": {change: func(string) ([]byte, error) { return nil, errors.New("it does not open") }, requests: "LOCK GET UNLOCK",
			want: "old"},
		"none":                     {stored: "none", requests: "LOCK GET UNLOCK"},
		"held":                     {lock: `{"ID":"1","Who":"ci@host","Created":"2026-01-01","Operation":"OperationTypeApply"}`, requests: "LOCK", want: "old"},
		"held by another rotation": {lock: `{"ID":"1"}`, requests: "LOCK", want: "old"},
		"held, and no word":        {lock: canary, requests: "LOCK", want: "old"},
		"a conflict":               {intercept: answer("LOCK", 409, `{"Who":"x"}`), requests: "LOCK", want: "old"},
		"no locks there":           {intercept: answer("LOCK", 405, canary), requests: "LOCK", want: "old"},
		"not allowed":              {intercept: answer("LOCK", 401, `{"Who":"x"}`), requests: "LOCK", want: "old"},
		"no answer":                {intercept: on("LOCK", breakOff), requests: "LOCK LOCK", want: "old"},
		"not readable":             {intercept: answer("GET", 403, canary), requests: "LOCK GET UNLOCK", want: "old"},
		"another answer":           {intercept: answer("GET", 203, canary), requests: "LOCK GET UNLOCK", want: "old"},
		"not written":              {intercept: answer("POST", 500, canary), requests: all, want: "old"},
		"many choices":             {intercept: answer("POST", 300, canary), requests: all, want: "old"},
		"a broken write":           {intercept: on("POST", breakOff), requests: all, want: "old"},
		"kept nothing":             {intercept: answer("POST", 200, ""), requests: all, want: "old"},
		"a page for all":           {intercept: answer("POST", 200, "<html>"+canary), requests: all, want: "old"},
		"not readable then":        {intercept: afterPost(403, ""), requests: all, want: "new"},
		"gone then":                {intercept: afterPost(404, ""), requests: all, want: "new"},
		"a page then":              {intercept: afterPost(200, "<html>"+canary), requests: all, want: "new"},
		"not unlocked":             {intercept: answer("UNLOCK", 500, canary), requests: all, want: "new"},
		"while it locks":           {interrupt: "LOCK", requests: "LOCK UNLOCK", want: "old"},
		"while it reads":           {interrupt: "GET", requests: "LOCK GET UNLOCK", want: "old"},
		"while it seals":           {interrupt: "change", requests: "LOCK GET UNLOCK", want: "old"},
		"while it writes":          {interrupt: "POST", requests: all, want: "new"},
		"while it unlocks":         {interrupt: "UNLOCK", requests: all, want: "new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			if c.stored != "none" {
				s.put([]byte("old"))
			}
			if c.lock != "" {
				s.hold([]byte(c.lock))
			}
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == c.interrupt {
					interrupt()
				}
				return c.intercept != nil && c.intercept(w, r)
			})
			var said bytes.Buffer
			err := rotate(ctx, wrap.Options{Environ: s.environ(), Stderr: &said}, func(state []byte) ([]byte, error) {
				if string(state) != "old" {
					t.Errorf("got %s", state)
				}
				if c.interrupt == "change" {
					interrupt()
				}
				if c.change != nil {
					return c.change(string(state))
				}
				return []byte("new"), nil
			})
			if c.interrupt == "" {
				mistakes.Failed(t, name, said.String(), err)
			} else if (err == nil) != (c.want == "new") || said.Len() > 0 && c.interrupt != "LOCK" { // when it ends decides what it says
				t.Errorf("got %v, %s", err, &said)
			}
			seen := s.requests()
			for i, r := range seen {
				seen[i], _, _ = strings.Cut(r, " ")
			}
			if got := strings.Join(seen, " "); got != c.requests || string(s.stored()) != c.want {
				t.Errorf("the backend was asked to %s, and has %s; want %s, %s", got, s.stored(), c.requests, c.want)
			}
		})
	}
}

// Without an address for locks, the user is told that there are none.
func TestRotateWithoutLocks(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.put([]byte("old"))
	environ := slices.DeleteFunc(s.environ(), func(v string) bool { return strings.Contains(v, "LOCK_ADDRESS") })
	var said bytes.Buffer
	err := rotate(t.Context(), wrap.Options{Environ: append(environ, os.Environ()...), Stderr: &said}, func([]byte) ([]byte, error) {
		return []byte("new"), nil
	})
	wraptest.OpenMistakes(t, "in the backend, without locks").Failed(t, "rotated", said.String(), err)
	if string(s.stored()) != "new" {
		t.Errorf("got %s", s.stored())
	}
}

// rotate changes the state of the block.
func rotate(ctx context.Context, o wrap.Options, change func([]byte) ([]byte, error)) error {
	states, err := states.Open(o.Where, o.Keys.State, o.Environ, states.Notes(o.Stderr, ""))
	if err != nil {
		return err
	}
	return errors.Join(states.Rotate(ctx, "", change), states.Close())
}

// TestLastLine: if the server fails in the end, one last line says how to write the state and how to release the lock.
//
// Promise: Runs under wrap
func TestLastLine(t *testing.T) {
	t.Parallel()
	const lock = `{"ID":"4711","Who":"ci@host"}`
	mistakes := wraptest.OpenMistakes(t, "last line")
	for name, script := range map[string]string{
		"a state and a lock": "LOCK=" + lock + " GET leave=errored.tfstate UNLOCK=" + lock,
		"a lock":             "LOCK=" + lock + " GET UNLOCK=" + lock,
	} {
		s := newStore(t)
		s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
			fails := r.Method == http.MethodPost || r.Method == "UNLOCK"
			if fails {
				w.WriteHeader(http.StatusBadGateway)
			}
			return fails
		})
		o, _, _ := scripted(t, s, script, "apply")
		code, err, told := run(t, o)
		mistakes.Ended(t, name, told, code, err)
		if code == 0 {
			t.Errorf("%s: it succeeds", name)
		}
	}
}
