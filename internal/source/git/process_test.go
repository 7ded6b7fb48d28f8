package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// gate holds all requests back until it is opened.
type gate struct {
	reached chan struct{} // closed by the first request
	open    chan struct{}
	once    sync.Once
}

func newGate() *gate { return &gate{reached: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) before(_ http.ResponseWriter, r *http.Request) bool {
	g.once.Do(func() { close(g.reached) })
	select {
	case <-g.open:
	case <-r.Context().Done():
	}
	return false
}

func fetchIn(ctx context.Context, t *testing.T, r *run, p place) <-chan answer {
	t.Helper()
	src, err := r.open(p.request(t))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan answer, 1)
	go func() {
		s, err := src.Fetch(ctx)
		done <- answer{s, err}
	}()
	return done
}

// What git printed is read to its end, however long after its own that is: a list
// that breaks off looks like one without the file.
func TestLateReader(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("sh is not installed")
	}
	const printed = 40_000 // bytes: more than are copied at a time, and less than a pipe holds
	lives, life, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer lives.Close()
	run := func(cmd *exec.Cmd) error {
		cmd.ExtraFiles, cmd.WaitDelay = []*os.File{life}, 1
		err := cmd.Start()
		life.Close()
		return errors.Join(err, cmd.Wait())
	}
	var got []byte
	_, err = execute(t.Context(), newTestRun(t, nil).environment(false), nil, func(stdout io.Reader) (err error) {
		_, _ = io.ReadAll(lives) // until the program has ended
		got, err = io.ReadAll(stdout)
		return err
	}, run, []string{"sh", "-c", fmt.Sprintf("printf %%%dd 1", printed)})
	if err != nil || len(got) != printed {
		t.Errorf("got %d bytes, %v; want %d", len(got), err, printed)
	}
}

func processesWith(word string) string {
	out, _ := exec.Command("ps", "-A", "-ww", "-o", "pid,args").Output()
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, word) && !strings.Contains(line, "<defunct>") {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}

func TestCancelKillsChildren(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip("ps is not installed")
	}
	g := newGate()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Before: g.before})
	r := newTestRun(t, nil)
	r.environ = append(r.environ, "GIT_HTTP_LOW_SPEED_TIME=600") // so that git does not stop by itself
	ctx, cancel := context.WithCancel(t.Context())
	done := fetchIn(ctx, t, r, place{repository: server.URL, path: "s"})
	<-g.reached
	if processesWith(server.Origin) == "" {
		t.Error("git was never seen: this test shows nothing")
	}
	cancel()
	begin := time.Now()
	if a := <-done; !errors.Is(a.err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", a.err)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("it took %v to stop", took)
	}
	checkNothingLeft(t, r)
	for try := 0; processesWith(server.Origin) != ""; try++ { // killed is not yet gone
		if try == 6000 {
			t.Fatalf("still there:\n%s", processesWith(server.Origin))
		}
		time.Sleep(10 * time.Millisecond)
	}

	close(g.open) // a cancelled fetch is not remembered
	mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
}

func TestOneLeavesTheOthersStay(t *testing.T) {
	t.Parallel()
	g := newGate()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Before: g.before})
	r := newTestRun(t, nil)
	at := place{repository: server.URL, path: "s"}
	first, cancel := context.WithCancel(t.Context())
	one := fetchIn(first, t, r, at)
	<-g.reached
	two := fetchIn(t.Context(), t, r, at)
	for queued(r, at) < 2 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if a := <-one; !errors.Is(a.err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", a.err)
	}
	close(g.open)
	if a := <-two; a.err != nil || string(a.snapshot.Data) != "state" {
		t.Errorf("the other one got %v", a.err)
	}
	if n := len(server.Requests()); n != 5 {
		t.Errorf("%d requests, want one fetch", n)
	}
}

// Two leave, one of them while its file is on its way, and one stays.
func TestLeavingIsCountedOnce(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	var files []gittest.File
	for _, name := range []string{"a", "b", "c", "d"} {
		files = append(files, gittest.File{Path: name, Data: "content of " + name})
	}
	repo.Commit("refs/heads/main", files...)
	trees, second, third := newGate(), newGate(), newGate()
	var visits atomic.Int64
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Before: func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			return []*gate{trees, second, third}[visits.Add(1)-1].before(w, r)
		}
		return false
	}})
	r := newTestRun(t, nil)
	at := func(path string) place { return place{repository: server.URL, path: path} }
	wait := func(n int) {
		for queued(r, at("")) != n {
			time.Sleep(time.Millisecond)
		}
	}

	leaving, leaveA := context.WithCancel(t.Context())
	a := fetchIn(leaving, t, r, at("a"))
	b := fetchIn(t.Context(), t, r, at("b"))
	wait(2)
	close(trees.open)
	<-second.reached
	leaveA()
	<-a
	leavingToo, leaveC := context.WithCancel(t.Context())
	c := fetchIn(leavingToo, t, r, at("c"))
	d := fetchIn(t.Context(), t, r, at("d"))
	wait(3)
	close(second.open)
	if got := <-b; got.err != nil {
		t.Errorf("b: %v", got.err)
	}
	<-third.reached
	leaveC()
	<-c
	close(third.open)
	if got := <-d; got.err != nil || string(got.snapshot.Data) != "content of d" {
		t.Errorf("d, which stayed: %v", got.err)
	}
}

func queued(r *run, at place) int {
	p := r.pins[pinKey{at.repository, "HEAD"}]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil {
		return 0
	}
	return p.session.waiting
}

// Who comes after the last has left finds a fresh session, not the dying one.
func TestJoinAfterTheLastLeft(t *testing.T) {
	t.Parallel()
	var stuck atomic.Bool
	stuck.Store(true)
	reached := make(chan struct{}, 100)
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Before: func(w http.ResponseWriter, r *http.Request) bool {
		reached <- struct{}{}
		if stuck.Load() {
			<-r.Context().Done()
		}
		return false
	}})
	r := newTestRun(t, nil)
	at := place{repository: server.URL, path: "s"}
	ctx, cancel := context.WithCancel(t.Context())
	one := fetchIn(ctx, t, r, at)
	<-reached
	stuck.Store(false)
	cancel()
	for queued(r, at) > 0 {
		time.Sleep(time.Millisecond)
	}
	two := fetchIn(t.Context(), t, r, at)
	if a := <-two; a.err != nil || string(a.snapshot.Data) != "state" {
		t.Errorf("the newcomer got %v", a.err)
	}
	if a := <-one; a.err == nil && string(a.snapshot.Data) != "state" {
		t.Error("the first one got something else")
	}
}

func TestManyComeAndGo(t *testing.T) {
	t.Parallel()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{})
	r := newTestRun(t, nil)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*7)*time.Millisecond)
			defer cancel()
			src, err := r.open(place{repository: server.URL, path: "s"}.request(t))
			if err != nil {
				t.Error(err)
				return
			}
			s, err := src.Fetch(ctx)
			if err == nil && string(s.Data) != "state" || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	checkNothingLeft(t, r)
	mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
}

// TestInsideAHook: git sets these for hooks, and Terraform passes them on.
func TestInsideAHook(t *testing.T) {
	t.Parallel()
	repo := stateRepo(t)
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{})
	for _, address := range []string{server.URL, repo.FileURL()} {
		r := newTestRun(t, nil)
		dir := t.TempDir()
		for _, name := range []string{"GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_WORK_TREE", "GIT_COMMON_DIR",
			"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_QUARANTINE_PATH"} {
			r.environ = append(r.environ, name+"="+filepath.Join(dir, "other"))
		}
		r.environ = append(r.environ, "GIT_DEFAULT_HASH=sha256", "GIT_TRACE=1", "GIT_CURL_VERBOSE=1", "GIT_TRACE_CURL="+
			filepath.Join(dir, "trace"))
		if s := mustRead(t, r, place{repository: address, path: "s"}, "state"); len(s.Warnings) != 0 {
			t.Errorf("warnings %q", s.Warnings)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("git wrote %v", left)
		}
	}
}

func TestHooksOfTheUserDoNotRun(t *testing.T) {
	t.Parallel()
	hooks := t.TempDir()
	ran := filepath.Join(t.TempDir(), "ran")
	if err := os.WriteFile(filepath.Join(hooks, "reference-transaction"), []byte("#!/bin/sh\ntouch '"+filepath.ToSlash(ran)+"'\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	r := newTestRun(t, nil)
	r.environ = append(r.environ, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0="+filepath.ToSlash(hooks))
	mustRead(t, r, place{repository: stateRepo(t).FileURL(), path: "s"}, "state")
	if _, err := os.Stat(ran); err == nil {
		t.Error("a hook ran")
	}
}

// TestChildrenGetNoSecrets asks a child: a credential helper is one.
//
// Promise: Secrets of programs
func TestChildrenGetNoSecrets(t *testing.T) {
	t.Parallel()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Username: "u", Password: "p"})
	r := newTestRun(t, nil)
	log := filepath.ToSlash(filepath.Join(t.TempDir(), "env"))
	for _, name := range []string{"TF_ENCRYPTION", "TF_VAR_x", "TF_HTTP_PASSWORD", "GIT_PASSWORD", "GITHUB_TOKEN", "MY_PASSPHRASE"} {
		r.environ = append(r.environ, name+"="+canary)
	}
	r.environ = append(r.environ, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=credential.helper", "GIT_CONFIG_VALUE_0=!f() { env > '"+log+
		"'; echo username=u; echo password=p; }; f")
	mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	mustNotHold(t, "the environment of a child", string(text), canary)
}

// withGit puts a script in the place of git. PATH belongs to the process, so
// these tests are not parallel.
func withGit(t *testing.T, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for git is a shell script")
	}
	dir := t.TempDir()
	if script != "" {
		if err := os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

func TestGitVersions(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	says := openMistakes(t, "versions")
	for name, script := range map[string]string{
		"missing":    "",
		"2.30":       "echo git version 2.30.9",
		"1.8":        "echo git version 1.8.3.1",
		"no git":     "printf 'hello\\033[2J'",
		"fails":      "exit 3",
		"macOS shim": "exec " + sleep + " 60",
	} {
		t.Run(name, func(t *testing.T) {
			withGit(t, script)
			r := newTestRun(t, nil)
			r.versionTimeout = time.Minute
			if name == "macOS shim" {
				r.versionTimeout = 200 * time.Millisecond
			}
			_, err := read(t, r, place{repository: "file:///x", path: "s"})
			says.Error(t, name, err)
		})
	}
	for _, text := range []string{"git version 2.31.0", "git version 2.39.5 (Apple Git-154)", "git version 2.45.1.windows.1",
		"git version 3.0.0-rc1"} {
		if err := checkVersionText([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestVersionIsAskedOnce(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	repo := stateRepo(t)
	log := filepath.Join(t.TempDir(), "log")
	path := os.Getenv("PATH")
	withGit(t, `echo "$1" >> '`+log+`'; PATH='`+path+`' exec '`+git+`' "$@"`)
	r := newTestRun(t, nil)
	r.environ = append(r.environ, "PATH="+path)
	mustRead(t, r, place{repository: repo.FileURL(), path: "s"}, "state")
	mustRead(t, r, place{repository: repo.FileURL(), ref: "main", path: "s"}, "state")
	text, _ := os.ReadFile(log)
	if n := strings.Count(string(text), "version\n"); n != 1 {
		t.Errorf("git version ran %d times:\n%s", n, text)
	}
}

// Promise: Nothing left on disk
func TestTemporaryDirectory(t *testing.T) {
	t.Parallel()
	at := place{repository: stateRepo(t).FileURL(), path: "s"}
	says := openMistakes(t, "temporary folders")
	fails := func(t *testing.T, dir string) {
		r := newTestRun(t, nil)
		good := r.tempDir
		r.tempDir = dir
		src, err := r.open(at.request(t))
		if err != nil {
			t.Fatal(err)
		}
		_, err = src.Fetch(t.Context())
		r.tempDir = good
		own, _, _ := strings.Cut(fmt.Sprint(err), ": ") // the name of the directory is random
		says.Check(t, strings.TrimPrefix(t.Name(), "TestTemporaryDirectory/"), own)
	}
	t.Run("is none", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		fails(t, path)
	})
	t.Run("read-only", func(t *testing.T) {
		if os.Getuid() == 0 || runtime.GOOS == "windows" {
			fails(t, filepath.Join(t.TempDir(), "none")) // root may write everywhere: the nearest to it
			return
		}
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		fails(t, dir)
	})
	t.Run("noexec", func(t *testing.T) {
		dir := noexecDir(t)
		r := newTestRun(t, nil)
		r.tempDir = dir
		mustRead(t, r, at, "state")
	})
	t.Run("full", func(t *testing.T) {
		said := "fatal: cannot create pack: No space left on device\nfatal: fetch-pack: invalid index-pack output"
		d := &repository{remote: remote{protocol: "file", address: "file:///x"}, access: &access{}}
		says.Error(t, "full", d.explain(&commandError{said: said, err: errors.New("exit status 128")}, ref{}))
	})
}

func noexecDir(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		t.Skip("no /proc/mounts")
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !slices.Contains(strings.Split(fields[3], ","), "noexec") || fields[2] != "tmpfs" {
			continue
		}
		if dir, err := os.MkdirTemp(fields[1], "statecrypt-test-"); err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	t.Skip("no writable file system is mounted noexec")
	return ""
}

// Promise: Reading changes nothing
// Promise: Nothing left on disk
func TestNothingLeftAfterErrors(t *testing.T) {
	t.Parallel()
	repo := stateRepo(t)
	r := newTestRun(t, nil)
	for _, p := range []place{{repository: repo.FileURL(), ref: "none", path: "s"}, {repository: repo.FileURL(), path: "none"},
		{repository: repo.FileURL() + "x", path: "s"}, {repository: repo.FileURL(), path: "s", maxSize: 1}} {
		if _, err := read(t, r, p); err == nil { // read looks at the disk
			t.Errorf("%+v: no error", p)
		}
	}
}

func TestMissingSaysWhetherCredentialsWereSent(t *testing.T) {
	t.Parallel()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{})
	for _, sent := range []bool{false, true} {
		block := vars{"url": server.Origin}
		if sent {
			block = with(block, vars{"username": "u", "password": "p"})
		}
		_, err := read(t, newTestRun(t, nil, block), place{repository: server.URL, path: "none"})
		if m, ok := source.IsMissing(err); !ok || m.CredentialsSent != sent {
			t.Errorf("%v, CredentialsSent is not %v", err, sent)
		}
	}
}

// TestAdvice: what git 2.31 to 2.51 print, in the C locale.
func TestAdvice(t *testing.T) {
	where, err := parseRepository("https://git.example.com/a")
	if err != nil {
		t.Fatal(err)
	}
	says := openMistakes(t, "messages of git")
	for _, said := range []string{
		"fatal: couldn't find remote ref refs/tags/x",
		"fatal: could not read Username for 'https://git.example.com': terminal prompts disabled",
		"fatal: unable to get password from user",
		"fatal: Authentication failed for 'https://git.example.com/a/'",
		"fatal: unable to access 'https://git.example.com/a/': The requested URL returned error: 403",
		"remote: Repository not found.\nfatal: repository 'https://git.example.com/a/' not found",
		"fatal: '/x' does not appear to be a git repository\nfatal: Could not read from remote repository.",
		"Host key verification failed.\nfatal: Could not read from remote repository.",
		"git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.",
		"fatal: unable to access 'https://git.example.com/a/': Could not resolve host: git.example.com",
		"fatal: unable to access 'https://git.example.com/a/': " +
			"Failed to connect to git.example.com port 443 after 0 ms: Couldn't connect",
		"ssh: connect to host h port 22: Connection refused",
		"fatal: unable to access 'https://git.example.com/a/': " +
			"server certificate verification failed. CAfile: none CRLfile: none",
		"fatal: unable to access 'https://git.example.com/a/': " +
			"SSL certificate problem: unable to get local issuer certificate",
		"fatal: transport 'file' not allowed",
		"fatal: unable to access 'https://git.example.com/a/': " +
			"Protocol \"http\" not supported or disabled in libcurl",
		"fatal: unable to access 'https://git.example.com/a/': " +
			"Protocol \"http\" disabled in redirect",
		"error: RPC failed; curl 28 Operation too slow. Less than 1000 bytes/sec transferred the last 30 seconds",
		"fatal: early EOF\nfatal: fetch-pack: invalid index-pack output",
		"fatal: detected dubious ownership in repository at '/x'",
		"fatal: strange hostname '-x' blocked",
		"fatal: mismatched algorithms: client sha1; server sha256",
		"error: Server does not allow request for unadvertised object 00",
		"fatal: remote error: upload-pack: not our ref 00",
		"fatal: unable to access 'https://x/': gnutls_handshake() failed: An unexpected TLS packet was received.",
		"fatal: unable to access 'https://x/': error:0A00010B:SSL routines::wrong version number",
		"fatal: unable to access 'https://x/': gnutls_handshake() failed: The TLS connection was non-properly terminated.",
		"fatal: unable to access 'https://x/': OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to x:443 ",
		"fatal: unable to access 'https://x/': TLS connect error: error:0A000126:SSL routines::unexpected eof while reading",
		"FATAL: R any infra ci DENIED by fallthru\n(or you mis-spelled the reponame)\nfatal: Could not read from remote repository.",
		"ERROR: Permission to acme/infra.git denied to ci.\nfatal: Could not read from remote repository.",
		"remote: ERROR: You are not allowed to push code to this project.\nfatal: Could not read from remote repository.",
		"Gitea: User: 1:ci with Key: 1:k is not authorized to write to acme/infra.\nfatal: Could not read from remote repository.",
		"fatal: dumb http transport does not support shallow capabilities",
		"fatal: something new",
	} {
		d := &repository{run: &run{}, remote: where, access: &access{}}
		err := d.explain(&commandError{said: said, err: errors.New("exit status 128")}, ref{name: "x"})
		mustFail(t, err, outside.End(said, 40)[3:])
		says.Error(t, strings.ReplaceAll(said, "\n", "; "), err)
		if asks := strings.Contains(said, "Username") || strings.Contains(said, "from user"); asks && !IsRejected(err) {
			t.Errorf("%s: this is not taken for a matter of credentials", said)
		}
		if lacks := strings.Contains(said, " ci"); lacks && (!IsDenied(err) || IsRejected(err)) {
			t.Errorf("%s: this is not taken for a matter of rights", said)
		}
	}
}

func TestWhatGitSaidIsSafe(t *testing.T) {
	where, err := parseRepository("https://git.example.com/a")
	if err != nil {
		t.Fatal(err)
	}
	a := &access{username: "u", password: canary + "/%"}
	said := strings.Repeat("remote: \x1b[2J\u202e\xff"+canary+"/% "+a.basic()+" "+canary+"%2F%25 ", 100) + "\nfatal: the end"
	text := (&repository{remote: where, access: a}).explain(&commandError{said: said, err: errors.New("x")}, ref{}).Error()
	mustNotHold(t, "the error", text, canary, a.basic(), "\x1b", "\u202e", "\xff", "\n")
	if !strings.HasSuffix(text, `; fatal: the end`) || len(text) > 4096 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
