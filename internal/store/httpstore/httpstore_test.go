package httpstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/httpsource"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/careful"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

const password = "password-c4n4ry"

// server keeps one state, for Terraform's http backend.
type server struct {
	mu     sync.Mutex
	state  []byte
	lock   []byte
	before func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) // nil serves
	asked  []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method)
	if s.before != nil {
		s.before(w, r, s.serve)
		return
	}
	s.serve(w, r)
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	held, _ := store.ParseLock(s.lock)
	body, _ := io.ReadAll(r.Body)
	_, given, _ := r.BasicAuth()
	given2, _ := store.ParseLock(body)
	switch id := r.URL.Query().Get("ID"); {
	case given != password:
		w.WriteHeader(http.StatusForbidden)
	case r.Method == http.MethodGet:
		if s.state == nil {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(s.state)
	case r.Method == "LOCK" && s.lock != nil, r.Method == "UNLOCK" && held.ID != given2.ID,
		(r.Method == http.MethodPost || r.Method == http.MethodDelete) && s.lock != nil && held.ID != id:
		w.WriteHeader(http.StatusLocked)
		_, _ = w.Write(s.lock)
	case (r.Method == http.MethodPost || r.Method == http.MethodDelete) && s.lock == nil && id != "":
		w.WriteHeader(http.StatusPreconditionRequired)
	case r.Method == http.MethodPost:
		s.state = body
	case r.Method == http.MethodDelete:
		s.state = nil
	case r.Method == "LOCK":
		s.lock = body
	case r.Method == "UNLOCK":
		s.lock = nil
	}
}

// at is the state at a URL.
func at(t *testing.T, url, password string) store.State {
	t.Helper()
	text := cty.StringVal
	return by(t, url, map[string]cty.Value{
		"address": text(url), "lock_address": text(url), "unlock_address": text(url), "username": text("ci"), "password": text(password),
	})
}

// by is the state that a block of settings describes.
func by(t *testing.T, url string, block map[string]cty.Value) store.State {
	t.Helper()
	values, err := unstable.NewEntry("backend.http", httpsource.Backend(), block).Decode(httpsource.Backend(), nil)
	var s store.Store
	if err == nil {
		s, err = Kind().Open(store.Settings{Values: values, Limit: 512 << 20, Patience: time.Minute})
	}
	var state store.State
	if err == nil {
		state, err = s.State(url)
	}
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// carefully is a state as wrap uses it.
func carefully(s store.State) store.State { return careful.New(s, s.(*backend).Properties()) }

func start(t *testing.T) (*server, string) {
	t.Helper()
	s := &server{}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	return s, listening.URL
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{Properties: store.Properties{HasLocks: true}, Place: func(t *testing.T, name string) storetest.Place {
		s, url := start(t)
		return storetest.Place{
			Open: func(t *testing.T) store.State { return at(t, url+"/"+name, password) },
			Put: func(_ *testing.T, data []byte) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.state = data
			},
			Lose: func(*testing.T) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.lock = nil
			},
			Lie: func(_ *testing.T, what storetest.Lie) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.before = func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
					methods := map[storetest.Lie]string{
						storetest.LieOfLock: "LOCK", storetest.LieOfWrite: http.MethodPost, storetest.LieOfRemove: http.MethodDelete,
					}
					if what == storetest.LieOfLock { // then the ID of a lock is not looked at
						r.URL.RawQuery = ""
					}
					if methods[what] != r.Method {
						serve(w, r)
					}
				}
			},
			Weaken: func(*testing.T) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.before = func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
					w.Header().Set("ETag", `W/"`+string(store.Digest(s.state))+`"`)
					serve(w, r)
				}
			},
			Secrets: []string{password},
		}
	}})
}

// TestAmbiguous: whatever becomes of an answer, what was done is a success, and what was not is
// an error; nothing is done twice.
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	hangUp := func() { panic(http.ErrAbortHandler) }
	do := func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) { serve(w, r) }
	for name, c := range map[string]struct {
		fault func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc)
		done  bool
	}{
		"answered": {fault: do, done: true},
		"answered and dropped": {done: true, fault: func(_ http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
			serve(httptest.NewRecorder(), r)
			hangUp()
		}},
		"answered, and an error": {done: true, fault: func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
			serve(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusBadGateway)
		}},
		"refused and dropped": {fault: func(http.ResponseWriter, *http.Request, http.HandlerFunc) { hangUp() }},
		"refused": {fault: func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
			w.WriteHeader(http.StatusForbidden)
		}},
		"answered twice": {done: true, fault: func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			serve(httptest.NewRecorder(), r)
			r.Body = io.NopCloser(bytes.NewReader(body))
			serve(w, r)
		}},
	} {
		for _, method := range []string{"LOCK", http.MethodPost} {
			t.Run(method+" "+name, func(t *testing.T) {
				t.Parallel()
				s, url := start(t)
				state := carefully(at(t, url, password))
				if method == http.MethodPost {
					if err := state.Lock(t.Context(), storetest.Lock("1")); err != nil {
						t.Fatal(err)
					}
				}
				s.before = func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
					if r.Method != method || c.done && count(s.asked, method) > 1 { // it happens once
						serve(w, r)
						return
					}
					c.fault(w, r, serve)
				}
				err := state.Lock(t.Context(), storetest.Lock("1"))
				if method == http.MethodPost {
					_, err = state.Write(t.Context(), storetest.State(1), "")
				}
				there := s.lock
				if method == http.MethodPost {
					there = s.state
				}
				if (err == nil) != c.done || (there != nil) != c.done {
					t.Errorf("%v, and there is %.50q, after %q", err, there, s.asked)
				}
			})
		}
	}
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// TestDenied: a refusal is one, and not a lost answer.
func TestDenied(t *testing.T) {
	t.Parallel()
	s, url := start(t)
	state := carefully(at(t, url, "wrong"))
	_, _, errRead := state.Read(t.Context())
	_, errWrite := state.Write(t.Context(), storetest.State(1), "")
	for _, err := range []error{errRead, errWrite, state.Lock(t.Context(), storetest.Lock("1")), state.Unlock(t.Context(), "1")} {
		if !errors.Is(err, store.ErrDenied) {
			t.Errorf("got %v", err)
		}
	}
	if count(s.asked, "LOCK") != 1 {
		t.Errorf("the server was asked to %q", s.asked)
	}
}

// TestDigest: a server that asks for nothing but Digest says so, whatever was sent.
func TestDigest(t *testing.T) {
	t.Parallel()
	s, url := start(t)
	s.before = func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		w.Header().Set("WWW-Authenticate", `Digest realm="x", nonce="y"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
	_, _, err := at(t, url, password).Read(t.Context())
	if !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), recognize.Unsupported) {
		t.Errorf("got %v", err)
	}
}

// TestExposed: credentials that others could read on the way are told of, once.
func TestExposed(t *testing.T) {
	t.Parallel()
	s, proxy := start(t)
	s.state = storetest.State(1)
	text := cty.StringVal
	const elsewhere = "http://state.example.com/s"
	for name, c := range map[string]struct {
		address string
		more    map[string]cty.Value
		want    int
	}{
		"another machine": {elsewhere, map[string]cty.Value{"username": text("ci"), "password": text(password)}, 1},
		"a token":         {elsewhere, map[string]cty.Value{"bearer_token": text(password)}, 1},
		"nothing to read": {elsewhere, nil, 0},
		"this machine":    {proxy, map[string]cty.Value{"username": text("ci"), "password": text(password)}, 0},
	} {
		block := map[string]cty.Value{"address": text(c.address), "proxy": text(proxy)}
		maps.Copy(block, c.more)
		var said []string
		ctx := notice.With(t.Context(), func(text string) { said = append(said, text) })
		state := by(t, c.address, block)
		for range 2 {
			if _, _, err := state.Read(ctx); err != nil && !errors.Is(err, store.ErrDenied) {
				t.Fatal(err)
			}
		}
		if len(said) != c.want || c.want > 0 && said[0] != exposed {
			t.Errorf("%s: got %q", name, said)
		}
	}
}

// TestOnlyOKLocks: a server of files makes an empty file of a lock, and says 201; Terraform takes
// nothing but 200 for a lock.
func TestOnlyOKLocks(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "no locks", password)
	for _, status := range []int{http.StatusCreated, http.StatusAccepted, http.StatusNoContent} {
		s, url := start(t)
		s.before = func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
			if r.Method == "LOCK" {
				w.WriteHeader(status)
				return
			}
			serve(w, r)
		}
		err := carefully(at(t, url, password)).Lock(t.Context(), storetest.Lock("1"))
		answer, ok := errors.AsType[*store.AnswerError](err)
		if !ok || answer.Status != status || answer.Err != nil {
			t.Errorf("%d: %v", status, err)
		}
		says.Error(t, strconv.Itoa(status), err)
	}
}

// TestConflicts: a write that is in conflict with something has met no lock, unless the server says whose
// that is.
func TestConflicts(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "conflicts", password)
	for name, c := range map[string]struct {
		method, body string
		there, held  bool
	}{
		"the first state":        {method: http.MethodPost},
		"another state":          {method: http.MethodPost, there: true},
		"in the words of others": {method: http.MethodPost, there: true, body: `{"error":"conflict"}`},
		"a removal":              {method: http.MethodDelete, there: true},
		"a lock":                 {method: http.MethodPost, there: true, held: true, body: `{"ID":"2","Who":"x@y"}`},
	} {
		s, url := start(t)
		var read store.Version
		if c.there {
			s.state = storetest.State(1)
			read = store.Identity(s.state)
		}
		s.before = func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
			if r.Method == c.method {
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, c.body)
				return
			}
			serve(w, r)
		}
		state := carefully(at(t, url, password))
		change := func() error {
			_, err := state.Write(t.Context(), storetest.State(2), read)
			return err
		}
		if c.method == http.MethodDelete {
			change = func() error { return state.Remove(t.Context(), read) }
		}
		err := change()
		_, isHeld := errors.AsType[*store.HeldError](err)
		if isHeld != c.held {
			t.Errorf("%s: %v", name, err)
		}
		says.Error(t, name, err)
	}
}

// TestReformatted: a server may keep the JSON of a state in another form, as databases do. It is the
// same state, for whoever has read it, and for whoever looks whether it has arrived.
func TestReformatted(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]func(serial int) string{
		"envelope": func(serial int) string {
			return fmt.Sprintf(`{"serial":%d,"lineage":"l","encrypted_data":"a/b%d"}`, serial, serial)
		},
		"sops": func(serial int) string {
			return fmt.Sprintf(`{"serial":"ENC[1]","sops":{"version":"3","mac":"ENC[%d]"}}`, serial)
		},
		"plaintext": func(serial int) string { return fmt.Sprintf(`{"version":4,"serial":%d,"lineage":"l"}`, serial) },
	} {
		for _, locks := range []bool{true, false} {
			s, url := start(t)
			s.before = func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
				if r.Method != http.MethodGet || s.state == nil {
					serve(w, r)
					return
				}
				var members map[string]any
				if err := json.Unmarshal(s.state, &members); err != nil {
					t.Error(err)
				}
				text, _ := json.MarshalIndent(members, "", "  ")
				_, _ = w.Write(bytes.ReplaceAll(text, []byte("/"), []byte(`\/`)))
			}
			state := carefully(at(t, url, password))
			if locks {
				if err := state.Lock(t.Context(), storetest.Lock("1")); err != nil {
					t.Fatal(err)
				}
			}
			var read store.Version
			for serial := range 3 {
				var err error
				if read, err = state.Write(t.Context(), []byte(file(serial)), read); err != nil {
					t.Errorf("%s, %v: the state %d: %v", name, locks, serial, err)
				}
			}
		}
	}
}
