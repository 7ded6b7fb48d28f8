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
)

// The state in a backend is replaced under its lock, or stays, and whatever happens, the
// lock is given back.
func TestRotateInBackend(t *testing.T) {
	t.Parallel()
	const all, written = "LOCK GET POST GET UNLOCK", "LOCK GET POST UNLOCK"
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
	const back = "it cannot be read back, so keep what there was: "
	const another = back + "the backend has something else than what was written"
	afterPost := func(do func(http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
		posted := false
		return func(w http.ResponseWriter, r *http.Request) bool {
			posted = posted || r.Method == http.MethodPost
			if posted && r.Method == http.MethodGet {
				do(w)
				return true
			}
			return false
		}
	}
	breakOff := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		stored    string // "old" if it is empty, "none" is none
		change    func(string) ([]byte, error)
		lock      string // of somebody else
		intercept func(http.ResponseWriter, *http.Request) bool
		interrupt string // the method of the request that is under way
		requests  string
		want      string // what is stored then
		err       string
	}{
		"rotated": {requests: all, want: "new"},
		"skipped": {change: func(string) ([]byte, error) { return nil, nil }, requests: "LOCK GET UNLOCK", want: "old"},
		"another key": {
			change: func(string) ([]byte, error) { return nil, errors.New("it does not open") }, requests: "LOCK GET UNLOCK", want: "old",
			err: "it does not open",
		},
		"none": {stored: "none", requests: "LOCK GET UNLOCK", err: "there is none at http://127.0.0.1:"},
		"held": {
			lock: `{"ID":"1","Who":"ci@host","Created":"2026-01-01","Operation":"OperationTypeApply"}`, requests: "LOCK", want: "old",
			err: `the backend answered 423 Locked; try again when it is free: "ci@host" has the lock "1" since "2026-01-01", for "OperationTypeApply"`,
		},
		"held by another rotation": {lock: `{"ID":"1"}`, requests: "LOCK", want: "old", err: `"somebody" has the lock "1"`},
		"held, and no word":        {lock: canary, requests: "LOCK", want: "old", err: "the backend answered 423 Locked"},
		"a conflict": {
			intercept: answer("LOCK", 409, `{"Who":"x"}`), requests: "LOCK", want: "old", err: `the backend answered 409 Conflict; try again when it is free: "x" has`,
		},
		"no locks there": {intercept: answer("LOCK", 405, canary), requests: "LOCK", want: "old", err: "the backend answered 405"},
		"not allowed":    {intercept: answer("LOCK", 401, `{"Who":"x"}`), requests: "LOCK", want: "old", err: "401 Unauthorized"},
		"no answer":      {intercept: on("LOCK", breakOff), requests: "LOCK", want: "old", err: "the state cannot be locked: "},
		"not readable":   {intercept: answer("GET", 403, canary), requests: "LOCK GET UNLOCK", want: "old", err: "403 Forbidden"},
		"another answer": {intercept: answer("GET", 203, canary), requests: "LOCK GET UNLOCK", want: "old", err: "answered 203"},
		"not written":    {intercept: answer("POST", 500, canary), requests: written, want: "old", err: "the backend answered 500"},
		"many choices":   {intercept: answer("POST", 300, canary), requests: written, want: "old", err: "the backend answered 300"},
		"a broken write": {intercept: on("POST", breakOff), requests: written, want: "old", err: "the connection broke off"},
		"kept nothing":   {intercept: answer("POST", 200, ""), requests: all, want: "old", err: another},
		"a page for all": {intercept: answer("POST", 200, "<html>"+canary), requests: all, want: "old", err: another},
		"not readable then": {
			intercept: afterPost(func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }), requests: all, want: "new",
			err: back + "the backend answered 403",
		},
		"gone then": {
			intercept: afterPost(func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }), requests: all, want: "new",
			err: another,
		},
		"a page then": {
			intercept: afterPost(func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>" + canary)) }), requests: all, want: "new",
			err: another,
		},
		"not unlocked": {
			intercept: answer("UNLOCK", 500, canary), requests: all, want: "new", err: " was not given back, and force-unlock of the CLI " +
				"does it: the backend answered 500",
		},
		"while it locks":   {interrupt: "LOCK", requests: "LOCK UNLOCK", want: "old", err: context.Canceled.Error()},
		"while it reads":   {interrupt: "GET", requests: "LOCK GET UNLOCK", want: "old", err: "the request was cancelled"},
		"while it seals":   {interrupt: "change", requests: "LOCK GET UNLOCK", want: "old", err: context.Canceled.Error()},
		"while it writes":  {interrupt: "POST", requests: all, want: "new"},
		"while it unlocks": {interrupt: "UNLOCK", requests: all, want: "new"},
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
			err := wrap.Rotate(ctx, wrap.Options{Environ: s.environ(), Stderr: &said}, func(state []byte) ([]byte, error) {
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
			if (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), canary)) ||
				said.Len() > 0 {
				t.Errorf("got %v, %s; want %q", err, &said, c.err)
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
	err := wrap.Rotate(t.Context(), wrap.Options{Environ: append(environ, os.Environ()...), Stderr: &said}, func([]byte) ([]byte, error) {
		return []byte("new"), nil
	})
	if err != nil || string(s.stored()) != "new" || !strings.Contains(said.String(), "the backend has no lock_address") {
		t.Errorf("got %v, %s, %s", err, s.stored(), &said)
	}
}
