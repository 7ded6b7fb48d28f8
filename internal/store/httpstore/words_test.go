package httpstore

import (
	"net/http"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// TestLocksOfOthers tests answers of servers that do not have the locks of Terraform's protocol, and of servers on
// which the lock has another ID.
func TestLocksOfOthers(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "locks", password)
	for name, c := range map[string]struct {
		status  int
		headers map[string]string
		body    string
		unlocks bool // whether the request releases the lock of another run
	}{
		"WebDAV, a file":         {status: 200, headers: map[string]string{"Lock-Token": "<opaquelocktoken:1>"}, body: "<D:prop/>"},
		"WebDAV, no file":        {status: 201, headers: map[string]string{"Lock-Token": "<urn:uuid:1>"}, body: "<D:prop/>"},
		"WebDAV, a release":      {status: 204, unlocks: true},
		"201":                    {status: 201},
		"400":                    {status: 400},                // Apache, lighttpd
		"415, a release":         {status: 415, unlocks: true}, // lighttpd
		"another ID, no holder":  {status: 409, unlocks: true},
		"another ID, the holder": {status: 423, body: string(storetest.Lock("4711").JSON()), unlocks: true},
	} {
		s, url := start(t)
		s.before = func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
			for name, value := range c.headers {
				w.Header().Set(name, value)
			}
			w.WriteHeader(c.status)
			if c.body != "" {
				_, _ = w.Write([]byte(c.body))
			}
		}
		state := at(t, url, password)
		if c.unlocks {
			says.Error(t, name, state.Unlock(t.Context(), "1"))
		} else {
			says.Error(t, name, state.Lock(t.Context(), storetest.Lock("1")))
		}
	}
}

// TestNoRoom tests answers to a state that has no room on the server.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "no room", password)
	for _, status := range []int{http.StatusRequestEntityTooLarge, http.StatusInsufficientStorage} {
		s, url := start(t)
		s.before = func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			if r.Method == http.MethodGet {
				next(w, r)
				return
			}
			w.WriteHeader(status)
		}
		_, err := at(t, url, password).Write(t.Context(), storetest.State(1), "")
		says.Error(t, web.Status(status), err)
	}
}
