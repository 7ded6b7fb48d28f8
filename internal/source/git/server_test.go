package git

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// These are the commands that make a server fast again.
const (
	noFilter = " config uploadpack.allowFilter true"
	noSingle = " config uploadpack.allowAnySHA1InWant true"
)

// TestServers reads two files one after the other, so that the second finds
// the trees known and the directory gone.
func TestServers(t *testing.T) {
	t.Parallel()
	says := openMistakes(t, "slow servers")
	for name, c := range testkit.Some(map[string]struct {
		repo    gittest.RepoOptions
		http    gittest.HTTPOptions
		warning string
	}{
		"plain":      {},
		"filter off": {repo: gittest.RepoOptions{NoFilter: true}, warning: noFilter},
		"v0":         {http: gittest.HTTPOptions{ProtocolV0: true}},
		"v0, filter off": {repo: gittest.RepoOptions{NoFilter: true}, http: gittest.HTTPOptions{ProtocolV0: true},
			warning: noFilter},
		"no object ids": {repo: gittest.RepoOptions{NoObjectID: true}},
		"no object ids, v0": {repo: gittest.RepoOptions{NoObjectID: true}, http: gittest.HTTPOptions{ProtocolV0: true},
			warning: noSingle},
		"neither, v0": {repo: gittest.RepoOptions{NoObjectID: true, NoFilter: true}, http: gittest.HTTPOptions{ProtocolV0: true},
			warning: noFilter},
		"TLS":                {http: gittest.HTTPOptions{TLS: true}},
		"IPv6":               {http: gittest.HTTPOptions{IPv6: true, Username: "u", Password: "p"}},
		"SHA-256, no filter": {repo: gittest.RepoOptions{SHA256: true, NoFilter: true}, warning: noFilter},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.NewRepo(t, c.repo)
			commit := repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "one"}, gittest.File{Path: "b", Data: "two"})
			server := gittest.HTTP(t, repo, c.http)
			block := vars{"url": server.Origin}
			if c.http.Password != "" {
				block["username"], block["password"] = "u", "p"
			}
			if c.http.TLS {
				block["ca_file"] = server.CAFile
			}
			r := newTestRun(t, nil, block)
			r.slow = 0
			var warned []source.Warning
			for path, want := range map[string]string{"a": "one", "b": "two"} {
				s := mustRead(t, r, place{repository: server.URL, ref: "main", path: path}, want)
				if s.Revision != commit {
					t.Errorf("revision %s, want %s", s.Revision, commit)
				}
				warned = append(warned, s.Warnings...)
			}
			if len(warned) != min(len(c.warning), 1) || len(warned) > 0 && !strings.HasSuffix(warned[0].Text, c.warning) {
				t.Errorf("warnings %q, want one for %q", warned, c.warning)
			}
			if len(warned) > 0 {
				says.Error(t, name, errors.New(warned[0].Text))
			}
		})
	}
}

// TestFilterRefused tests servers of version 0 that fail if git names a filter, as dulwich does: over HTTP, it answers
// 500, and over ssh, it hangs up. The file is read without a filter.
func TestFilterRefused(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(http.ResponseWriter){
		"500":      func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"hangs up": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.NewRepo(t, gittest.RepoOptions{NoFilter: true})
			repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "one"})
			var refused atomic.Int64
			server := gittest.HTTP(t, repo, gittest.HTTPOptions{ProtocolV0: true, Before: func(w http.ResponseWriter, r *http.Request) bool {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				if !bytes.Contains(body, []byte("filter")) {
					return false
				}
				refused.Add(1)
				fail(w)
				return true
			}})
			mustRead(t, newTestRun(t, nil), place{repository: server.URL, ref: "main", path: "a"}, "one")
			if refused.Load() == 0 {
				t.Error("no request named a filter")
			}
		})
	}
}

// Nothing can be done about a server that
// gives out neither; the error says what else to write.
func TestNoCommitsOverV0(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{NoObjectID: true})
	old := repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "one"})
	repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "two"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{ProtocolV0: true})
	_, err := read(t, newTestRun(t, nil), place{repository: server.URL, ref: old, path: "a"})
	openMistakes(t, "no commits").Error(t, "by id", err)
}

// onSecondVisit calls do when the second fetch begins.
func onSecondVisit(do func()) func(http.ResponseWriter, *http.Request) bool {
	var visits atomic.Int64
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/info/refs") && visits.Add(1) == 2 {
			do()
		}
		return false
	}
}

func TestRefMovesBetweenTheFetches(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	first := repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "one"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Before: onSecondVisit(func() {
		repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "two"})
	})})
	if s := mustRead(t, newTestRun(t, nil), place{repository: server.URL, ref: "main", path: "a"}, "one"); s.Revision != first {
		t.Errorf("revision %s, want %s", s.Revision, first)
	}
}

// A ref that is made between a fetch and the list of the refs is read, by sources and by stores: two runs may
// make the first state of a repository at once.
func TestRefAppears(t *testing.T) {
	t.Parallel()
	appearing := func(t *testing.T, made string) *gittest.HTTPServer {
		repo := gittest.NewRepo(t, gittest.RepoOptions{})
		var once sync.Once
		return gittest.HTTP(t, repo, gittest.HTTPOptions{Before: func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet && r.Header.Get("Git-Protocol") == "" { // the list is asked for in version 0
				once.Do(func() { repo.Commit(made, gittest.File{Path: "a", Data: "one"}) })
			}
			return false
		}})
	}
	for _, made := range []string{"refs/heads/main", "refs/tags/main"} {
		t.Run(made, func(t *testing.T) {
			t.Parallel()
			mustRead(t, newTestRun(t, nil), place{repository: appearing(t, made).URL, ref: "main", path: "a"}, "one")
		})
	}
	t.Run("written", func(t *testing.T) {
		t.Parallel()
		const branch = "refs/heads/main"
		where, err := parseRepository(appearing(t, branch).URL)
		if err != nil {
			t.Fatal(err)
		}
		visit, err := (&Server{Branch: branch, run: newTestRun(t, nil), remote: where}).Visit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer visit.Close()
		found, err := visit.Fetch(t.Context(), branch, "a", 100)
		if err != nil || string(found.Data) != "one" {
			t.Errorf("got %+v, %v", found, err)
		}
	})
}

func rewrite(repo *gittest.Repo, files ...gittest.File) {
	repo.Git("update-ref", "-d", "refs/heads/main")
	repo.Commit("refs/heads/main", files...)
	repo.Git("gc", "-q", "--prune=now")
}

// After a forced push and a collection of what is not reachable any more, the
// blob of the first list is gone; the second try reads the new commit.
func TestForcedPushBetweenTheFetches(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "one"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Before: onSecondVisit(func() {
		rewrite(repo, gittest.File{Path: "a", Data: "two"})
	})})
	s := mustRead(t, newTestRun(t, nil), place{repository: server.URL, ref: "main", path: "a"}, "two")
	if tip := repo.Git("rev-parse", "main"); s.Revision != tip || len(s.Warnings) != 0 {
		t.Errorf("revision %s, want %s; warnings %q, want none", s.Revision, tip, s.Warnings)
	}
	if n := len(server.Requests()); n != 10 {
		t.Errorf("%d requests; want both fetches, and once more", n)
	}
}

func TestForcedPushBetweenTwoReads(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "one"}, gittest.File{Path: "b", Data: "bee"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	r := newTestRun(t, nil)
	mustRead(t, r, place{repository: server.URL, ref: "main", path: "a"}, "one")
	rewrite(repo, gittest.File{Path: "b", Data: "new"})
	mustRead(t, r, place{repository: server.URL, ref: "main", path: "b"}, "new")
	_, err := read(t, r, place{repository: server.URL, ref: "main", path: "a"})
	if _, missing := source.IsMissing(err); !missing {
		t.Errorf("got %v", err)
	}
}

// damaged passes the first bytes on and then does something else.
type damaged struct {
	http.ResponseWriter
	left int
	then func(p []byte)
}

func (d *damaged) Write(p []byte) (int, error) {
	if len(p) > d.left {
		p = append([]byte(nil), p...)
		d.then(p[d.left:])
	}
	d.left = max(0, d.left-len(p))
	return d.ResponseWriter.Write(p)
}

func TestDamagedAnswers(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: noise(1, 100_000)})
	for name, then := range map[string]func(p []byte){
		"corrupt pack": func(p []byte) {
			for i := range p {
				p[i] ^= 0x55
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var broken atomic.Bool
			broken.Store(true)
			server := gittest.HTTP(t, repo, gittest.HTTPOptions{Wrap: func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
				if !broken.Load() {
					return w
				}
				return &damaged{ResponseWriter: w, left: 30_000, then: then}
			}})
			r := newTestRun(t, nil)
			_, err := read(t, r, place{repository: server.URL, path: "a"})
			mustFail(t, err, "git said")
			mustNotBeMissing(t, err)

			broken.Store(false) // an error is not remembered
			mustRead(t, r, place{repository: server.URL, path: "a"}, noise(1, 100_000))
		})
	}
}

// Promise: Text from outside
func TestServerText(t *testing.T) {
	t.Parallel()
	server := gittest.HTTP(t, gittest.NewRepo(t, gittest.RepoOptions{}), gittest.HTTPOptions{
		Before: func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("\x1b[2Jno\x07 such " + strings.Repeat("thing ", 1000)))
			return true
		}})
	_, err := read(t, newTestRun(t, nil), place{repository: server.URL, path: "a"})
	openMistakes(t, "no repository").Error(t, "of this name", err)
	if len(err.Error()) > 2000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
	mustNotBeMissing(t, err)
}
