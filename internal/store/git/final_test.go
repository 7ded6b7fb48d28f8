package git

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

func isUnanswered(err error) bool {
	_, ok := errors.AsType[*store.UnansweredError](err)
	return ok
}

// TestFinal: what a server has answered is no connection that broke off, although git says that the
// server has hung up, too. Another try is of use only if it may end otherwise.
func TestFinal(t *testing.T) {
	t.Parallel()
	says := golden(t, "final")
	for status, again := range map[int]bool{400: false, 404: false, 408: true, 413: false, 422: false, 429: true, 500: true, 502: true} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			repo, l, s := behind(t)
			push := func(w http.ResponseWriter, _ func() *httptest.ResponseRecorder) { w.WriteHeader(status) }
			l.push.Store(&push)
			err := takeLock(t, s)
			says.Error(t, fmt.Sprint(status), err)
			if isUnanswered(err) != again || errors.Is(err, store.ErrDenied) {
				t.Errorf("got %v", err)
			}
			if left := repo.Git("for-each-ref", "refs/heads/locks/"); left != "" {
				t.Errorf("this is left: %q", left)
			}
		})
	}
	t.Run("a hook that aborts", func(t *testing.T) {
		t.Parallel()
		repo, _, s := behind(t)
		hook := filepath.Join(repo.Dir, "hooks", "reference-transaction")
		must(t, errors.Join(os.MkdirAll(filepath.Dir(hook), 0o700), os.WriteFile(hook, []byte("#!/bin/sh\necho rule 4711 >&2\nexit 1\n"), 0o700)))
		for server, s := range map[string]store.State{"http": s, "file": at(t, texts{"repository": repo.FileURL(), "path": "net/prod"})} {
			err := takeLock(t, s)
			if err == nil {
				t.Fatal("there is no error")
			}
			says.Check(t, "a hook that aborts, "+server, strings.ReplaceAll(err.Error(), repo.FileURL(), "REPOSITORY"))
			if isHTTP := server == "http"; isUnanswered(err) != isHTTP || errors.Is(err, store.ErrDenied) == isHTTP { // there, it is silent
				t.Errorf("%s: %v", server, err)
			}
		}
	})
}

// TestPushOptions: those that the user has set for other repositories are not sent.
func TestPushOptions(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(config, []byte("[push]\n\tpushOption = ci.skip\n"), 0o600))
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
	must(t, takeLock(t, at(t, texts{"repository": repo.FileURL(), "path": "net/prod"})))
}

// TestKilledGit: a git that somebody has killed is named, whatever it said before, and another try may succeed.
func TestKilledGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
	s := at(t, texts{"repository": repo.FileURL(), "path": "net/prod"})
	must(t, takeLock(t, s))
	says := golden(t, "killed")
	for _, command := range []string{"fetch", "push"} {
		dir := t.TempDir()
		script := "#!/bin/sh\nfor word; do if [ \"$word\" = " + command + " ]; then echo warning: about something >&2; kill -9 $$; fi; done\nexec " +
			git + " \"$@\"\n"
		must(t, os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700))
		t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
		err := writeState(t, s)
		says.Error(t, command, err)
		if !isUnanswered(err) {
			t.Errorf("%s: %v", command, err)
		}
	}
}
