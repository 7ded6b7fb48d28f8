package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// gitRow reads one file of 300 from a repository behind http: beside a clone of
// depth 1, as terraform-backend-git makes one.
func (b *bench) gitRow() ([]line, error) {
	repo := b.path("repo")
	if err := b.makeRepository(repo); err != nil {
		return nil, err
	}
	server, err := serve(b.dir)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	url := "http://" + server.address + "/repo/.git"
	here, err := b.terraformPlan("git here", plaintext+fmt.Sprintf("data \"statecrypt_remote_state\" \"s\" {\n  git {\n    repository = "+
		"%q\n    path       = \"s150.tfstate\"\n  }\n}\n", url))
	if err != nil {
		return nil, err
	}
	here.env = append(here.env, "GIT_CONFIG_NOSYSTEM=1")
	idlePlan, err := b.terraformPlan("git idle", plaintext+idle)
	if err != nil {
		return nil, err
	}
	peer := b.role("clone", url, "s150.tfstate")
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
		{name: "one file of 300 in git: beside a clone with go-git, bytes", here: fmt.Sprint(hereBytes), peer: fmt.Sprint(peerBytes),
			ratio: float64(hereBytes) / float64(peerBytes), most: 0.1},
		cpu("the same", m[0], m[1], m[2], m[3], 0),
	}, nil
}

func (b *bench) makeRepository(dir string) error {
	git := func(args ...string) error {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=bench", "-c", "user.email=bench@example.invalid"}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.path("home"), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := git("init", "-q", "-b", "main"); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2)) // files that do not compress, as encrypted ones
	for i := range 300 {
		value := make([]byte, 20_000)
		for j := range value {
			value[j] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"[random.IntN(64)]
		}
		file := state(fmt.Sprintf(`"x":{"value":%q,"type":"string"}`, value), 0)
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

// gitServer is git's own server program behind http.
type gitServer struct {
	http.Server
	address string
	bytes   atomic.Int64 // sent
}

func serve(dir string) (*gitServer, error) {
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
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler := *backend
		handler.Env = append(handler.Env, "GIT_PROTOCOL="+r.Header.Get("Git-Protocol"))
		handler.ServeHTTP(&countingWriter{w, &s.bytes}, r)
	})
	go func() { _ = s.Serve(listener) }()
	return s, nil
}

type countingWriter struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.bytes.Add(int64(len(p)))
	return w.ResponseWriter.Write(p)
}
