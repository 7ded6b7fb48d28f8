package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// TestFirstIsDefault tests an empty repository on a host that makes the first branch the default, and lets
// nobody remove it: the lock is not that branch, whether a state is written under it or not.
func TestFirstIsDefault(t *testing.T) {
	t.Parallel()
	for name, c := range testkit.Some(map[string]struct {
		sha256, writes bool
		there          string // a branch that is there, "" for none
		ref            string
	}{
		"plan": {}, "apply": {writes: true}, "SHA-256": {sha256: true, writes: true}, "a lock is left": {there: "locks/other", writes: true},
		"another branch": {ref: "states", writes: true},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true, FirstIsDefault: true, SHA256: c.sha256})
			if c.there != "" {
				repo.Commit("refs/heads/"+c.there, gittest.File{Path: "other.lock", Data: string(storetest.Lock("4711").JSON())})
			}
			arguments := texts{"repository": repo.FileURL(), "path": "net/prod"}
			if c.ref != "" {
				arguments["ref"] = c.ref
			}
			want, version := []byte(nil), store.Version("")
			for round := range 2 {
				s := at(t, arguments)
				must(t, takeLock(t, s))
				data, read, err := s.Read(t.Context())
				must(t, err)
				if string(data) != string(want) || read != version {
					t.Errorf("got %q, %q", data, read)
				}
				if c.writes {
					want = storetest.State(round)
					version, err = s.Write(t.Context(), want, read)
					must(t, err)
				}
				must(t, s.Unlock(t.Context(), "1"))
			}
			head := repo.Git("symbolic-ref", "HEAD")
			if branch := "refs/heads/main"; c.ref == "" && head != branch || c.ref != "" && head != "refs/heads/"+c.ref {
				t.Errorf("the default branch is %s", head)
			}
			if left := repo.Git("for-each-ref", "--format=%(refname)", "refs/heads/locks/net"); left != "" {
				t.Errorf("this is left: %s", left)
			}
		})
	}
}

// TestFormats tests repositories with other object IDs and with another store of refs, on the server of git: a state is
// written and locked there, and a push that has lost a race is refused.
func TestFormats(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]gittest.RepoOptions{
		"SHA-256": {Push: true, SHA256: true}, "reftable": {Push: true, RefTable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.NewRepo(t, options)
			repo.Commit("refs/heads/main", gittest.File{Path: "net/prod", Data: string(storetest.State(1))})
			l := &relay{target: strings.TrimSuffix(gittest.HTTP(t, repo, gittest.HTTPOptions{}).URL, "/acme/infra.git")}
			s := at(t, texts{"repository": nettest.Serve(t, l) + "/acme/infra.git", "path": "net/prod"})
			must(t, takeLock(t, s))
			data, read, err := s.Read(t.Context())
			if err != nil || !bytes.Equal(data, storetest.State(1)) {
				t.Fatalf("got %q, %v", data, err)
			}
			_, err = s.Write(t.Context(), storetest.State(2), read)
			must(t, errors.Join(err, s.Unlock(t.Context(), "1")))
			if got := repo.Git("cat-file", "blob", "main:net/prod"); got != string(storetest.State(2)) {
				t.Errorf("there is %q", got)
			}
			l.push.Store(new(func(w http.ResponseWriter, send func() *httptest.ResponseRecorder) {
				repo.Commit("refs/heads/locks/net/prod", gittest.File{Path: "net/prod.lock", Data: string(storetest.Lock("4711").JSON())})
				give(w, send())
			}))
			err = takeLock(t, s)
			if held, ok := errors.AsType[*store.HeldError](err); !ok || held.By == nil || held.By.ID != "4711" {
				t.Errorf("after a lost race: %v", err)
			}
		})
	}
}

// TestFirstAtOnce tests three that lock states of their own in an empty repository at the same moment.
func TestFirstAtOnce(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true, FirstIsDefault: true})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			s := at(t, texts{"repository": server.URL, "path": fmt.Sprint("net/", i), "ref": "states"})
			if err := errors.Join(takeLock(t, s), writeState(t, s), s.Unlock(t.Context(), "1")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	head, refs := repo.Git("symbolic-ref", "HEAD"), repo.Git("for-each-ref", "--format=%(refname)")
	if head != "refs/heads/states" || refs != head || repo.Git("rev-list", "--count", "states") != "4" {
		t.Errorf("the default branch is %s; there are %s", head, refs)
	}
}

// TestLockIsDefault tests a repository whose default branch is a lock: what to do about that is said.
func TestLockIsDefault(t *testing.T) {
	t.Parallel()
	says := golden(t, "the lock is the default branch")
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	for _, with := range []string{"nothing else", "a branch"} {
		repo.Commit("refs/heads/locks/net/prod", gittest.File{Path: "net/prod.lock", Data: string(storetest.Lock("4711").JSON())})
		repo.Git("symbolic-ref", "HEAD", "refs/heads/locks/net/prod")
		s := carefully(at(t, texts{"repository": repo.FileURL(), "path": "net/prod"}))
		err := s.Unlock(t.Context(), "4711")
		says.Error(t, with, err)
		if !errors.Is(err, store.ErrDenied) {
			t.Errorf("%s: %v", with, err)
		}
		ctx, told := said(t)
		must(t, at(t, texts{"repository": repo.FileURL(), "path": "net/dev"}).Lock(ctx, storetest.Lock("1")))
		if text := strings.Join(*told, "\n"); !strings.Contains(text, "locks/net/prod") {
			t.Errorf("%s: this is said: %q", with, text)
		}
		repo.Git("symbolic-ref", "HEAD", "refs/heads/main")
		must(t, s.Unlock(t.Context(), "4711"))
		must(t, at(t, texts{"repository": repo.FileURL(), "path": "net/dev"}).Unlock(t.Context(), "1"))
	}
}

// between has someone else push at the moment at which a request that is so comes in, once.
func between(is func(r *http.Request) bool, push func()) func(http.ResponseWriter, *http.Request) bool {
	var done atomic.Bool
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if is(r) && done.CompareAndSwap(false, true) {
			push()
		}
		return false
	}
}

func isPush(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
}

func isLook(r *http.Request) bool { return strings.Contains(r.URL.RawQuery, "git-upload-pack") }

// TestLostLock tests servers that say ok to a lock that they do not take, because someone else was faster:
// nothing is made under it.
func TestLostLock(t *testing.T) {
	t.Parallel()
	for name, isRace := range map[string]bool{"dropped": true, "nothing is stored": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
			first := []gittest.File{{Path: "net/prod", Data: "old"}}
			repo.Commit("refs/heads/main", first...)
			server := gittest.HTTP(t, repo, gittest.HTTPOptions{Lost: gittest.Dropped, Before: between(isPush, func() {
				if isRace {
					repo.Commit("refs/heads/locks/net/prod", gittest.File{Path: "net/prod.lock", Data: string(storetest.Lock("4711").JSON())})
				}
			})})
			if !isRace {
				repo.Drop(func(string) bool { return true })
			}
			s := carefully(at(t, texts{"repository": server.URL, "path": "net/prod"}))
			err := s.Lock(t.Context(), storetest.Lock("1"))
			if err == nil {
				_, _, err = s.Read(t.Context())
			}
			held, isHeld := errors.AsType[*store.HeldError](err)
			if isHeld != isRace || isHeld && held.By.ID != "4711" || !isHeld && !errors.Is(err, store.ErrLost) {
				t.Errorf("got %v", err)
			}
			must(t, s.Unlock(t.Context(), "1")) // as Terraform does after it could not read
			err = s.Unlock(t.Context(), "1")
			if _, isHeld := errors.AsType[*store.HeldError](err); isHeld != isRace ||
				!isHeld && !errors.Is(err, store.ErrMissing) {
				t.Errorf("given back once more: %v", err)
			}
			if isRace {
				by, err := s.Holder(t.Context())
				if err != nil || by == nil || by.ID != "4711" {
					t.Errorf("the holder is %v, %v", by, err)
				}
			}
		})
	}
}

// TestLostWrite tests servers that say ok to a commit that they do not take, or that is replaced by one of
// someone else who has not seen it: afterwards, all that was written is there.
func TestLostWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost     gittest.Lost
		replaced bool // by a commit that was made before it
	}{
		"dropped": {lost: gittest.Dropped}, "replaced": {lost: gittest.Replaces, replaced: true},
	} {
		for _, first := range []bool{false, true} { // the state
			t.Run(fmt.Sprintf("%s, first %t", name, first), func(t *testing.T) {
				t.Parallel()
				repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
				files := []gittest.File{{Path: "README", Data: "hello"}}
				if !first {
					files = append(files, gittest.File{Path: "net/prod", Data: "old"})
				}
				before := repo.Commit("refs/heads/main", files...)
				other := repo.Commit("refs/heads/other", append(files, gittest.File{Path: "net/dev", Data: "other"})...)
				var pushed atomic.Bool
				is := isPush
				if c.replaced {
					is = func(r *http.Request) bool { // after the push
						was := pushed.Load()
						pushed.Store(was || isPush(r))
						return was && isLook(r)
					}
				}
				armed := new(atomic.Bool)
				race := between(is, func() { repo.Git("update-ref", "refs/heads/main", other) })
				server := gittest.HTTP(t, repo, gittest.HTTPOptions{Lost: c.lost, Before: func(w http.ResponseWriter, r *http.Request) bool {
					return armed.Load() && race(w, r)
				}})
				s := carefully(at(t, texts{"repository": server.URL, "path": "net/prod"}))
				must(t, s.Lock(t.Context(), storetest.Lock("1")))
				_, read, err := s.Read(t.Context())
				must(t, err)
				armed.Store(true)
				next, err := s.Write(t.Context(), storetest.State(1), read)
				must(t, err)
				if got := repo.Git("cat-file", "blob", "main:net/prod"); got != string(storetest.State(1)) {
					t.Errorf("the state is %.100q", got)
				}
				if got := repo.Git("cat-file", "blob", "main:net/dev"); got != "other" || repo.Git("rev-parse", "main") == before {
					t.Errorf("the other one is %q", got)
				}
				must(t, s.Remove(t.Context(), next))
				must(t, s.Unlock(t.Context(), "1"))
				if got := repo.Git("ls-tree", "-r", "--name-only", "main"); strings.Contains(got, "prod") {
					t.Errorf("there are %s", got)
				}
			})
		}
	}
}

// TestRestored tests a server that says ok to the removal of a lock and keeps it: whoever removes the lock of someone
// else is told.
func TestRestored(t *testing.T) {
	t.Parallel()
	says := golden(t, "the lock stays")
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "net/prod", Data: "old"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	address := texts{"repository": server.URL, "path": "net/prod"}
	must(t, at(t, address).Lock(t.Context(), storetest.Lock("1")))
	repo.Drop(func(string) bool { return true })
	says.Error(t, "unlock", carefully(at(t, address)).Unlock(t.Context(), "1"))
}

// TestNothing tests a server that says ok to each push and stores nothing: no write is a success.
func TestNothing(t *testing.T) {
	t.Parallel()
	says := golden(t, "nothing is stored")
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "net/prod", Data: "old"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	repo.Drop(func(string) bool { return true })
	s := carefully(at(t, texts{"repository": server.URL, "path": "net/prod"}))
	_, read, err := s.Read(t.Context())
	must(t, err)
	_, err = s.Write(t.Context(), storetest.State(1), read)
	says.Error(t, "write", err)
}

// TestFilterFails tests a server that knows no filter, and fails if a request names one, as those of git do.
func TestFilterFails(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true, NoFilter: true, NoObjectID: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "net/prod", Data: string(storetest.State(1))})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{ProtocolV0: true, Before: func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
			return false
		}
		body, err := io.ReadAll(r.Body)
		if fails := err != nil || bytes.Contains(body, []byte(" filter")); fails {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return false
	}})
	s := at(t, texts{"repository": server.URL, "path": "net/prod"})
	must(t, takeLock(t, s))
	data, read, err := s.Read(t.Context())
	if err != nil || !bytes.Equal(data, storetest.State(1)) {
		t.Fatalf("got %q, %v", data, err)
	}
	_, err = s.Write(t.Context(), storetest.State(2), read)
	must(t, errors.Join(err, s.Unlock(t.Context(), "1")))
}

// said collects what a user is told.
func said(t *testing.T) (context.Context, *[]string) {
	t.Helper()
	var texts []string
	return notice.With(t.Context(), func(text string) { texts = append(texts, text) }), &texts
}
