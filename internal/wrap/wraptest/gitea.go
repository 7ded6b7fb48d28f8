package wraptest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/httpstore/giteatest"
)

// EnvironOfGitea returns environment variables for the state "net" on a Gitea server. If front is not nil, it handles
// the requests instead of gitea.
func EnvironOfGitea(t *testing.T, gitea, front http.Handler) []string {
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

// Upload writes a state to the server without locking it.
func Upload(t *testing.T, g *giteatest.Server, state string) {
	t.Helper()
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, g.Address("net"), strings.NewReader(state)))
	if w.Code != http.StatusCreated {
		t.Fatal(w.Code, w.Body)
	}
}

// Holds checks that file, a state stored on a server, is encrypted, and has this serial inside and outside the
// encryption.
func Holds(t *testing.T, file []byte, serial int64) {
	t.Helper()
	opened, err := Target(t, Sealing).Decrypt(t.Context(), file)
	if err != nil || !opened.Encrypted {
		t.Fatalf("there is %s, %v", file, err)
	}
	for what, text := range map[string][]byte{"outside": file, "inside": opened.Data} {
		if got, lineage, err := store.Label(text); err != nil || got == nil || *got != serial || lineage != "l" {
			t.Errorf("%s: %v, %s, %v", what, got, lineage, err)
		}
	}
}
