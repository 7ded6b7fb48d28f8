package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestLockOfNobody: a lock that is not given before its child has gone is not waited for,
// since nobody would give it back. What was to be written is.
func TestLockOfNobody(t *testing.T) {
	t.Parallel()
	for method, ends := range map[string]bool{"LOCK": true, "UNLOCK": false, "DELETE": false} {
		ctx, leave := context.WithCancel(t.Context())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // or nobody notices that the connection ends
			leave()
			if ends {
				<-r.Context().Done() // of the connection, which only the proxy closes
			}
		}))
		defer server.Close()
		p, _ := between(t, server.URL, wraptest.Sealing)
		r := httptest.NewRequestWithContext(ctx, method, map[bool]string{true: "/state", false: "/lock"}[method == "DELETE"], strings.NewReader(`{"ID":"1"}`))
		r.SetBasicAuth(module.Username, p.password)
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if gone := w.Code == http.StatusBadGateway; gone != ends || !ends && w.Code != http.StatusOK {
			t.Errorf("%s: got %d", method, w.Code)
		}
	}
}
