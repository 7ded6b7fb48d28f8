package httpsource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// canary is in every secret of these tests.
const canary = "c4n4ry"

type attrs = map[string]cty.Value

// reading is one configuration: what the module, the root and the environment
// say.
type reading struct {
	source attrs
	blocks []attrs
	env    map[string]string
	limit  int64
}

// at reads from address without waiting between tries.
func at(address string, blocks ...attrs) reading {
	return reading{
		source: attrs{
			"address":        cty.StringVal(address),
			"retry_wait_min": cty.NumberIntVal(0),
			"retry_wait_max": cty.NumberIntVal(0),
		},
		blocks: blocks,
		limit:  1 << 20,
	}
}

func (r reading) with(name string, v cty.Value) reading {
	r.source[name] = v
	return r
}

func (r reading) settings() source.Settings {
	s := source.Settings{Credentials: source.Credentials{Table: credentials()}}
	for i, b := range r.blocks {
		s.Credentials.Entries = append(s.Credentials.Entries, unstable.NewEntry(fmt.Sprintf("credentials.http[%d]", i), credentials(), b))
	}
	if r.env != nil {
		s.LookupEnv = func(name string) (string, bool) { v, ok := r.env[name]; return v, ok }
	}
	s.Credentials.Env = s.LookupEnv
	return s
}

func (r reading) open() (source.Source, error) { return r.openIn(Kind().Start(r.settings())) }

func (r reading) openIn(open source.Open) (source.Source, error) {
	values, err := unstable.NewEntry("data.x.y", table(), r.source).Decode(table(), r.settings().LookupEnv)
	if err != nil {
		return nil, err
	}
	return open(source.Request{Values: values, Workspace: "default", MaxSize: r.limit})
}

// fetch reads, and makes sure that no error shows a secret.
func (r reading) fetch(t *testing.T) (*source.Snapshot, error) {
	t.Helper()
	s, err := r.open()
	if err != nil {
		checkNoCanary(t, err.Error())
		return nil, err
	}
	checkNoCanary(t, s.String())
	snap, err := s.Fetch(t.Context())
	for e := err; e != nil; e = errors.Unwrap(e) {
		checkNoCanary(t, e.Error())
	}
	return snap, err
}

func (r reading) want(t *testing.T, data string) *source.Snapshot {
	t.Helper()
	snap, err := r.fetch(t)
	if err != nil {
		t.Fatal(err)
	}
	if string(snap.Data) != data {
		t.Fatalf("got %q, want %q", snap.Data, data)
	}
	return snap
}

func (r reading) wantError(t *testing.T, parts ...string) error {
	t.Helper()
	snap, err := r.fetch(t)
	if err == nil {
		t.Fatalf("got %q, want an error with %q", snap.Data, parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got the error %q, want %q in it", err, part)
		}
	}
	return err
}

// says compares the error of a read with the golden, and returns it.
func (r reading) says(t *testing.T, golden *testkit.Golden, name string) error {
	t.Helper()
	err := r.wantError(t)
	golden.Error(t, name, err)
	return err
}

func checkNoCanary(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, canary) {
		t.Errorf("a secret is in %q", text)
	}
}

// recorder is a server that remembers what it was asked.
type recorder struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
}

func (r *recorder) handler(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.requests = append(r.requests, req.Clone(context.Background()))
		r.mu.Unlock()
		h(w, req)
	})
}

func serve(t *testing.T, h http.HandlerFunc) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(r.handler(h))
	t.Cleanup(r.Close)
	return r
}

func serveTLS(t *testing.T, h http.HandlerFunc) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewUnstartedServer(r.handler(h))
	r.Config.ErrorLog = quiet()
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) seen() []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

func (r *recorder) wantRequests(t *testing.T, n int) {
	t.Helper()
	if got := len(r.seen()); got != n {
		t.Errorf("the server saw %d requests, want %d", got, n)
	}
}

// wantNoSecret looks at everything that a request can carry.
func (r *recorder) wantNoSecret(t *testing.T) {
	t.Helper()
	for _, req := range r.seen() {
		if text := dump(req); strings.Contains(text, canary) {
			t.Errorf("the server got a secret: %s", text)
		}
		if req.TLS != nil && len(req.TLS.PeerCertificates) > 0 {
			t.Errorf("the server got a client certificate for %s", req.URL)
		}
	}
}

func dump(req *http.Request) string {
	user, password, _ := req.BasicAuth()
	query, _ := url.QueryUnescape(req.URL.RawQuery)
	return fmt.Sprint(req.Method, req.RequestURI, query, req.Header, user, password)
}

func (r *recorder) ca() cty.Value {
	return cty.StringVal(nettest.PEM(r.Certificate()))
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("state")) }

func block(u string, more ...attrs) attrs {
	b := attrs{"url": cty.StringVal(u)}
	for _, m := range more {
		for name, v := range m {
			b[name] = v
		}
	}
	return b
}

// everything is a secret of each sort but a certificate.
func everything() attrs {
	return attrs{
		"username": cty.StringVal("user-" + canary),
		"password": cty.StringVal("password-" + canary),
		"headers":  secretMap("Private-Token"),
		"query":    secretMap("sig"),
	}
}

func secretMap(name string) cty.Value {
	return cty.MapVal(attrs{name: cty.StringVal(name + "=" + canary)})
}

// Promise: Reading changes nothing (the suite of every source)
func TestHTTP(t *testing.T) {
	place := func(address string) sourcetest.Place {
		r := at(address, block(address, everything()))
		return sourcetest.Place{Attrs: r.source, Settings: r.settings(), Secrets: []string{canary}}
	}
	answer := func(h http.HandlerFunc) func(*testing.T) sourcetest.Place {
		return func(t *testing.T) sourcetest.Place { return place(serve(t, h).URL + "/state") }
	}
	sourcetest.Run(t, sourcetest.Harness{
		EmptyIsNone: true,
		Kind:        Kind(),
		Place: func(t *testing.T, data []byte) sourcetest.Place {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if data == nil {
					w.WriteHeader(http.StatusNotFound)
				}
				w.Header().Set("ETag", `"1"`)
				_, _ = w.Write(data)
			})
			p := place(s.URL + "/state")
			p.Changed = func() error {
				for _, req := range s.seen() {
					if req.Method != http.MethodGet {
						return errors.New(req.Method)
					}
				}
				return nil
			}
			return p
		},
		Bad: map[string]func(*testing.T) sourcetest.Place{
			"401": answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }),
			"500": answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }),
			"an echo": answer(func(w http.ResponseWriter, req *http.Request) {
				w.WriteHeader(400)
				_, _ = w.Write([]byte(dump(req)))
			}),
			"an echo that is not HTTP": answer(func(w http.ResponseWriter, req *http.Request) { hijack(w, dump(req)+"\r\n\r\n") }),
			"an echo in the status": answer(func(w http.ResponseWriter, req *http.Request) {
				hijack(w, "HTTP/1.1 418 "+dump(req)+"\r\n\r\n")
			}),
			"an echo in a header": answer(func(w http.ResponseWriter, req *http.Request) {
				hijack(w, "HTTP/1.1 200 OK\r\n"+dump(req)+"\r\n\r\n")
			}),
			"a redirect to an echo": answer(func(w http.ResponseWriter, req *http.Request) {
				hijack(w, "HTTP/1.1 302 Found\r\nLocation: http://"+dump(req)+"\r\n\r\n")
			}),
			"nobody listens": func(t *testing.T) sourcetest.Place {
				s := serve(t, ok)
				s.Close()
				return place(s.URL + "/state")
			},
			"redirects for ever": answer(func(w http.ResponseWriter, req *http.Request) {
				http.Redirect(w, req, req.URL.Path+"/?"+req.URL.RawQuery, http.StatusFound)
			}),
		},
		Stuck: answer(func(_ http.ResponseWriter, req *http.Request) {
			select {
			case <-req.Context().Done():
			case <-time.After(time.Minute):
			}
		}),
	})
}

// hijack answers with exactly these bytes.
func hijack(w http.ResponseWriter, answer string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = conn.Write([]byte(answer))
	_ = conn.Close()
}
