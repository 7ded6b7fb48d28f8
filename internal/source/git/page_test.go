package git

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestSignInPage: a server that sends a web page in place of a repository is named.
func TestSignInPage(t *testing.T) {
	t.Parallel()
	says := openMistakes(t, "a page to sign in")
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
			says.Error(t, name+", "+cmp.Or(ref, "HEAD"), err)
		}
	}
}

// TestDumbHTTP tests a server that gives out the files of a repository, and runs no git.
func TestDumbHTTP(t *testing.T) {
	t.Parallel()
	repo := stateRepo(t)
	repo.Git("update-server-info")
	server := httptest.NewServer(http.StripPrefix("/acme/infra.git", http.FileServer(http.Dir(repo.Dir))))
	t.Cleanup(server.Close)
	_, err := read(t, newTestRun(t, nil), place{repository: server.URL + "/acme/infra.git", path: "s"})
	openMistakes(t, "dumb http").Error(t, "read", err)
}
