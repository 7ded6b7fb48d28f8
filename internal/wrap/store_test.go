package wrap_test

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // what the protocol wants
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	modules "github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

const canary = "c4n4ry"

// store is a server that works with Terraform's http backend, and locks. It
// stores only what arrived in full, with the right checksum, from the holder of
// the lock.
type store struct {
	url string

	mu      sync.Mutex
	state   []byte
	lock    []byte
	history [][]byte // everything that was ever stored
	seen    []string // method, path and query of each request
	before  func(w http.ResponseWriter, r *http.Request) (done bool)
}

const password = "password-" + canary

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	before := s.before
	s.seen = append(s.seen, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	if _, given, _ := r.BasicAuth(); given != password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if before != nil && before(w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	want := "" // of nothing, Terraform sends no checksum
	if len(body) > 0 {
		want = sum(body)
	}
	if err != nil || r.Header.Get("Content-MD5") != want {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Method {
	case http.MethodGet:
		if s.state == nil {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(s.state)
	case http.MethodPost:
		if s.lock != nil && id(s.lock) != r.URL.Query().Get("ID") {
			w.WriteHeader(http.StatusConflict)
			return
		}
		s.state = body
		s.history = append(s.history, body)
	case http.MethodDelete:
		s.state = nil
	case "LOCK":
		if s.lock != nil {
			w.WriteHeader(http.StatusLocked)
			_, _ = w.Write(s.lock)
			return
		}
		s.lock = body
	case "UNLOCK":
		s.lock = nil
	}
}

func sum(body []byte) string {
	digest := md5.Sum(body) //nolint:gosec // what the protocol wants
	return base64.StdEncoding.EncodeToString(digest[:])
}

func id(lock []byte) string {
	var info struct{ ID string }
	_ = json.Unmarshal(lock, &info) // "" then
	return info.ID
}

// stored is what is there now.
func (s *store) stored() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.state)
}

func (s *store) put(state []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

func (s *store) hold(lock []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lock = lock
}

// held is the lock, nil if nobody has it.
func (s *store) held() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lock
}

func (s *store) intercept(before func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// requests returns what was asked since the last call.
func (s *store) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// checkSealed looks at everything that was ever stored.
func (s *store) checkSealed(t *testing.T, plain string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, file := range s.history {
		if info, err := encryption.Inspect(file); err != nil || info.Kind != encryption.KindEncrypted || bytes.Contains(file, []byte(plain)) {
			t.Errorf("this was stored: %.300s", file)
		}
	}
	if len(s.history) == 0 {
		t.Error("nothing was stored: this test shows nothing")
	}
}

// environ describes the store.
func (s *store) environ() []string {
	return []string{
		"STATECRYPT_HTTP_ADDRESS=" + s.url + "/s?team=a", "STATECRYPT_HTTP_LOCK_ADDRESS=" + s.url + "/s/lock",
		"STATECRYPT_HTTP_UNLOCK_ADDRESS=" + s.url + "/s/lock",
		"STATECRYPT_HTTP_USERNAME=ci", "STATECRYPT_HTTP_PASSWORD=" + password, "STATECRYPT_HTTP_RETRY_MAX=0",
	}
}

// terraform describes the store to Terraform itself.
func (s *store) terraform() []string {
	variables := s.environ()
	for i, v := range variables {
		variables[i] = strings.Replace(v, "STATECRYPT_", "TF_", 1)
	}
	return variables
}

// The settings are those of the tests in the package itself.
const (
	keys      = wraptest.Keys
	sealing   = wraptest.Sealing
	migrating = wraptest.Migrating
	state     = wraptest.State
)

// own is the data directory of the child, as seen from the module.
func own(folder string) string {
	dir, _ := filepath.EvalSymlinks(folder)
	return (&modules.Module{Dir: dir}).OwnData()
}

func target(t *testing.T, text string) encryption.Target {
	t.Helper()
	return wraptest.Target(t, text)
}

func seal(t *testing.T, text, plain string) []byte {
	t.Helper()
	file, err := target(t, text).Encrypt(context.Background(), []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// lines is a writer that may be shared.
type lines struct {
	mu    sync.Mutex
	text  bytes.Buffer
	got   chan struct{} // closed when there is awaited
	await string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.text.Write(p)
	if l.got != nil && l.await != "" && bytes.Contains(l.text.Bytes(), []byte(l.await)) {
		close(l.got)
		l.await = ""
	}
	return n, err
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// expect returns a channel that is closed once text has been written.
func (l *lines) expect(text string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got, l.await = make(chan struct{}), text
	return l.got
}

func count(requests []string, prefix string) int {
	return len(slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return len(r) < len(prefix) || r[:len(prefix)] != prefix }))
}
