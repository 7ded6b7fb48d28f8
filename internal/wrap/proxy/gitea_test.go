package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/httpstore/giteatest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

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
	told := &wraptest.Said{}
	p := betweenWith(t, states.Keys{State: wraptest.Target(t, wraptest.Sealing)}, states.Where{}, wraptest.EnvironOfGitea(t, g, front), told)
	ask(p, http.MethodGet, "/state", "")
	ask(p, "LOCK", "/lock", `{"ID":"1"}`)
	for _, want := range []int{http.StatusBadGateway, http.StatusOK} {
		if w := ask(p, http.MethodPost, "/state?ID=1", wraptest.State); w.Code != want {
			t.Errorf("got %d, want %d: %s", w.Code, want, w.Body)
		}
	}
	wraptest.Holds(t, g.Stored("net"), 1)
	next := strings.Replace(wraptest.State, `"serial":1`, `"serial":2`, 1)
	if w := ask(p, http.MethodPost, "/state?ID=1", next); w.Code != http.StatusOK {
		t.Errorf("then, got %d: %s", w.Code, w.Body)
	}
	wraptest.Holds(t, g.Stored("net"), 2)
}

// TestConflictIsTold: a write that is in conflict with something, and one that a lock keeps out, are told
// of as what they are. The CLIs show a number.
func TestConflictIsTold(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "refused writes")
	first := wraptest.Sealed(t, wraptest.State)
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
		url, _ := wraptest.Upstream(t, &answer)
		p, told := between(t, url, wraptest.Sealing)
		ask(p, http.MethodGet, "/state", "")
		ask(p, "LOCK", "/lock", `{"ID":"1"}`)
		told.Take()
		if w := ask(p, http.MethodPost, "/state?ID=1", wraptest.State); w.Code != c.code {
			t.Errorf("%s: got %d", name, w.Code)
		}
		mistakes.Said(t, name, told.Take())
	}
}

// TestRotatedMeanwhile: without a lock, a run does not write a state under the old key over one that was
// given another key since, with the serial that it had.
func TestRotatedMeanwhile(t *testing.T) {
	t.Parallel()
	answer := wraptest.Keeping(string(wraptest.Sealed(t, wraptest.State)), http.StatusOK)
	url, _ := wraptest.Upstream(t, &answer)
	p, told := between(t, url, wraptest.Sealing, "STATECRYPT_HTTP_LOCK_ADDRESS=", "STATECRYPT_HTTP_UNLOCK_ADDRESS=")
	if w := ask(p, http.MethodGet, "/state", ""); w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	rotated := wraptest.Sealed(t, wraptest.State)
	answer = wraptest.Keeping(string(rotated), http.StatusOK)
	next := strings.Replace(wraptest.State, `"serial":1`, `"serial":2`, 1)
	if w := ask(p, http.MethodPost, "/state", next); w.Code != ours || !strings.Contains(told.Take(), store.ErrChanged.Error()) {
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
