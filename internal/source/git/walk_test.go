package git

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// manyFolders is how many folders the large repository has: more than a first look
// takes, by their number and by their size.
const manyFolders = 20_000

func deepPath(i int) string { return fmt.Sprintf("d%02d/e%02d/f%02d/s.tfstate", i/784, i/28%28, i%28) }

// largeRepo has a state in each of 20,000 folders, on three levels, and more files.
func largeRepo(t *testing.T, opts gittest.RepoOptions, more ...gittest.File) *gittest.Repo {
	t.Helper()
	repo := gittest.NewRepo(t, opts)
	repo.Import(largeCommit(more...))
	return repo
}

func largeCommit(more ...gittest.File) string {
	var b strings.Builder
	b.WriteString("commit refs/heads/main\ncommitter T <t@example.com> 1700000000 +0000\ndata 1\nx\n")
	for i := range manyFolders {
		text := fmt.Sprint("state ", i)
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", deepPath(i), len(text), text)
	}
	for _, f := range more {
		mode := f.Mode
		if mode == "" {
			mode = "100644"
		}
		fmt.Fprintf(&b, "M %s inline %q\ndata %d\n%s\n", mode, f.Path, len(f.Data), f.Data)
	}
	return b.String()
}

// Requests of one fetch: what the server can do, what its branches are (or, with protocol
// v0, where its history is cut off), the objects; an id needs no branches.
const (
	byName = 3
	byID   = 2
)

// short is a server that sends no more of an answer than a bit over 64 kB, the size of
// the parts in which git reads it. A client that waits for more waits in vain.
func short() func(http.ResponseWriter, *http.Request) http.ResponseWriter {
	return func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		return &held{ResponseWriter: w, left: 72 << 10, gone: r.Context().Done()}
	}
}

type held struct {
	http.ResponseWriter
	left int
	gone <-chan struct{}
}

func (h *held) Write(p []byte) (int, error) {
	n, err := h.ResponseWriter.Write(p[:min(len(p), h.left)])
	if h.left -= n; n < len(p) && err == nil {
		<-h.gone
		err = http.ErrAbortHandler
	}
	return n, err
}

// One state costs what its path costs, and a first look that ends with the number of
// folders, which is the first thing in an answer.
func TestLargeRepository(t *testing.T) {
	long(t)
	t.Parallel()
	repo := largeRepo(t, gittest.RepoOptions{})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Wrap: short()})
	r := newTestRun(t, nil)
	for _, step := range []struct{ file, requests int }{
		{0, byName + byName + 3*byID + byID},
		{0, byID},
		{1, byID + byID},          // another folder beside that of the first
		{28, 2*byID + byID},       // two other ones
		{19_999, 3*byID + byID},   // three
		{19_999 - 1, byID + byID}, // beside them
	} {
		server.Reset()
		s := mustRead(t, r, place{repository: server.URL, path: deepPath(step.file)}, fmt.Sprint("state ", step.file))
		if n := len(server.Requests()); n != step.requests || len(s.Warnings) > 0 {
			t.Errorf("state %d: %d requests, want %d; warnings %q", step.file, n, step.requests, s.Warnings)
		}
		if n := server.BytesDown(); n > 100_000 {
			t.Errorf("state %d: %d bytes, want at most 100,000", step.file, n)
		}
	}
}

// Files that are read at the same time share the requests, one for each level.
func TestLargeRepositoryTogether(t *testing.T) {
	long(t)
	t.Parallel()
	repo := largeRepo(t, gittest.RepoOptions{}, gittest.File{Path: "root", Data: "state 20"})
	g := newGate()
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Wrap: short(), Before: g.before})
	r := newTestRun(t, nil)
	var answers []<-chan answer
	for i := range 20 {
		answers = append(answers, fetchIn(t.Context(), t, r, place{repository: server.URL, path: deepPath(i * 1000)}))
	}
	answers = append(answers, fetchIn(t.Context(), t, r, place{repository: server.URL, path: "root"}))
	for queued(r, place{repository: server.URL}) < len(answers) {
		time.Sleep(time.Millisecond) // git is to have the processor
	}
	close(g.open)
	for i, answered := range answers {
		want := fmt.Sprint("state ", i*1000)
		if i == 20 {
			want = "state 20"
		}
		if a := <-answered; a.err != nil || string(a.snapshot.Data) != want {
			t.Errorf("%d: %v, want %q", i, a.err, want)
		}
	}
	if n, want := len(server.Requests()), byName+byName+3*byID+byID; n != want {
		t.Errorf("%d requests, want %d", n, want)
	}
	if n := server.BytesDown(); n > 150_000 {
		t.Errorf("%d bytes", n)
	}
}

// newWalkingRun takes every repository for a large one.
func newWalkingRun(t *testing.T, blocks ...vars) *run {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no limits of files")
	}
	r := newTestRun(t, nil, blocks...)
	r.maxGlance = 512 // the smallest that can be set
	return r
}

// ballast are folders that do not fit into a first look of 512 bytes.
func ballast() (files []gittest.File) {
	for i := range 40 {
		files = append(files, gittest.File{Path: fmt.Sprintf("ballast/%d/x", i), Data: fmt.Sprint(i)})
	}
	return files
}

// Servers that cannot do it are asked for everything at once.
func TestWalkOnEveryServer(t *testing.T) {
	t.Parallel()
	for name, c := range testkit.Some(map[string]struct {
		repo     gittest.RepoOptions
		http     gittest.HTTPOptions
		config   string
		requests int
		warning  string
	}{
		"plain":         {requests: byName + byName + 2*byID + byID},
		"v0":            {http: gittest.HTTPOptions{ProtocolV0: true}, requests: byName + byName + 2*byID + byID},
		"SHA-256":       {repo: gittest.RepoOptions{SHA256: true}, requests: byName - 1 + byName + byName + 2*byID + byID},
		"no object ids": {repo: gittest.RepoOptions{NoObjectID: true}, requests: byName + byName + 2*byID + byID},
		"no trees":      {config: "uploadpackfilter.tree.allow", requests: byName + byName + byName + byID},
		"no trees, v0": {config: "uploadpackfilter.tree.allow", http: gittest.HTTPOptions{ProtocolV0: true},
			requests: byName + byID + byName + byID},
		"filter off": {repo: gittest.RepoOptions{NoFilter: true}, requests: byName + byName, warning: noFilter},
		"filter off, v0": {repo: gittest.RepoOptions{NoFilter: true}, http: gittest.HTTPOptions{ProtocolV0: true}, requests: byName + byName,
			warning: noFilter},
		"no object ids, v0": {repo: gittest.RepoOptions{NoObjectID: true}, http: gittest.HTTPOptions{ProtocolV0: true},
			requests: byName + byName + 1 + byName, warning: noSingle},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.NewRepo(t, c.repo)
			if c.config != "" {
				repo.Git("config", c.config, "false")
			}
			commit := repo.Commit("refs/heads/main", append(ballast(), gittest.File{Path: "a/b/s", Data: "one"},
				gittest.File{Path: "t", Data: "two"})...)
			server := gittest.HTTP(t, repo, c.http)
			r := newWalkingRun(t)
			r.slow = 0
			s := mustRead(t, r, place{repository: server.URL, path: "a/b/s"}, "one")
			if n := len(server.Requests()); n != c.requests || s.Revision != commit {
				t.Errorf("%d requests, want %d; revision %s", n, c.requests, s.Revision)
			}
			if len(s.Warnings) != min(len(c.warning), 1) || len(s.Warnings) > 0 && !strings.HasSuffix(s.Warnings[0].Text, c.warning) {
				t.Errorf("warnings %q, want %q", s.Warnings, c.warning)
			}
			mustRead(t, r, place{repository: server.URL, path: "t"}, "two")
			_, err := read(t, r, place{repository: server.URL, path: "a/b/x"})
			if m, ok := source.IsMissing(err); !ok || !strings.Contains(m.Detail, "a/b/x") || !strings.Contains(m.Detail, " a/b/s?") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What is near is looked for where the path leads.
func TestNearInALargeRepository(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", append(ballast(), gittest.File{Path: "envs/prod/terraform.tfstate"}, gittest.File{Path: "envs/plain"},
		gittest.File{Path: "envs/link", Data: "prod", Mode: "120000"})...)
	r := newWalkingRun(t)
	says := openMistakes(t, "paths that are missing")
	for _, path := range []string{
		"envs/prod/teraform.tfstate",
		"envs/prod/terraform.tfstate.enc",
		"envs/prod/terraform",

		"envs/prod/Terraform.tfstate",
		"envs/prd/terraform.tfstate",
		"Envs/prod/terraform.tfstate",
		"other/terraform.tfstate",
		"other/x/y",
		"envs/plain/x/y",
	} {
		_, err := read(t, r, place{repository: repo.FileURL(), path: path})
		if m, ok := source.IsMissing(err); !ok || !m.Listed {
			t.Errorf("%s: %v", path, err)
		}
		says.Error(t, path, err)
	}
	small := gittest.NewRepo(t, gittest.RepoOptions{})
	small.Commit("refs/heads/main", gittest.File{Path: "network/terraform.tfstate"})
	for _, path := range []string{"terraform.tfstate", "prod/terraform.tfstate"} { // which is another state
		_, err := read(t, newTestRun(t, nil), place{repository: small.FileURL(), path: path})
		if m, ok := source.IsMissing(err); !ok || m.Mistaken || strings.Contains(m.Detail, "network") {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"envs/link/x/y", "envs/prod"} {
		_, err := read(t, r, place{repository: repo.FileURL(), path: path})
		says.Error(t, path, err)
		mustNotBeMissing(t, err)
	}
}

// The branches of locks are walked as well, those of wanted states.
func TestLockInALargeRepository(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	files := append(ballast(), gittest.File{Path: "a/b/s", Data: "one"}, gittest.File{Path: "a/b/free", Data: "two"},
		gittest.File{Path: composed, Data: "three"})
	repo.Commit("refs/heads/main", files...)
	for _, path := range []string{"a/b/s", composed, "a/b/bare"} {
		lock := gittest.File{Path: path + ".lock", Data: lockJSON}
		if path == "a/b/bare" {
			lock.Path = "elsewhere.lock"
		}
		repo.Commit(remoteLocks+path, append(slices.Clone(files), lock, gittest.File{Path: "a/b/bare", Data: "four"})...)
	}
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	r := newWalkingRun(t)
	for _, path := range []string{"a/b/s", norm.NFD.String(composed), "a/b/free", "a/b/s"} {
		s := mustRead(t, r, place{repository: server.URL, path: path}, map[bool]string{true: "one", false: ""}[path == "a/b/s"]+
			map[bool]string{true: "two", false: ""}[path == "a/b/free"]+map[bool]string{true: "three", false: ""}[!isASCII(path)])
		if locked := path != "a/b/free"; locked != (s.Lock != nil) || locked && s.Lock.Who != "tester@example.test" {
			t.Errorf("%s: lock %+v", path, s.Lock)
		}
	}
	_, err := read(t, r, place{repository: server.URL, path: "a/b/bare", onLocked: "warn"})
	if _, ok := source.IsMissing(err); !ok {
		t.Errorf("got %v", err)
	}
	openMistakes(t, "a branch without a lock").Error(t, "of another path", err)
}

// A branch that is rewritten while it is walked is read anew.
func TestForcedPushWhileWalking(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", append(ballast(), gittest.File{Path: "a/b/s", Data: "one"})...)
	var visits atomic.Int64
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Before: func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/info/refs") && visits.Add(1) == 4 { // the second folder
			rewrite(repo, append(ballast(), gittest.File{Path: "a/b/s", Data: "two"})...)
		}
		return false
	}})
	s := mustRead(t, newWalkingRun(t), place{repository: server.URL, path: "a/b/s"}, "two")
	if tip := repo.Git("rev-parse", "main"); s.Revision != tip || len(s.Warnings) > 0 {
		t.Errorf("revision %s, want %s; warnings %q", s.Revision, tip, s.Warnings)
	}
}

// Two spellings of a folder in other code points are both on the way.
func TestWalkOfTwoSpellings(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	decomposedFolder := norm.NFD.String("caf\u00e9")
	repo.Commit("refs/heads/main", append(ballast(), gittest.File{Path: "caf\u00e9/a", Data: "one"},
		gittest.File{Path: decomposedFolder + "/b", Data: "two"})...)
	r := newWalkingRun(t)
	mustRead(t, r, place{repository: repo.FileURL(), path: "caf\u00e9/a"}, "one")
	mustRead(t, r, place{repository: repo.FileURL(), path: "caf\u00e9/b"}, "two")
}

func TestDamagedFolders(t *testing.T) {
	id := strings.Repeat("\x01", 20)
	for folder, whole := range map[string]bool{
		"":                             true,
		"100644 a\x00" + id:            true,
		"40000 a\x00" + id:             true,
		"100644 a\x00" + id[1:]:        false,
		"100644 a\x00" + id + "100644": false,
		"100644 \x00" + id:             false,
		"1006440 a\x00" + id:           false,
	} {
		if isFolder([]byte(folder), 20) != whole {
			t.Errorf("%q: not %v", folder, whole)
		}
	}
}

// Advice for large pushes is to set half a gigabyte, which git reserves for each request.
func TestPostBufferOfTheUser(t *testing.T) {
	t.Parallel()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{})
	r := newTestRun(t, nil)
	r.environ = append(r.environ, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.postBuffer", "GIT_CONFIG_VALUE_0=524288000")
	mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
	if n := len(server.Requests()); n != byName+byID {
		t.Errorf("%d requests, want %d", n, byName+byID)
	}
}

// walked is a repository with nothing but the commit and its root.
func walked(t *testing.T, r *run, address string) (*repository, *tree) {
	t.Helper()
	src, err := r.open(place{repository: address, path: "a/s"}.request(t))
	if err != nil {
		t.Fatal(err)
	}
	p := src.(*file).pin
	d := &repository{run: p.run, remote: p.remote}
	t.Cleanup(func() { d.remove() })
	list, err := p.list(t.Context(), d)
	if err != nil || d.reach != walk || list.root == "" {
		t.Fatalf("%v; %+v", err, d)
	}
	return d, list
}

// What is not here stays away, also with versions of git that do not know
// GIT_NO_LAZY_FETCH.
func TestNothingIsFetchedBehindOurBack(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", append(ballast(), gittest.File{Path: "a/s", Data: "one"})...)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	r := newWalkingRun(t)
	path := os.Getenv("PATH")
	withGit(t, `unset GIT_NO_LAZY_FETCH; PATH='`+path+`' exec '`+git+`' "$@"`)
	t.Setenv("PATH", os.Getenv("PATH")+string(os.PathListSeparator)+path) // sh is there
	d, list := walked(t, r, server.URL)
	server.Reset()
	if out, err := d.output(t.Context(), 1<<20, "ls-tree", "-r", list.commit); err == nil {
		t.Errorf("folders that were never asked for: %q", out)
	}
	if n := len(server.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

func TestFoldersThatAreNone(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", append(ballast(), gittest.File{Path: "a/s", Data: "one"})...)
	d, list := walked(t, newWalkingRun(t), repo.FileURL())
	for name, c := range map[string]struct {
		id   string
		left int64
		err  error
	}{
		"a folder": {list.root, 1 << 20, nil},
		"a file":   {repo.Git("rev-parse", "main:a/s"), 1 << 20, errListing},
		"too long": {repo.Git("rev-parse", "main:ballast"), 1000, errTooManyFiles},
	} {
		folders, err := d.fetchFolders(t.Context(), map[string]bool{c.id: true}, c.left)
		if !errors.Is(err, c.err) || err == nil && len(folders[c.id]) == 0 {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
	}
}
