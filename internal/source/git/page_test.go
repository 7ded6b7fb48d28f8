package git

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestSignInPage: a server that sends a web page in place of a repository is named.
func TestSignInPage(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]string{
		"one line": "<!DOCTYPE html><html><title>Sign in</title></html>",
		"lines":    "<html>\n<body>\n<form action=/login>\n</form></body></html>\n",
		"redirect": "",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if page == "" && r.URL.Path != "/login" {
				http.Redirect(w, r, "/login", http.StatusFound)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(page))
		}))
		t.Cleanup(server.Close)
		for _, ref := range []string{"", "main"} {
			_, err := read(t, newTestRun(t, nil), place{repository: server.URL + "/acme/states", path: "s", ref: ref})
			if err == nil || !strings.Contains(err.Error(), "a page to sign in") {
				t.Errorf("%s, %s: got %v", name, ref, err)
			}
		}
	}
}
