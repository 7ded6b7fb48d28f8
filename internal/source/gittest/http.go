package gittest

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// HTTPOptions say how a server behaves.
type HTTPOptions struct {
	Username, Password string // required Basic auth; none if both are empty
	TLS                bool
	ProtocolV0         bool // ignore the client's request for protocol v2

	// Before, if not nil, is called first for each request, after the request was recorded. It returns true
	// if it has sent a response.
	Before func(http.ResponseWriter, *http.Request) bool

	// Wrap, if not nil, wraps the response writer, so that tests can damage responses.
	Wrap func(http.ResponseWriter, *http.Request) http.ResponseWriter

	// Lost says how the server treats a push that has lost a race. By default, it refuses the push, as git
	// does.
	Lost Lost

	IPv6 bool // listen on [::1]; the test is skipped if that is not possible
}

// Request is one request that the server received.
type Request struct {
	Method, Path  string
	Authorization string
}

// HTTPServer serves one repository at every path. The part of the path before /info/refs or /git-upload-pack
// is ignored.
type HTTPServer struct {
	URL    string // http://127.0.0.1:12345/acme/infra.git
	Origin string // http://127.0.0.1:12345
	CAFile string // path of a PEM file; "" without TLS

	down atomic.Int64
	log  nettest.Log[Request]
}

// HTTP starts a server. It skips the test if git http-backend is not installed.
func HTTP(tb testing.TB, repo *Repo, opts HTTPOptions) *HTTPServer {
	tb.Helper()
	backend := httpBackend(tb)
	s := &HTTPServer{}
	server := nettest.Unstarted(tb, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.log.Note(Request{Method: r.Method, Path: r.URL.Path, Authorization: r.Header.Get("Authorization")})
		w = &counted{ResponseWriter: w, n: &s.down}
		if opts.Before != nil && opts.Before(w, r) {
			return
		}
		if user, password, _ := r.BasicAuth(); opts.Username+opts.Password != "" && (user != opts.Username || password != opts.Password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if opts.Wrap != nil {
			w = opts.Wrap(w, r)
		}
		if repo.lies(w, r, opts.Lost) {
			return
		}
		repo.serveCGI(backend, opts.ProtocolV0, w, r)
	}))
	if opts.IPv6 {
		listener, err := net.Listen("tcp6", "[::1]:0")
		if err != nil {
			tb.Skipf("no IPv6 here: %v", err)
		}
		server.Listener.Close()
		server.Listener = listener
	}
	if opts.TLS {
		server.StartTLS()
		s.CAFile = filepath.Join(tb.TempDir(), "ca.pem")
		writeFile(tb, s.CAFile, []byte(nettest.PEM(server.Certificate())))
	} else {
		server.Start()
	}
	s.Origin = server.URL
	s.URL = server.URL + "/acme/infra.git"
	return s
}

func httpBackend(tb testing.TB) string {
	tb.Helper()
	needGit(tb)
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		tb.Skipf("git --exec-path: %v", err)
	}
	for _, name := range []string{"git-http-backend", "git-http-backend.exe"} {
		path := filepath.Join(strings.TrimSpace(string(out)), name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	tb.Skip("git http-backend is not installed")
	return ""
}

func (r *Repo) serveCGI(backend string, v0 bool, w http.ResponseWriter, req *http.Request) {
	protocol := ""
	if !v0 {
		protocol = req.Header.Get("Git-Protocol")
	}
	req = req.Clone(req.Context())
	for _, service := range []string{"/info/refs", "/git-upload-pack", "/git-receive-pack"} {
		if strings.HasSuffix(req.URL.Path, service) {
			req.URL.Path = "/" + filepath.Base(r.Dir) + service
		}
	}
	h := &cgi.Handler{
		Path: backend,
		Dir:  filepath.Dir(r.Dir),
		Env: append(isolated(r.home), "GIT_PROJECT_ROOT="+filepath.Dir(r.Dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_PROTOCOL="+protocol,
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"),
		InheritEnv: []string{"PATH"},
		Logger:     log.New(io.Discard, "", 0),
		Stderr:     io.Discard,
	}
	h.ServeHTTP(w, req)
}

// Requests returns the requests that arrived since the start or the last Reset.
func (s *HTTPServer) Requests() []Request { return s.log.All() }

// Authorizations returns the Authorization headers that arrived.
func (s *HTTPServer) Authorizations() []string {
	var out []string
	for _, r := range s.Requests() {
		if r.Authorization != "" {
			out = append(out, r.Authorization)
		}
	}
	return out
}

// BytesDown returns the total size of all response bodies.
func (s *HTTPServer) BytesDown() int64 { return s.down.Load() }

// Reset clears the recorded requests and the byte count.
func (s *HTTPServer) Reset() {
	s.log.Requests()
	s.down.Store(0)
}

// RedirectTo returns a function for Before that redirects a request to the URL that base returns. It does not
// redirect the request if base returns an empty string.
func RedirectTo(status int, base func(*http.Request) string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		to := base(r)
		if to == "" {
			return false
		}
		http.Redirect(w, r, to, status)
		return true
	}
}

// Stall sends no response until the client disconnects.
func Stall(w http.ResponseWriter, r *http.Request) bool {
	_, _ = io.Copy(io.Discard, r.Body) // a disconnected client is only noticed after the body was read
	<-r.Context().Done()
	return true
}

type counted struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n.Add(int64(n))
	return n, err
}
