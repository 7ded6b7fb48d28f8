package git

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

func golden(t *testing.T, group string) *testkit.Golden {
	t.Helper()
	return testkit.OpenGolden(t, "testdata/mistakes.txt", group, canary, "c4n4ry")
}

// TestNames: what git refuses is refused before anything is asked for.
func TestNames(t *testing.T) {
	t.Parallel()
	says := golden(t, "names")
	for _, path := range []string{"with spaces", "a..b", "a~1", "a^", "a:b", "a?", "a*", "[a", `a\b`, "a@{1}", "a\tb", ".a", "a/.b", "a.lock",
		"a.lock/b", "/a", "", "../a", "a."} {
		_, err := opened(t, nil, texts{"repository": "/none", "path": path})
		says.Error(t, strings.ReplaceAll(path, "\t", "TAB")+".", err)
	}
	for _, path := range []string{"größe", "-a", "a/b/c.tfstate", "./a//b/", "@"} {
		if _, err := opened(t, nil, texts{"repository": "/none", "path": path}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	says = golden(t, "branches")
	for _, ref := range []string{"", "HEAD", "refs/tags/v1", "0123456789012345678901234567890123456789", "locks/a", "locks", "a b"} {
		_, err := opened(t, nil, texts{"repository": "/none", "path": "a", "ref": ref})
		says.Error(t, ref+".", err)
	}
	for _, c := range []texts{
		{"author_name": "a"}, {"author_name": "a<", "author_email": "a@b"}, {"author_name": ".", "author_email": "a@b"},
		{"author_name": "b", "author_email": "a\nb"},
	} {
		_, err := opened(t, nil, texts{"repository": "/none", "path": "a"}, c)
		says.Error(t, "author "+c["author_name"], err)
	}
}

// TestRefused: what a server says no to is told in its words, and what is required.
func TestRefused(t *testing.T) {
	t.Parallel()
	hook := func(script string) func(*testing.T, *gittest.Repo) {
		return func(t *testing.T, repo *gittest.Repo) {
			dir := filepath.Join(repo.Dir, "hooks")
			must(t, errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "update"), []byte("#!/bin/sh\n"+script), 0o700)))
		}
	}
	config := func(name, value string) func(*testing.T, *gittest.Repo) {
		return func(_ *testing.T, repo *gittest.Repo) { repo.Git("config", name, value) }
	}
	says := golden(t, "refused")
	for name, c := range testkit.Some(map[string]struct {
		set func(*testing.T, *gittest.Repo)
		do  func(t *testing.T, s store.State) error
	}{
		"lock": {hook("case $1 in refs/heads/locks/*) printf 'GL-HOOK\\033[31m: no branches below locks/\\n'; exit 1;; esac"), takeLock},
		"write": {hook("case $1 in refs/heads/main) echo 'main is protected' >&2; exit 1;; esac"), func(t *testing.T, s store.State) error {
			return errors.Join(takeLock(t, s), writeState(t, s))
		}},
		"write, a hook of all": {func(t *testing.T, repo *gittest.Repo) {
			hook("")(t, repo)
			script := "#!/bin/sh\ncase $1 in prepared) ! grep -q refs/heads/main;; esac"
			must(t, os.WriteFile(filepath.Join(repo.Dir, "hooks", "reference-transaction"), []byte(script), 0o700))
		}, func(t *testing.T, s store.State) error { return errors.Join(takeLock(t, s), writeState(t, s)) }},
		"write, checked out": {func(_ *testing.T, repo *gittest.Repo) { repo.Git("config", "core.bare", "false") },
			func(t *testing.T, s store.State) error { return errors.Join(takeLock(t, s), writeState(t, s)) }},
		"unlock":         {config("receive.denyDeletes", "true"), unlock},
		"unlock, a rule": {hook("case $3 in 000*) echo 'rule 4711' >&2; exit 1;; esac"), unlock},
		"a lock of nobody": {func(_ *testing.T, repo *gittest.Repo) {
			repo.Commit("refs/heads/locks/net/prod", gittest.File{Path: "README", Data: "hello"})
		}, func(t *testing.T, s store.State) error {
			_, err := s.Holder(t.Context())
			return errors.Join(takeLock(t, s), writeState(t, s), s.Unlock(t.Context(), ""), err)
		}},
		"missing": {func(_ *testing.T, repo *gittest.Repo) { repo.Git("branch", "-m", "main", "trunk") },
			func(t *testing.T, s store.State) error {
				_, _, err := s.Read(t.Context())
				return err
			}},
		"a tag": {func(_ *testing.T, repo *gittest.Repo) {
			repo.Git("branch", "-m", "main", "trunk")
			repo.Git("tag", "main", "trunk")
		}, readState},
		"a folder": {func(_ *testing.T, repo *gittest.Repo) {
			repo.Commit("refs/heads/main", gittest.File{Path: "net/prod/x"})
		},
			readState},
		"in a file": {func(_ *testing.T, repo *gittest.Repo) { repo.Commit("refs/heads/main", gittest.File{Path: "net"}) }, readState},
		"a link": {func(_ *testing.T, repo *gittest.Repo) {
			repo.Commit("refs/heads/main", gittest.File{Path: "net/prod", Data: "x", Mode: "120000"})
		}, readState},
		"LFS": {func(_ *testing.T, repo *gittest.Repo) {
			repo.Commit("refs/heads/main", gittest.File{Path: "net/prod", Data: "version https://git-lfs.github.com/spec/v1\n"})
		}, readState},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
			repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
			c.set(t, repo)
			err := c.do(t, carefully(at(t, texts{"repository": repo.FileURL(), "path": "net/prod"})))
			says.Error(t, name, err)
			denied := strings.HasPrefix(name, "unlock") || name == "lock" || strings.HasPrefix(name, "write")
			if errors.Is(err, store.ErrDenied) != denied {
				t.Errorf("%s: it is one of access: %v", name, err)
			}
		})
	}
}

func takeLock(t *testing.T, s store.State) error { return s.Lock(t.Context(), storetest.Lock("1")) }

func writeState(t *testing.T, s store.State) error {
	_, err := s.Write(t.Context(), storetest.State(1), "")
	return err
}

func readState(t *testing.T, s store.State) error {
	_, _, err := s.Read(t.Context())
	return errors.Join(err, writeState(t, s))
}

func unlock(t *testing.T, s store.State) error {
	must(t, s.Lock(t.Context(), storetest.Lock("1")))
	err := s.Unlock(t.Context(), "1")
	if by, failed := s.Holder(t.Context()); failed != nil || by == nil || by.ID != "1" {
		t.Errorf("the holder is %v, %v", by, failed)
	}
	return err
}

// TestBelow: git has no branch below a branch, so that two states cannot be locked at once
// of which one is named as a folder of the other.
func TestBelow(t *testing.T) {
	t.Parallel()
	says := golden(t, "below")
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
	for first, second := range map[string]string{"net": "net/prod/x", "vpc/prod/x": "vpc"} {
		one, other := at(t, texts{"repository": repo.FileURL(), "path": first}), at(t, texts{"repository": repo.FileURL(), "path": second})
		must(t, takeLock(t, one))
		says.Error(t, second, takeLock(t, other))
		must(t, one.Unlock(t.Context(), "1"))
		must(t, takeLock(t, other))
		must(t, other.Unlock(t.Context(), "1"))
	}
}

// TestEmpty: an empty repository gets its first commit, and another branch than there is
// only if that is wanted.
func TestEmpty(t *testing.T) {
	t.Parallel()
	for _, format := range []bool{false, true} {
		repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true, SHA256: format})
		s := at(t, texts{"repository": repo.FileURL(), "path": "net/prod"})
		_, version, err := s.Read(t.Context())
		must(t, errors.Join(err, takeLock(t, s)))
		if version != "" {
			t.Errorf("the version is %q", version)
		}
		must(t, writeState(t, s))
		repo.Git("update-ref", "-d", "refs/heads/locks/net/prod")
		if err := writeState(t, s); !errors.Is(err, store.ErrLost) {
			t.Errorf("without the lock: %v", err)
		}
		if n := repo.Git("rev-list", "--count", "main"); n != "2" { // the first one has no state
			t.Errorf("there are %s commits", n)
		}
		other := at(t, texts{"repository": repo.FileURL(), "path": "net/dev", "ref": "new", "create_ref": "true"})
		must(t, takeLock(t, other))
		must(t, writeState(t, other))
		must(t, other.Unlock(t.Context(), "1"))
		if n := repo.Git("rev-list", "--count", "main", "new"); n != "3" {
			t.Errorf("there are %s commits", n)
		}
	}
}

// TestRights: who may read only is told so.
func TestRights(t *testing.T) {
	t.Parallel()
	says := golden(t, "rights")
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
	for name, status := range map[string]int{
		"403": http.StatusForbidden, "401": http.StatusUnauthorized, "503": http.StatusServiceUnavailable,
		"413": http.StatusRequestEntityTooLarge,
	} {
		address := overHTTP(gittest.HTTPOptions{Before: func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.String(), "receive-pack") || status == http.StatusRequestEntityTooLarge && r.Method != http.MethodPost {
				return false
			}
			w.WriteHeader(status)
			return true
		}})
		s := carefully(at(t, address(t, repo), texts{"path": "net/prod"}))
		err := takeLock(t, s)
		says.Error(t, name, err)
		_, unanswered := errors.AsType[*store.UnansweredError](err)
		if errors.Is(err, store.ErrDenied) != (status < 410) || unanswered != (status == 503) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := carefully(at(t, texts{"path": "a", "repository": gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "u", Password: "p"}).URL}))
	says.Error(t, "no credentials", takeLock(t, s))
	_, err := opened(t, map[string]string{"GIT_PASSWORD": canary}, texts{"path": "a", "repository": "http://user:" + canary + "@127.0.0.1/x"})
	says.Error(t, "a password in the address", err)
	_, err = opened(t, nil, texts{"path": "a", "repository": "ssh://git:" + canary + "@127.0.0.1/x"})
	says.Error(t, "a password in the address, ssh", err)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "u", Password: "p"})
	wrong, err := opened(t, map[string]string{"GIT_USERNAME": "u", "GIT_PASSWORD": canary}, texts{"path": "a", "repository": server.URL})
	must(t, err)
	says.Error(t, "another password in a variable", takeLock(t, carefully(wrong)))
}

// TestLongWords: of what a server says, the end is shown.
func TestLongWords(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	script := "#!/bin/sh\ni=0; while [ $i -lt 500 ]; do echo no-no-no-no-no-no >&2; i=$((i+1)); done; echo and why >&2; exit 1"
	hook := filepath.Join(repo.Dir, "hooks", "update")
	must(t, errors.Join(os.MkdirAll(filepath.Dir(hook), 0o700), os.WriteFile(hook, []byte(script), 0o700)))
	err := takeLock(t, at(t, texts{"repository": repo.FileURL(), "path": "net/prod"}))
	if err == nil || len(err.Error()) > 2000 || !strings.Contains(err.Error(), "and why") {
		t.Errorf("got %v", err)
	}
}
