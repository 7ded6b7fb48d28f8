package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

// TestMain keeps the settings of whoever runs the tests out of them.
func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "statecrypt-git-test-")
	if err != nil {
		panic(err)
	}
	isolated := gittest.Environ(home)
	os.Clearenv()
	for _, pair := range isolated {
		name, value, _ := strings.Cut(pair, "=")
		os.Setenv(name, value)
	}
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

type vars map[string]string

func (v vars) lookup(name string) (string, bool) {
	s, ok := v[name]
	return s, ok
}

// newTestRun is a configured provider: the variables that it may read, and its
// credentials blocks. When the test ends, nothing may be left on disk.
func newTestRun(t testing.TB, env vars, blocks ...vars) *run {
	t.Helper()
	r := runOf(t.TempDir(), env, blocks...)
	t.Cleanup(func() { checkNothingLeft(t, r) })
	return r
}

func runOf(dir string, env vars, blocks ...vars) *run {
	credentials := source.Credentials{Table: credentialsTable(), Env: env.lookup}
	for i, b := range blocks {
		values := map[string]cty.Value{}
		for name, value := range b {
			values[name] = cty.StringVal(value)
		}
		credentials.Entries = append(credentials.Entries, block(fmt.Sprintf("credentials.git[%d]", i), values))
	}
	r := newReader(source.Settings{Credentials: credentials, LookupEnv: env.lookup}.For(Kind()))
	r.tempDir = dir
	return r
}

func block(address string, values map[string]cty.Value) *unstable.Entry {
	e := &unstable.Entry{Address: address, Kind: "git", Settings: map[string]unstable.Setting{}}
	for name, v := range values {
		e.Settings[name] = unstable.Setting{Value: v}
	}
	return e
}

func checkNothingLeft(t testing.TB, r *run) {
	t.Helper()
	left, err := os.ReadDir(r.tempDir)
	if err != nil || len(left) > 0 {
		t.Errorf("left on disk: %v %v", left, err)
	}
}

// long skips with -short what takes many processes, or long ones.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes many processes, or long ones")
	}
}

// place is what a data source says.
type place struct {
	repository, ref, path string
	onLocked              string
	maxSize               int64
}

func (p place) request(t testing.TB) source.Request {
	t.Helper()
	values := map[string]cty.Value{"repository": cty.StringVal(p.repository), "path": cty.StringVal(p.path)}
	if p.ref != "" {
		values["ref"] = cty.StringVal(p.ref)
	}
	if p.onLocked != "" {
		values["on_locked"] = cty.StringVal(p.onLocked)
	}
	v, err := block("data.git", values).Decode(table(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.maxSize == 0 {
		p.maxSize = 1 << 20
	}
	return source.Request{Values: v, Workspace: "default", MaxSize: p.maxSize}
}

func read(t testing.TB, r *run, p place) (*source.Snapshot, error) {
	t.Helper()
	src, err := r.open(p.request(t))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	snapshot, err := src.Fetch(ctx)
	checkNothingLeft(t, r) // the provider may be stopped right after
	return snapshot, err
}

func mustRead(t testing.TB, r *run, p place, want string) *source.Snapshot {
	t.Helper()
	snapshot, err := read(t, r, p)
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	if string(snapshot.Data) != want {
		t.Fatalf("%+v: got %.80q, want %.80q", p, snapshot.Data, want)
	}
	return snapshot
}

// mistakes is the golden of the sources, without the messages of git, which differ with its version.
type mistakes struct{ *testkit.Golden }

func openMistakes(t *testing.T, group string) mistakes {
	t.Helper()
	return mistakes{sourcetest.OpenMistakes(t, "git, "+group)}
}

// Error compares our part of the text of an error.
func (m mistakes) Error(t *testing.T, name string, err error) {
	t.Helper()
	if failed, ok := errors.AsType[*explainedError](err); ok {
		err = failed.error
	}
	m.Golden.Error(t, name, err)
}

// mustFail checks that the error holds each of the words, which are git's or ours for a secret.
func mustFail(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error lacks %q: %v", w, err)
		}
	}
	if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' && r != '\n' }) {
		t.Errorf("the error holds control characters: %q", err)
	}
}

// noise is text that does not compress below three quarters, like a ciphertext
// in base64.
func noise(seed uint64, size int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	rnd := rand.New(rand.NewPCG(seed, seed))
	b := make([]byte, size)
	for i := range b {
		b[i] = alphabet[rnd.IntN(len(alphabet))]
	}
	return string(b)
}

// bigRepo has 300 states of 20 KB in as many folders.
var bigRepo = sync.OnceValue(func() []gittest.File {
	var files []gittest.File
	for i := range 300 {
		files = append(files, gittest.File{Path: bigPath(i), Data: noise(uint64(i), 20_000)})
	}
	return files
})

func bigPath(i int) string { return fmt.Sprintf("envs/svc-%03d/terraform.tfstate", i) }

func TestOneFileIsCheap(t *testing.T) {
	long(t)
	t.Parallel()
	files := bigRepo()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	commit := repo.Commit("refs/heads/main", files...)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})

	s := mustRead(t, newTestRun(t, nil), place{repository: server.URL, path: files[7].Path}, files[7].Data)
	if s.Revision != commit || len(s.Warnings) != 0 {
		t.Errorf("revision %s, warnings %q; want %s and none", s.Revision, s.Warnings, commit)
	}
	if n := len(server.Requests()); n > 5 {
		t.Errorf("%d requests, want at most 5: %v", n, server.Requests())
	}
	if n := server.BytesDown(); n > 50_000 || n < 15_000 {
		t.Errorf("%d bytes down, want at most 50,000 and what the file needs", n)
	}
}

func TestTwentyFilesTogether(t *testing.T) {
	long(t)
	t.Parallel()
	files := bigRepo()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", files...)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "u", Password: "p"})
	r := newTestRun(t, vars{"GIT_PASSWORD": "p"}, vars{"url": server.Origin, "username": "u"})

	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			src, err := r.open(place{repository: server.URL, ref: "main", path: files[i].Path}.request(t))
			if err != nil {
				t.Error(err)
				return
			}
			s, err := src.Fetch(t.Context())
			if err != nil || string(s.Data) != files[i].Data {
				t.Errorf("file %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if n := len(server.Requests()); n > 10 {
		t.Errorf("%d requests, want at most 10", n)
	}
}

func TestFiftyReadersOfOneFile(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "state"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	r := newTestRun(t, nil)
	src, err := r.open(place{repository: server.URL, path: "a"}.request(t))
	if err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup
	start := make(chan struct{})
	for range 50 {
		wg.Go(func() {
			<-start
			s, err := src.Fetch(t.Context())
			if err != nil || string(s.Data) != "state" {
				t.Errorf("%v", err)
				return
			}
			for i := range s.Data {
				s.Data[i] = 'x' // the caller's own: nobody else may see it
			}
		})
	}
	close(start)
	wg.Wait()
	if n := len(server.Requests()); n != 5 {
		t.Errorf("%d requests, want one fetch of trees (3) and one of files (2)", n)
	}
}

// A later file at the same ref comes from the same commit, although the branch
// has moved, and costs no second fetch of the trees.
func TestRunSeesOneCommit(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	first := repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "a1"}, gittest.File{Path: "b", Data: "b1"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	r := newTestRun(t, nil)
	mustRead(t, r, place{repository: server.URL, ref: "main", path: "a"}, "a1")
	repo.Commit("refs/heads/main", gittest.File{Path: "a", Data: "a2"}, gittest.File{Path: "b", Data: "b2"})
	server.Reset()
	if s := mustRead(t, r, place{repository: server.URL, ref: "main", path: "b"}, "b1"); s.Revision != first {
		t.Errorf("revision %s, want %s", s.Revision, first)
	}
	if n := len(server.Requests()); n != 2 {
		t.Errorf("%d requests for the second file, want 2", n)
	}
	mustRead(t, newTestRun(t, nil), place{repository: server.URL, ref: "main", path: "b"}, "b2")
}

func TestDocsAreComplete(t *testing.T) {
	kind := Kind()
	if kind.Name != "git" || kind.Credentials.Name != "git" || kind.Credentials.Attrs[0].Name != "url" {
		t.Errorf("the kind is %q, its credentials %q, whose first attribute is %q", kind.Name, kind.Credentials.Name,
			kind.Credentials.Attrs[0].Name)
	}
	for _, table := range []attr.Table{kind.Table, kind.Credentials} {
		for _, a := range table.Attrs {
			if !strings.HasSuffix(a.Doc, ".") {
				t.Errorf("%s.%s: the documentation is no sentence: %q", table.Name, a.Name, a.Doc)
			}
		}
	}
}

func TestStringIsSafe(t *testing.T) {
	src, err := newTestRun(t, nil).open(place{repository: "https://git.example.com/a", path: "x\x1b[2Jy"}.request(t))
	if err != nil {
		t.Fatal(err)
	}
	if s := src.(fmt.Stringer).String(); s != `x\u001b[2Jy in the git repository https://git.example.com/a at HEAD` {
		t.Error(s)
	}
}

func with(v vars, more vars) vars {
	out := maps.Clone(v)
	maps.Copy(out, more)
	return out
}
