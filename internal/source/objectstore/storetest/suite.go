package storetest

import (
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/faults"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/objectstore"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

// Attrs are those of a block.
type Attrs map[string]cty.Value

// Strings makes attributes from names and values, in turn.
func Strings(pairs ...string) Attrs {
	out := Attrs{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = cty.StringVal(pairs[i+1])
	}
	return out
}

// With returns a with one more, or another, attribute; "" takes it out.
func (a Attrs) With(name, value string) Attrs {
	out := maps.Clone(a)
	out[name] = cty.StringVal(value)
	if value == "" {
		delete(out, name)
	}
	return out
}

// Settings are those of a provider with these blocks of credentials; env is nil
// where the environment is switched off.
func Settings(kind source.Kind, env map[string]string, blocks ...Attrs) source.Settings {
	var s source.Settings
	for _, b := range blocks {
		s.Credentials.Entries = append(s.Credentials.Entries, attr.NewEntry("credentials."+kind.Name, kind.Credentials, b))
	}
	if env != nil {
		s.LookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
		s.Credentials.Env = s.LookupEnv
	}
	return s
}

// Open makes a source as a data source would.
func Open(kind source.Kind, s source.Settings, a Attrs, workspace string) (source.Source, error) {
	values, err := attr.NewEntry("data.statecrypt_remote_state.test."+kind.Name, kind.Table, a).Decode(kind.Table, s.LookupEnv)
	if err != nil {
		return nil, err
	}
	s.Credentials.Table = kind.Credentials
	return kind.Start(s)(source.Request{Values: values, Workspace: workspace, MaxSize: 1 << 20})
}

// Hurried has a connection give up early.
func Hurried(c *objectstore.Connection) {
	c.MaxWait, c.Attempts, c.Timeout, c.Patience = time.Millisecond, 2, time.Second, 2*time.Second
}

// Suite is what the tests of all kinds have in common.
type Suite struct {
	Kind   func(ca string) source.Kind // hurried; ca is "" for that of the system
	Store  func(t *testing.T) *Server  // with the bucket
	Bucket string
	Path   string                      // of the object in it that Where means
	Where  Attrs                       // what the data source says
	Who    func(endpoint string) Attrs // may read, and has a secret with [Canary] in it
	Name   string                      // of the store in errors
}

// Canary is in all secrets. It must not be shown.
const Canary = "canary"

// Run is sourcetest.Run.
func (s Suite) Run(t *testing.T) {
	kind := s.Kind("")
	place := func(t *testing.T, data []byte) (sourcetest.Place, *Server) {
		server := s.Store(t)
		if data != nil {
			server.Put(t, s.Bucket, s.Path, data)
		}
		return sourcetest.Place{
			Attrs: s.Where, Settings: Settings(kind, nil, s.Who(server.Serve(t))), Secrets: []string{Canary}, Changed: server.OnlyRead,
		}, server
	}
	bad := func(change func(*sourcetest.Place, *Server)) func(*testing.T) sourcetest.Place {
		return func(t *testing.T) sourcetest.Place {
			p, server := place(t, []byte("{}"))
			change(&p, server)
			return p
		}
	}
	sourcetest.Run(t, sourcetest.Harness{
		Kind:  kind,
		Place: func(t *testing.T, data []byte) sourcetest.Place { p, _ := place(t, data); return p },
		Stuck: func(t *testing.T) sourcetest.Place {
			p, server := place(t, nil)
			server.Answer = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
			return p
		},
		Bad: map[string]func(*testing.T) sourcetest.Place{
			"another secret": bad(func(_ *sourcetest.Place, server *Server) { server.Keys[0].SecretAccessKey = "other" }),
			"another key":    bad(func(_ *sourcetest.Place, server *Server) { server.Keys[0].AccessKeyID = "other" }),
			"no such bucket": bad(func(p *sourcetest.Place, _ *Server) { p.Attrs = s.Where.With("bucket", "none-1250000000") }),
			"nobody listens": func(t *testing.T) sourcetest.Place {
				return sourcetest.Place{Attrs: s.Where, Settings: Settings(kind, nil, s.Who("http://"+cloudtest.Dead(t))), Secrets: []string{Canary}}
			},
			"no such version": bad(func(p *sourcetest.Place, _ *Server) { p.Attrs = s.Where.With("version_id", "none") }),
		},
	})
}

// Faults is sourcetest.Faults.
func (s Suite) Faults(t *testing.T) {
	const (
		reset   = "the connection failed: connection reset by peer | the connection broke off"
		broken  = "the connection broke off, or the answer is not valid"
		slow    = "there was no complete answer in time | there was no answer in time"
		many    = "with the HTTP status 429"
		moved   = "the bucket is elsewhere, and nothing was sent there"
		tooBig  = "the file is larger than 1048576 bytes"
		untrust = "the TLS certificate is not trusted"
	)
	var ca string
	kind := s.Kind("")
	kind.Start = func(settings source.Settings) source.Open { return s.Kind(ca).Start(settings) }
	sourcetest.Faults(t, sourcetest.FaultHarness{
		Kind: kind,
		Server: func(t *testing.T, data []byte) http.Handler {
			server := s.Store(t)
			server.Put(t, s.Bucket, s.Path, data)
			return server
		},
		Place: func(_ *testing.T, f *faults.Front) sourcetest.Place {
			ca = f.CA
			return sourcetest.Place{Attrs: s.Where, Settings: Settings(kind, nil, s.Who(f.URL)), Secrets: []string{Canary}}
		},
		Sees: map[string]string{
			"nobody listens":           "the connection failed: connection refused",
			"reset at once":            reset,
			"reset in the body":        reset,
			"reset in the body, once":  sourcetest.Works,
			"closed without an answer": broken,
			"short body":               broken,
			"Content-Length too large": broken,
			"Content-Length too small": sourcetest.Cut,
			"endless body":             tooBig,
			"gzip bomb":                sourcetest.Works, // it is for clients that unpack, and this one says that it does not
			"not HTTP":                 broken,
			"malformed status line":    broken,
			"malformed header":         broken,
			"another service":          fmt.Sprintf("an answer that is not of %s, with the HTTP status 200", s.Name),

			"stall":             slow,
			"stall in the body": slow,
			"slow drip":         slow,

			"403":                            fmt.Sprintf("an answer that is not of %s, with the HTTP status 403", s.Name),
			"500, once":                      sourcetest.Works,
			"500":                            "with the HTTP status 500",
			"503, once":                      sourcetest.Works,
			"503 with Retry-After, once":     sourcetest.Works,
			"429 with Retry-After, once":     sourcetest.Works,
			"429 with Retry-After":           many,
			"429 with Retry-After of a year": many,

			"redirect loop":              moved,
			"redirect to another origin": moved,
			"redirect to plain http":     moved,

			"certificate expired":                 untrust,
			"certificate of another host":         untrust,
			"certificate of an unknown authority": untrust,
			"TLS 1.0":                             broken,
			"no TLS":                              "the server does not speak TLS; is the endpoint right?",
			"handshake breaks off":                broken,
		},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "a client of S3 does not wait for what Retry-After says",
		},
	})
}

// Pool is an authority in PEM format as net/http wants it.
func Pool(t *testing.T, pem []byte) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatal("there is no certificate")
	}
	return pool
}

// Attributes checks that each attribute of the backend is one of the data
// source or of credentials, or is left out for a reason; and that there are no
// others but ours.
func Attributes(t *testing.T, kind source.Kind, backend []string, leftOut map[string]string, ours ...string) {
	t.Helper()
	for _, name := range backend {
		_, asked := kind.Attr(name)
		_, secret := kind.Credentials.Attr(name)
		if n := count(asked, secret, leftOut[name] != ""); n != 1 {
			t.Errorf("%s: it is in %d of the data source, credentials, and what is left out", name, n)
		}
	}
	for _, a := range append(slices.Clone(kind.Attrs), kind.Credentials.Attrs...) {
		if !slices.Contains(backend, a.Name) && !slices.Contains(ours, a.Name) {
			t.Errorf("the backend has no %s", a.Name)
		}
		if a.Doc == "" || !strings.HasSuffix(a.Doc, ".") {
			t.Errorf("%s: the documentation is not made of sentences", a.Name)
		}
	}
	for name := range leftOut {
		if !slices.Contains(backend, name) {
			t.Errorf("%s is left out, and the backend has none", name)
		}
	}
}

func count(all ...bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}

// Codes checks what users see of the errors of a store. A want of "missing"
// is a missing state; otherwise it is a part of the error, which never is one.
func (s Suite) Codes(t *testing.T, codes map[string]string) {
	for answer, want := range codes {
		t.Run(answer, func(t *testing.T) {
			server := s.Store(t)
			var status int
			var code string
			_, _ = fmt.Sscan(answer, &status, &code)
			server.Answer = func(w http.ResponseWriter, _ *http.Request) bool { Refuse(w, status, code); return true }
			kind := s.Kind("")
			src, err := Open(kind, Settings(kind, nil, s.Who(server.Serve(t))), s.Where, "default")
			if err != nil {
				t.Fatal(err)
			}
			_, err = src.Fetch(t.Context())
			if err == nil {
				t.Fatal("it was read")
			}
			missing, isMissing := source.IsMissing(err)
			switch {
			case isMissing != (want == "missing"):
				t.Errorf("got %v, missing: %t", err, isMissing)
			case isMissing && !missing.CredentialsSent:
				t.Error("it does not say that credentials were sent")
			case !isMissing && !strings.Contains(err.Error(), want):
				t.Errorf("got %v, want %q", err, want)
			}
			if strings.Contains(err.Error(), Canary) || strings.Contains(err.Error(), "own words") {
				t.Errorf("the error shows what the server wrote: %v", err)
			}
		})
	}
}

// Versions checks that a version is read, and only that one.
func (s Suite) Versions(t *testing.T) {
	server := s.Store(t)
	server.Keep(t, s.Bucket)
	server.Put(t, s.Bucket, s.Path, []byte("first"))
	kind, endpoint := s.Kind(""), server.Serve(t)
	read := func(a Attrs) (*source.Snapshot, error) {
		src, err := Open(kind, Settings(kind, nil, s.Who(endpoint)), a, "default")
		if err != nil {
			t.Fatal(err)
		}
		return src.Fetch(t.Context())
	}
	first, err := read(s.Where)
	if err != nil {
		t.Fatal(err)
	}
	server.Put(t, s.Bucket, s.Path, []byte("second"))
	for version, want := range map[string]string{first.Revision: "first", "": "second"} {
		if snap, err := read(s.Where.With("version_id", version)); err != nil || string(snap.Data) != want || version != "" && snap.Revision != version {
			t.Errorf("%q: got %+v, %v", version, snap, err)
		}
	}
	server.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("X-Amz-Version-Id", "another")
		w.Header().Set("ETag", `"1"`)
		fmt.Fprint(w, "third")
		return true
	}
	if _, err := read(s.Where.With("version_id", first.Revision)); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("another version: %v", err)
	}
}

// Isolated checks that nothing of the process's environment steers a read where
// the environment is switched off, and that a named block gets none of it.
func (s Suite) Isolated(t *testing.T, variables ...string) {
	server := s.Store(t)
	server.Put(t, s.Bucket, s.Path, []byte("{}"))
	dead := "http://" + cloudtest.Dead(t)
	kind, who := s.Kind(""), s.Who(server.Serve(t))
	for _, name := range append(variables, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_PROFILE") {
		t.Setenv(name, "other-"+Canary)
	}
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, dead)
	}
	for name, settings := range map[string]source.Settings{
		"":  Settings(kind, nil, who),
		"a": Settings(kind, nil, who.With("name", "a")),
	} {
		if name != "" {
			settings.LookupEnv = os.LookupEnv
			settings.Credentials.Env = os.LookupEnv
		}
		src, err := Open(kind, settings, s.Where.With("credentials_name", name), "default")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := src.Fetch(t.Context()); err != nil {
			t.Error(err)
		}
		got := server.Requests()
		if len(got) != 1 || strings.Contains(fmt.Sprint(got), Canary) {
			t.Errorf("got requests %+v", got)
		}
	}
	if _, err := Open(kind, Settings(kind, nil), s.Where, "default"); err == nil || !strings.Contains(err.Error(), "no ") {
		t.Errorf("without a block: %v", err)
	}
}
