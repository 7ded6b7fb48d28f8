package git

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
)

// serves is a server of one repository, at a path of its own.
const serves = `
import sys
from dulwich.repo import Repo
from dulwich.server import DictBackend
from dulwich.web import make_server, make_wsgi_chain
make_server("127.0.0.1", int(sys.argv[1]), make_wsgi_chain(DictBackend({"/infra.git": Repo(sys.argv[2])}))).serve_forever()
`

// dulwich starts the server of the Python that STATECRYPT_DULWICH names, and returns its address.
func dulwich(t *testing.T, repo *gittest.Repo) string {
	t.Helper()
	program, port := testkit.Program(t, "STATECRYPT_DULWICH"), nettest.Port(t)
	address := "http://127.0.0.1:" + port + "/infra.git"
	servertest.Start(t, program, []string{"-c", serves, port, repo.Dir}).Await(t, func() bool {
		resp, err := http.Get(address + "/info/refs?service=git-upload-pack") //nolint:noctx // the test ends it with the server
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return address
}

// TestRealDulwich tests a lock on dulwich, which says ok to a push that has lost a race. It takes no commit from
// a shallow repository, so no state is written there.
func TestRealDulwich(t *testing.T) {
	testkit.Program(t, "STATECRYPT_DULWICH")
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "net/prod", Data: string(storetest.State(1))})
	l := &relay{target: strings.TrimSuffix(dulwich(t, repo), "/infra.git")}
	address := nettest.Serve(t, l) + "/infra.git"
	s := at(t, texts{"repository": address, "path": "net/prod"})
	for range 2 {
		must(t, takeLock(t, s))
		data, _, err := s.Read(t.Context())
		if err != nil || !bytes.Equal(data, storetest.State(1)) {
			t.Fatalf("got %q, %v", data, err)
		}
		must(t, s.Unlock(t.Context(), "1"))
	}
	l.push.Store(new(func(w http.ResponseWriter, send func() *httptest.ResponseRecorder) {
		repo.Commit("refs/heads/locks/net/prod", gittest.File{Path: "net/prod.lock", Data: string(storetest.Lock("4711").JSON())})
		give(w, send())
	}))
	must(t, takeLock(t, s)) // by its word
	_, _, err := s.Read(t.Context())
	if held, ok := errors.AsType[*store.HeldError](err); !ok || held.By == nil || held.By.ID != "4711" {
		t.Errorf("got %v", err)
	}
}

// TestRealDulwichBySSH tests dulwich without a server of HTTP, where it hangs up if git names a filter.
func TestRealDulwichBySSH(t *testing.T) {
	program, script := testkit.Program(t, "STATECRYPT_DULWICH"), filepath.Join(t.TempDir(), "ssh")
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "net/prod", Data: string(storetest.State(1))})
	must(t, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nexec '%s' -c 'from dulwich.porcelain import upload_pack; upload_pack(\"%s\")'\n",
		program, repo.Dir), 0o700))
	t.Setenv("GIT_SSH_COMMAND", script)
	t.Setenv("GIT_SSH_VARIANT", "simple")
	data, _, err := at(t, texts{"repository": "ssh://git@127.0.0.1/infra.git", "path": "net/prod"}).Read(t.Context())
	if err != nil || !bytes.Equal(data, storetest.State(1)) {
		t.Errorf("got %q, %v", data, err)
	}
}

// gitolite sets up the gitolite that STATECRYPT_GITOLITE names, with these rules, and has the user ci come in by its
// shell, without an ssh server. It returns the beginning of the addresses.
func gitolite(t *testing.T, rules string) string {
	t.Helper()
	program, home := testkit.Program(t, "STATECRYPT_GITOLITE"), t.TempDir()
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGXT1aLhCyfJsg7Us8pvXsVJmOFvsTdOL5Vw6Bz4HfRP admin\n"
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("gitolite %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	must(t, os.WriteFile(filepath.Join(home, "admin.pub"), []byte(key), 0o600))
	run("setup", "-pk", "admin.pub")
	must(t, os.WriteFile(filepath.Join(home, ".gitolite/conf/gitolite.conf"), []byte(rules+"repo gitolite-admin\n RW+ = admin\n"), 0o600))
	run("compile")
	script := filepath.Join(home, "ssh")
	must(t, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\n"+
		"export HOME='%s' SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22' SSH_ORIGINAL_COMMAND=\"$2\"\n"+
		"exec '%s/gitolite-shell' ci\n", home, run("query-rc", "GL_BINDIR")), 0o700))
	t.Setenv("GIT_SSH_COMMAND", script)
	t.Setenv("GIT_SSH_VARIANT", "simple")
	return "ssh://git@127.0.0.1/"
}

// TestRealGitolite tests the rules of gitolite that a state requires, and what users read who lack one.
func TestRealGitolite(t *testing.T) {
	testkit.Program(t, "STATECRYPT_GITOLITE")
	base := gitolite(t, "repo reads\n R = ci\nrepo main-only\n RW main = ci\nrepo no-delete\n RW main = ci\n RW refs/heads/locks/ = ci\n"+
		"repo all\n RW main = ci\n RW+ refs/heads/locks/ = ci\n")
	says := golden(t, "gitolite")
	for name, refused := range map[string]bool{"none": true, "reads": true, "main-only": true, "no-delete": true, "all": false} {
		s := carefully(at(t, texts{"repository": base + name, "path": "net/prod"}))
		err := takeLock(t, s)
		if err == nil {
			err = errors.Join(writeState(t, s), s.Unlock(t.Context(), "1"))
		}
		if errors.Is(err, store.ErrDenied) != refused || (err != nil) != refused {
			t.Errorf("%s: %v", name, err)
		}
		if refused {
			says.Error(t, name, err)
		}
	}
}

// TestRealGitea tests an empty repository on Gitea, which makes the first branch that is pushed the default one.
func TestRealGitea(t *testing.T) {
	gitea := servertest.StartGitea(t)
	gitea.NewUser(t, "ann")
	token := gitea.NewToken(t, "ann", "write:repository,write:user")
	for _, ref := range []string{"main", "states"} {
		gitea.Do(t, http.MethodPost, "/api/v1/user/repos", token, `{"name":"`+ref+`","default_branch":"main","auto_init":false}`,
			http.StatusCreated)
		arguments := texts{"repository": gitea.URL + "/ann/" + ref + ".git", "ref": ref, "path": "net/prod", "username": "ann", "password": token}
		for serial := range 3 {
			s := carefully(at(t, arguments))
			must(t, takeLock(t, s))
			_, read, err := s.Read(t.Context())
			must(t, err)
			if serial > 0 {
				_, err = s.Write(t.Context(), storetest.State(serial), read)
				must(t, err)
			}
			must(t, s.Unlock(t.Context(), "1"))
		}
		var repository struct {
			Default string `json:"default_branch"`
		}
		answer := gitea.Do(t, http.MethodGet, "/api/v1/repos/ann/"+ref, token, "", http.StatusOK)
		must(t, json.Unmarshal(answer, &repository))
		branches := string(gitea.Do(t, http.MethodGet, "/api/v1/repos/ann/"+ref+"/branches", token, "", http.StatusOK))
		if repository.Default != ref || strings.Contains(branches, "locks/") {
			t.Errorf("the default branch is %q; the branches are %s", repository.Default, branches)
		}
	}
}
