package wrap

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/httpstore/giteatest"
)

// environOfGitea describes the state net there, behind a front.
func environOfGitea(t *testing.T, gitea, front http.Handler) []string {
	t.Helper()
	if front == nil {
		front = gitea
	}
	server := httptest.NewServer(front)
	t.Cleanup(server.Close)
	url := server.URL + "/api/packages/ci/terraform/state/net"
	return []string{
		"STATECRYPT_HTTP_ADDRESS=" + url, "STATECRYPT_HTTP_LOCK_ADDRESS=" + url + "/lock", "STATECRYPT_HTTP_UNLOCK_ADDRESS=" + url + "/lock",
		"STATECRYPT_HTTP_LOCK_METHOD=POST", "STATECRYPT_HTTP_UNLOCK_METHOD=DELETE",
	}
}

// upload is a write of somebody without a lock.
func upload(t *testing.T, g *giteatest.Server, state string) {
	t.Helper()
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, g.Address("net"), strings.NewReader(state)))
	if w.Code != http.StatusCreated {
		t.Fatal(w.Code, w.Body)
	}
}

// holds checks the state that a server has, and its serial, on the outside and inside.
func holds(t *testing.T, file []byte, serial int64) {
	t.Helper()
	opened, err := target(t, sealing).Decrypt(t.Context(), file)
	if err != nil || !opened.Encrypted {
		t.Fatalf("there is %s, %v", file, err)
	}
	for what, text := range map[string][]byte{"outside": file, "inside": opened.Data} {
		if got, lineage, err := store.Label(text); err != nil || got == nil || *got != serial || lineage != "l" {
			t.Errorf("%s: %v, %s, %v", what, got, lineage, err)
		}
	}
}

// moveIn encrypts the state in the backend of a proxy.
func moveIn(t *testing.T, p *proxy) error {
	t.Helper()
	m := &existing{arrival: arrival{guard: p.guard, backend: p.backend}, unused: &unused{module: &module{}, backend: p.backend, say: p.say}}
	return m.moveIn(t.Context())
}

// TestMoveInCounts: a state that is encrypted where it is gets the next serial, as OpenTofu does it, and
// is remembered with that: a server may keep one state for each.
func TestMoveInCounts(t *testing.T) {
	t.Parallel()
	g := giteatest.Start(t)
	upload(t, g, state)
	told := &said{}
	p := betweenWith(t, Options{Keys: Keys{State: target(t, migrating)}, Stderr: told, Environ: environOfGitea(t, g, nil)})
	data := t.TempDir()
	p.guard.memory = &memory{at: directory{path: data}, of: "net"}
	if err := moveIn(t, p); err != nil {
		t.Fatal(err)
	}
	holds(t, g.Stored("net"), 2)
	var seen map[string]label
	text, err := os.ReadFile(filepath.Join(data, memoryName))
	if err != nil || json.Unmarshal(text, &seen) != nil || seen["net"].Serial == nil || *seen["net"].Serial != 2 {
		t.Errorf("this is remembered: %s, %v", text, err)
	}
	for _, pinned := range []int64{1, 2} { // the state that was there is the pinned one, or not
		g := giteatest.Start(t)
		upload(t, g, state)
		p := betweenWith(t, Options{
			Keys: Keys{State: target(t, migrating)}, Stderr: told, Environ: environOfGitea(t, g, nil), Wishes: Wishes{Pins: Pins{Serial: &pinned}},
		})
		if err := moveIn(t, p); (err == nil) != (pinned == 1) {
			t.Errorf("pinned to %d: %v", pinned, err)
		}
	}
}

// TestFormIsNoted: that a server may refuse what sops and age make is said before it is asked to take it.
func TestFormIsNoted(t *testing.T) {
	t.Parallel()
	g := giteatest.Start(t)
	upload(t, g, state)
	told := &said{}
	refused := false
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && !strings.HasSuffix(r.URL.Path, "/lock") {
			refused = true
			if text := told.take(); !strings.Contains(text, "such as Gitea, refuses it") {
				t.Errorf("before the write, this was said: %s", text)
			}
		}
		g.ServeHTTP(w, r)
	})
	s, err := openStates(Where{}, "", encryption.Target{}, environOfGitea(t, g, front), Notes(told))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Rotate(t.Context(), "", func([]byte) ([]byte, error) { return []byte("age-encryption.org/v1\n"), nil })
	if err == nil || !refused || string(g.Stored("net")) != state {
		t.Errorf("%v, and there is %s", err, g.Stored("net"))
	}
}

// TestSentAgain: a state that has arrived, and whose answer was lost, is not sent a second time in other
// bytes, which would be another one with the same serial.
func TestSentAgain(t *testing.T) {
	t.Parallel()
	g := giteatest.Start(t)
	posted := 0
	left := 0 // requests that are not answered
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && !strings.HasSuffix(r.URL.Path, "/lock") {
			if posted++; posted == 1 {
				left = 2 // nor is the look
			}
		}
		if left > 0 {
			left--
			g.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		g.ServeHTTP(w, r)
	})
	told := &said{}
	p := betweenWith(t, Options{Keys: Keys{State: target(t, sealing)}, Stderr: told, Environ: environOfGitea(t, g, front)})
	ask(p, http.MethodGet, "/state", "")
	ask(p, "LOCK", "/lock", `{"ID":"1"}`)
	for _, want := range []int{http.StatusBadGateway, http.StatusOK} {
		if w := ask(p, http.MethodPost, "/state?ID=1", state); w.Code != want {
			t.Errorf("got %d, want %d: %s", w.Code, want, w.Body)
		}
	}
	holds(t, g.Stored("net"), 1)
	next := strings.Replace(state, `"serial":1`, `"serial":2`, 1)
	if w := ask(p, http.MethodPost, "/state?ID=1", next); w.Code != http.StatusOK {
		t.Errorf("then, got %d: %s", w.Code, w.Body)
	}
	holds(t, g.Stored("net"), 2)
}

// TestConflictIsTold: a write that is in conflict with something, and one that a lock keeps out, are told
// of as what they are. The CLIs show a number.
func TestConflictIsTold(t *testing.T) {
	t.Parallel()
	mistakes := OpenMistakes(t, "refused writes")
	first := sealed(t, state)
	for name, c := range map[string]struct {
		code  int
		there bool
		body  string
	}{
		"no folder":           {code: 409},
		"the serial is there": {code: 409, there: true, body: "package file already exists\n"},
		"locked":              {code: 423, there: true},
		"locked by":           {code: 409, there: true, body: `{"ID":"4711","Who":"ci@host"}`},
		"no such method":      {code: 404, body: "<html>"},
	} {
		answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPost:
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			case r.Method == http.MethodGet && c.there:
				_, _ = w.Write(first)
			}
		})
		url, _ := upstream(t, &answer)
		p, told := between(t, url, sealing)
		ask(p, http.MethodGet, "/state", "")
		ask(p, "LOCK", "/lock", `{"ID":"1"}`)
		told.take()
		if w := ask(p, http.MethodPost, "/state?ID=1", state); w.Code != c.code {
			t.Errorf("%s: got %d", name, w.Code)
		}
		mistakes.Said(t, name, told.take())
	}
}

// TestRotatedMeanwhile: without a lock, a run does not write a state under the old key over one that was
// given another key since, with the serial that it had.
func TestRotatedMeanwhile(t *testing.T) {
	t.Parallel()
	answer := keeping(string(sealed(t, state)), http.StatusOK)
	url, _ := upstream(t, &answer)
	p, told := between(t, url, sealing, "STATECRYPT_HTTP_LOCK_ADDRESS=", "STATECRYPT_HTTP_UNLOCK_ADDRESS=")
	if w := ask(p, http.MethodGet, "/state", ""); w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	rotated := sealed(t, state)
	answer = keeping(string(rotated), http.StatusOK)
	next := strings.Replace(state, `"serial":1`, `"serial":2`, 1)
	if w := ask(p, http.MethodPost, "/state", next); w.Code != ours || !strings.Contains(told.take(), store.ErrChanged.Error()) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	w := httptest.NewRecorder()
	answer(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Body.String() != string(rotated) {
		t.Error("it was written over")
	}
	if info, err := encryption.Inspect(rotated); err != nil || info.Serial == nil || *info.Serial != 1 {
		t.Error("the serial is another one, which makes it too easy")
	}
}
