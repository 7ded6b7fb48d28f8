package main

import (
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// gitRow reads one file of 300 from a repository over HTTP. It compares this with a clone of depth 1, as
// terraform-backend-git makes it.
func (b *bench) gitRow() ([]line, error) {
	repo := b.path("repo")
	if err := b.makeRepository(repo); err != nil {
		return nil, err
	}
	return b.readFromGit("one file of 300 in git: beside a clone with go-git", "repo/.git", "s150.tfstate", 0, 0.1,
		func(url string) command { return b.role("clone", url, "s150.tfstate") })
}

// foldersRow reads one file of 200,000, each in its own folder, over a connection of 100 Mbit/s. It compares this with
// a partial git clone without any files.
func (b *bench) foldersRow() ([]line, error) {
	if err := b.makeFolders(b.path("folders.git")); err != nil {
		return nil, err
	}
	const name = "one file of 200,000 in git, in as many folders, over 100 Mbit/s: beside a partial clone with git"
	return b.readFromGit(name, "folders.git", folderPath(150), 12_500_000, 0.05, b.partialClone)
}

func (b *bench) partialClone(url string) command {
	return command{name: "clone", dir: b.dir, env: []string{"GIT_CONFIG_NOSYSTEM=1"}, args: []string{"sh", "-c",
		`rm -rf "$2" && exec git clone -q --bare --depth=1 --filter=blob:none "$1" "$2"`, "sh", url, b.path("clone.git")}}
}

// cycleRow locks, reads, writes, reads back and unlocks one state in git. For a repository with 1,000 states, it
// compares this with a go-git clone, as terraform-backend-git makes it. For a repository with 200,000 states, each in
// its own folder, it compares this with a partial clone without any files.
func (b *bench) cycleRow() ([]line, error) {
	random := rand.New(rand.NewPCG(1, 2))
	content := func(i int) []byte { return numbered(i, letters(random, 5000)) }
	if err := b.makeStates(b.path("thousand.git"), 1000, flatPath, content); err != nil {
		return nil, err
	}
	if _, err := os.Stat(b.path("folders.git")); err != nil {
		if err := b.makeFolders(b.path("folders.git")); err != nil {
			return nil, err
		}
	}
	thousand, err := b.cycle("rotate -backend of one state of 1,000 in git: beside a clone with go-git", "thousand.git", "s150.tfstate", 0.1,
		func(url string) command { return b.role("clone", url, "s151.tfstate") })
	if err != nil {
		return nil, err
	}
	many, err := b.cycle("the same of 200,000, in as many folders, over 100 Mbit/s: beside a partial clone with git", "folders.git",
		folderPath(151), 0.1, b.partialClone)
	return append(thousand, many...), err
}

// cycle counts the bytes and requests that rotate -backend transfers.
func (b *bench) cycle(name, repository, path string, most float64, peerOf func(url string) command) ([]line, error) {
	if err := b.git(b.path(repository), "", "config", "http.receivepack", "true"); err != nil {
		return nil, err
	}
	server, err := serve(b.dir, 12_500_000)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	url, dir := "http://"+server.address+"/"+repository, b.path("cycle_"+repository)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	backend := fmt.Sprintf("backend \"git\" {\n  repository = %q\n  ref = \"main\"\n  path = %q\n}\n", url, path)
	for file, text := range map[string]string{
		"old.hcl": "method \"unencrypted\" \"u\" {}\nstate { method = method.unencrypted.u }\n",
		"new.hcl": "key_provider \"pbkdf2\" \"p\" {\n  passphrase = \"" + passphrase + "\"\n}\n" +
			"method \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.p }\nstate { method = method.aes_gcm.m }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(backend+text), 0o600); err != nil {
			return nil, err
		}
	}
	transferred := func(c command) (bytes, requests int64, err error) {
		bytes, requests = server.bytes.Load(), server.requests.Load()
		_, err = b.run(c)
		return server.bytes.Load() - bytes, server.requests.Load() - requests, err
	}
	here, hereRequests, err := transferred(command{name: "rotate", dir: dir, env: []string{"GIT_CONFIG_NOSYSTEM=1"},
		args: []string{b.path("statecrypt"), "rotate", "-from", "old.hcl", "-to", "new.hcl", "-backend"}})
	if err != nil {
		return nil, err
	}
	peer, peerRequests, err := transferred(peerOf(url))
	if err != nil {
		return nil, err
	}
	return []line{
		{name: name + ", bytes", here: fmt.Sprint(here), peer: fmt.Sprint(peer), ratio: float64(here) / float64(peer), most: most},
		{name: "the same, requests", here: fmt.Sprint(hereRequests), peer: fmt.Sprint(peerRequests),
			ratio: float64(hereRequests) / float64(peerRequests)},
	}, nil
}

// readFromGit reads one file from a repository over HTTP, and has the peer read it too. The speed is in bytes per
// second; 0 means no limit.
func (b *bench) readFromGit(name, repository, path string, speed int, most float64, peerOf func(url string) command) ([]line, error) {
	server, err := serve(b.dir, speed)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	url := "http://" + server.address + "/" + repository
	here, err := b.terraformPlan("git here", plaintext+fmt.Sprintf("data \"statecrypt_remote_state\" \"s\" {\n  git {\n    repository = "+
		"%q\n    path       = %q\n  }\n}\n", url, path))
	if err != nil {
		return nil, err
	}
	here.env = append(here.env, "GIT_CONFIG_NOSYSTEM=1")
	idlePlan, err := b.terraformPlan("git idle", plaintext+idle)
	if err != nil {
		return nil, err
	}
	peer := peerOf(url)
	bytes := func(c command) (int64, error) {
		before := server.bytes.Load()
		_, err := b.run(c)
		return server.bytes.Load() - before, err
	}
	hereBytes, err := bytes(here)
	if err != nil {
		return nil, err
	}
	peerBytes, err := bytes(peer)
	if err != nil {
		return nil, err
	}
	m, err := b.compare(here, idlePlan, peer, b.role("nothing"))
	if err != nil {
		return nil, err
	}
	return []line{
		{name: name + ", bytes", here: fmt.Sprint(hereBytes), peer: fmt.Sprint(peerBytes),
			ratio: float64(hereBytes) / float64(peerBytes), most: most},
		cpu("the same", m[0], m[1], m[2], m[3], 0),
	}, nil
}

func folderPath(i int) string {
	return fmt.Sprintf("d%02d/e%02d/f%02d/s.tfstate", i/3600, i/60%60, i%60)
}

func flatPath(i int) string { return fmt.Sprintf("s%d.tfstate", i) }

// makeFolders creates a bare repository with 200,000 states, each in its own folder, on three levels.
func (b *bench) makeFolders(dir string) error {
	return b.makeStates(dir, 200_000, folderPath, func(i int) []byte { return numbered(i, nil) })
}

// numbered returns a state with an output of its own.
func numbered(i int, rest []byte) []byte {
	return state(fmt.Sprintf(`"x":{"value":"%d%s","type":"string"}`, i, rest), 0)
}

// makeStates creates a bare repository with n files.
func (b *bench) makeStates(dir string, n int, pathOf func(int) string, content func(int) []byte) error {
	var commit strings.Builder
	commit.WriteString("commit refs/heads/main\ncommitter bench <bench@example.invalid> 1700000000 +0000\ndata 1\nx\n")
	for i := range n {
		file := content(i)
		fmt.Fprintf(&commit, "M 100644 inline %s\ndata %d\n%s\n", pathOf(i), len(file), file)
	}
	if err := b.git(b.dir, "", "init", "-q", "--bare", "-b", "main", dir); err != nil {
		return err
	}
	if err := b.git(dir, commit.String(), "fast-import", "--quiet"); err != nil {
		return err
	}
	return b.git(dir, "", "config", "uploadpack.allowFilter", "true")
}

// letters returns n random letters, which hardly compress, like encrypted data.
func letters(random *rand.Rand, n int) []byte {
	text := make([]byte, n)
	for i := range text {
		text[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"[random.IntN(64)]
	}
	return text
}

// git runs git in a folder, without the user's settings.
func (b *bench) git(dir, stdin string, args ...string) error {
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=bench", "-c", "user.email=bench@example.invalid"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.path("home"), "GIT_CONFIG_NOSYSTEM=1"}
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
	}
	return nil
}

func (b *bench) makeRepository(dir string) error {
	git := func(args ...string) error { return b.git(dir, "", args...) }
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := git("init", "-q", "-b", "main"); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		file := state(fmt.Sprintf(`"x":{"value":%q,"type":"string"}`, letters(random, 20_000)), 0)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("s%d.tfstate", i)), file, 0o600); err != nil {
			return err
		}
	}
	if err := git("add", "."); err != nil {
		return err
	}
	if err := git("commit", "-q", "-m", "states"); err != nil {
		return err
	}
	return git("config", "uploadpack.allowFilter", "true")
}

// gitServer serves git's own server program over HTTP.
type gitServer struct {
	http.Server
	address string
	bytes   atomic.Int64 // bytes sent

	requests atomic.Int64
}

// serve starts a server that sends at most speed bytes per second; 0 means no limit.
func serve(dir string, speed int) (*gitServer, error) {
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &gitServer{address: listener.Addr().String()}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory",
			"GIT_CONFIG_VALUE_0=*"},
		Logger: log.New(io.Discard, "", 0), // discards messages about clients that disconnect early
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		handler := *backend
		handler.Env = append(handler.Env, "GIT_PROTOCOL="+r.Header.Get("Git-Protocol"))
		handler.ServeHTTP(&countingWriter{w, &s.bytes, speed}, r)
	})
	go func() { _ = s.Serve(listener) }()
	return s, nil
}

type countingWriter struct {
	http.ResponseWriter
	bytes *atomic.Int64
	speed int
}

func (w *countingWriter) Write(p []byte) (int, error) {
	if w.speed > 0 {
		time.Sleep(time.Duration(len(p)) * time.Second / time.Duration(w.speed))
	}
	w.bytes.Add(int64(len(p)))
	return w.ResponseWriter.Write(p)
}
