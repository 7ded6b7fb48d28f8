// Package wraptest provides keys, states and servers for the tests of wrap.
package wraptest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

const (
	Canary = "c4n4ry"

	Keys = `
key_provider "static" "k" { key = "6f6f706830656f67686f6834616872756f3751756165686565796f6f72653169" }
method "aes_gcm" "m" { keys = key_provider.static.k }
method "unencrypted" "u" {}
`
	Sealing   = Keys + "state { method = method.aes_gcm.m }"
	Migrating = Keys + "state {\nmethod = method.aes_gcm.m\nfallback { method = method.unencrypted.u }\n}"

	State = `{"version":4,"terraform_version":"1.11.4","serial":1,"lineage":"l","outputs":{},"resources":[]}`
	Other = `{"version":4,"terraform_version":"1.11.4","serial":1,"lineage":"other","outputs":{},"resources":[]}`
)

func Target(t *testing.T, text string) encryption.Target {
	t.Helper()
	return Settings(t, text).State()
}

func Settings(t *testing.T, text string) *encryption.Encryption {
	t.Helper()
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(text, "test.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

func Sealed(t *testing.T, plain string) []byte {
	t.Helper()
	file, err := Target(t, Sealing).Encrypt(context.Background(), []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Said collects the messages shown to the user.
type Said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *Said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// Take returns the messages since the last call.
func (s *Said) Take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.text.String()
	s.text.Reset()
	return text
}

// EnvironOf returns environment variables that configure a backend at the URL.
func EnvironOf(url string) []string {
	return []string{
		"STATECRYPT_HTTP_ADDRESS=" + url + "/s?team=a", "STATECRYPT_HTTP_LOCK_ADDRESS=" + url + "/l",
		"STATECRYPT_HTTP_UNLOCK_ADDRESS=" + url + "/l",
		"STATECRYPT_HTTP_USERNAME=ci", "STATECRYPT_HTTP_PASSWORD=" + Canary,
	}
}

// Request is a request received by a backend.
type Request struct {
	Method, Uri, Body string
	Header            http.Header
}

// Upstream starts a backend whose handler is answer, which a test may replace at any time. It also returns the last
// request that was not a GET or, before any such request, the last GET.
func Upstream(t *testing.T, answer *http.HandlerFunc) (url string, last *Request) {
	t.Helper()
	last = &Request{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodGet || last.Method == "" || last.Method == http.MethodGet { // a GET does not replace a recorded change
			*last = Request{r.Method, r.URL.RequestURI(), string(body), r.Header}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		(*answer)(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, last
}

// Keeping returns a handler that stores the last state it received. At first it has the given state, or none if that
// is an empty string.
func Keeping(state string, code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.Method {
		case http.MethodGet:
			_, _ = io.WriteString(w, state)
		case http.MethodPost, http.MethodPut, http.MethodDelete:
			state = string(body)
			w.WriteHeader(code)
		}
	}
}

func Status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// Mistakes compares messages with the golden file testdata/mistakes.txt.
type Mistakes struct{ *testkit.Golden }

// OpenMistakes opens a group of messages in the golden file.
func OpenMistakes(t *testing.T, group string) Mistakes {
	t.Helper()
	secrets := []string{Canary, "6f6f706830656f67686f6834616872756f3751756165686565796f6f72653169", "hunter2"}
	path := filepath.Join("testdata", "mistakes.txt")
	if _, err := os.Stat(path); err != nil { // the test's package is below the wrap folder
		path = filepath.Join("..", path)
	}
	return Mistakes{testkit.OpenGolden(t, path, group, secrets...)}
}

// Said compares the messages that wrap printed with the golden file, which says "nothing" if there are none.
func (m Mistakes) Said(t *testing.T, name, text string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	text = ofTest.ReplaceAllString(strings.ReplaceAll(text, here, "/here"), "/folder")
	text = ofModule.ReplaceAllString(text, "/statecrypt/MODULE")
	text = heldLock.ReplaceAllString(loopback.ReplaceAllString(text, "127.0.0.1:PORT"), "the lock ID")
	m.Check(t, name, cmp.Or(text, "nothing"))
}

// Shown returns the text of an error as the command shows it.
func Shown(err error) string { return words.Command{Name: "wrap"}.Text(err) }

// Failed compares the printed messages and the error, if any, with the golden file.
func (m Mistakes) Failed(t *testing.T, name, said string, err error) {
	t.Helper()
	if err != nil {
		said += fmt.Sprintf("error: %s\n", Shown(err))
	}
	m.Said(t, name, said)
}

// Ended compares the printed messages, the error and the exit code of a run with the golden file.
func (m Mistakes) Ended(t *testing.T, name, said string, code int, err error) {
	t.Helper()
	if err != nil {
		said += fmt.Sprintf("error: %s\n", Shown(err))
	}
	m.Said(t, name, fmt.Sprintf("%sexit code %d", said, code))
}

// These patterns match text that differs between runs: test folders, data directories named after them, server ports,
// and lock IDs.
var (
	ofTest   = lazyregexp.New(regexp.QuoteMeta(filepath.Join(os.TempDir(), "Test")) + `[^/]*/\d+`)
	loopback = lazyregexp.New(`127\.0\.0\.1:\d\d+`)
	ofModule = lazyregexp.New(`/statecrypt/[0-9a-f]{16}\b`)
	heldLock = lazyregexp.New(`the lock [0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
)
