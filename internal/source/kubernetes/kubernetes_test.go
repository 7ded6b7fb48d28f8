package kubernetes

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/kubestate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes/kubetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

func text(s string) cty.Value { return cty.StringVal(s) }

type attrs = map[string]cty.Value

// entry is a kubernetes block of credentials.
func entry(a attrs) *unstable.Entry {
	return unstable.NewEntry("credentials[0].kubernetes[0]", credentials(), a)
}

func settingsOf(blocks ...attrs) source.Settings {
	s := source.Settings{Credentials: source.Credentials{Table: credentials()}}
	for _, b := range blocks {
		s.Credentials.Entries = append(s.Credentials.Entries, entry(b))
	}
	return s
}

// access is what a block needs to reach a test server with its token.
func access(s *kubetest.Server) attrs {
	return attrs{"host": text(s.URL), "cluster_ca_certificate": text(s.CA()), "token": text(s.Token)}
}

func request(t *testing.T, a attrs, env attr.LookupEnv) source.Request {
	t.Helper()
	v, err := unstable.NewEntry("data.statecrypt_remote_state.test.kubernetes", table(), a).Decode(table(), env)
	if err != nil {
		t.Fatal(err)
	}
	return source.Request{Values: v, Workspace: "default", MaxSize: 1 << 20}
}

// open makes the source that reads tfstate-default-prod.
func open(t *testing.T, s source.Settings) source.Source {
	t.Helper()
	src, err := Kind().Start(s)(request(t, attrs{"secret_suffix": text("prod")}, s.LookupEnv))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// fails returns the text of the error that the read ends with.
func fails(t *testing.T, src source.Source, contains ...string) error {
	t.Helper()
	snap, err := src.Fetch(t.Context())
	if err == nil {
		t.Fatalf("got %d bytes, want an error", len(snap.Data))
	}
	for _, part := range contains {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %q, want it to contain %q", err, part)
		}
	}
	return err
}

const stateJSON = `{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"x","outputs":{}}`

// prod is a server that holds the state tfstate-default-prod.
func prod(t *testing.T) *kubetest.Server {
	s := kubetest.New(t)
	s.PutSecret("default", "tfstate-default-prod", map[string][]byte{"tfstate": nettest.Gzip([]byte(stateJSON))})
	return s
}

func TestSource(t *testing.T) {
	server := func(t *testing.T, data []byte) *kubetest.Server {
		s := kubetest.New(t)
		s.Token = "token-" + strings.Repeat("s", 20)
		if data != nil {
			s.PutSecret("default", "tfstate-default-prod", map[string][]byte{"tfstate": nettest.Gzip(data)})
		}
		return s
	}
	place := func(s *kubetest.Server, a attrs) sourcetest.Place {
		return sourcetest.Place{
			Attrs: attrs{"secret_suffix": text("prod")}, Settings: settingsOf(a), Secrets: []string{s.Token},
			Changed: func() error {
				for _, r := range s.Requests() {
					if !strings.HasPrefix(r, "GET /") || !strings.HasSuffix(r, "/api/v1/namespaces/default/secrets/tfstate-default-prod") {
						return fmt.Errorf("it was asked for %s", r)
					}
				}
				return nil
			},
		}
	}
	bad := func(change func(*kubetest.Server, attrs)) func(*testing.T) sourcetest.Place {
		return func(t *testing.T) sourcetest.Place {
			s := server(t, []byte(stateJSON))
			a := access(s)
			change(s, a)
			return place(s, a)
		}
	}
	replies := func(status int, contentType, body string) func(*testing.T) sourcetest.Place {
		return bad(func(s *kubetest.Server, _ attrs) {
			s.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", contentType)
				w.WriteHeader(status)
				fmt.Fprint(w, body+s.Token)
				return true
			}
		})
	}
	sourcetest.Run(t, sourcetest.Harness{
		Kind: Kind(),
		Place: func(t *testing.T, data []byte) sourcetest.Place {
			s := server(t, data)
			return place(s, access(s))
		},
		Bad: map[string]func(*testing.T) sourcetest.Place{
			"wrong token":    bad(func(s *kubetest.Server, a attrs) { a["token"] = text("other"); s.Token += "x" }),
			"no credentials": bad(func(_ *kubetest.Server, a attrs) { delete(a, "token") }),
			"forbidden":      bad(func(s *kubetest.Server, _ attrs) { s.Allows = func(string, string) bool { return false } }),
			"untrusted":      bad(func(_ *kubetest.Server, a attrs) { delete(a, "cluster_ca_certificate") }),
			"no TLS": bad(func(_ *kubetest.Server, a attrs) {
				a["host"] = text(strings.Replace(a["host"].AsString(), "https", "http", 1))
			}),
			"nobody there": bad(func(_ *kubetest.Server, a attrs) { a["host"] = text("https://" + nettest.Dead(t)) }),
			"another path": bad(func(_ *kubetest.Server, a attrs) { a["host"] = text(a["host"].AsString() + "/elsewhere") }),
			"no API":       replies(404, "text/plain", "404 page not found"),
			"another's 404": replies(404, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,`+
				`"details":{"name":"other","kind":"secrets"}}`),
			"404 of a proxy": replies(404, "text/html", "<html>"),
			"broken":         replies(500, "application/json", "{"),
			"not JSON":       replies(200, "text/html", "<html>"),
			"no gzip": bad(func(s *kubetest.Server, _ attrs) {
				s.PutSecret("default", "tfstate-default-prod", map[string][]byte{"tfstate": []byte(stateJSON)})
			}),
		},
		Stuck: func(t *testing.T) sourcetest.Place {
			s := server(t, []byte(stateJSON))
			s.Answer = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
			return place(s, access(s))
		},
	})
}

func TestWorkspaceAndNamespace(t *testing.T) {
	s := kubetest.New(t)
	s.PutSecret("infra", "tfstate-staging-app", map[string][]byte{"tfstate": nettest.Gzip([]byte(stateJSON))})
	r := request(t, attrs{"secret_suffix": text("app"), "namespace": text("infra")}, nil)
	r.Workspace = "staging"
	src, err := Kind().Start(settingsOf(access(s)))(r)
	if err != nil {
		t.Fatal(err)
	}
	if snap := sourcetest.Fetch(t, src); string(snap.Data) != stateJSON || snap.Revision == "" || snap.Warnings != nil {
		t.Errorf("got %q at %q, %q", snap.Data, snap.Revision, snap.Warnings)
	}
	if got := src.String(); got != "secret infra/tfstate-staging-app in Kubernetes" {
		t.Errorf("got %s", got)
	}
}

// A namespace may come from the variable of the backend.
func TestNamespaceOfEnvironment(t *testing.T) {
	env := environment{"KUBE_NAMESPACE": "infra"}
	src, err := Kind().Start(settingsOf(attrs{"host": text("h")}))(request(t, attrs{"secret_suffix": text("x")}, env.lookup))
	if err != nil || src.String() != "secret infra/tfstate-default-x in Kubernetes" {
		t.Errorf("got %v, %v", src, err)
	}
}

// Without tfstate in it, a secret is no state to the backend.
func TestSecretWithoutState(t *testing.T) {
	s := kubetest.New(t)
	s.PutSecret("default", "tfstate-default-prod", map[string][]byte{"TFSTATE": []byte("x")})
	if m, ok := source.IsMissing(fails(t, open(t, settingsOf(access(s))))); !ok || !m.CredentialsSent {
		t.Error("want a MissingError that says that credentials were sent")
	}
	set := settingsOf(access(s))
	src, err := Kind().Start(set)(request(t, attrs{"secret_suffix": text("tfstate-default-prod")}, set.LookupEnv))
	if err != nil {
		t.Fatal(err)
	}
	sourcetest.OpenMistakes(t, "kubernetes, no secret").Error(t, "of the name", fails(t, src))
}

// Terraform puts a large state into several secrets.
func TestParts(t *testing.T) {
	// Hardly compressible, so that it takes more than two secrets.
	data := make([]byte, 2*chunk+1000)
	x := uint32(1)
	for i := range data {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		data[i] = byte(x)
	}
	packed := nettest.Gzip(data)
	s := kubetest.New(t)
	var want []string
	name, n := "tfstate-default-prod", 0
	for part := range slices.Chunk(packed, chunk) {
		if n > 0 {
			name = fmt.Sprintf("tfstate-default-prod-part-%d", n)
		}
		s.PutSecret("default", name, map[string][]byte{"tfstate": part})
		want = append(want, "GET /api/v1/namespaces/default/secrets/"+name)
		n++
	}
	r := request(t, attrs{"secret_suffix": text("prod")}, nil)
	r.MaxSize = int64(len(data))
	src, err := Kind().Start(settingsOf(access(s)))(r)
	if err != nil {
		t.Fatal(err)
	}
	snap := sourcetest.Fetch(t, src)
	if !bytes.Equal(snap.Data, data) || snap.Revision != "1,2,3" {
		t.Errorf("got %d bytes at %q", len(snap.Data), snap.Revision)
	}
	if got := s.Requests(); !slices.Equal(got, want) {
		t.Errorf("asked for %q", got)
	}

	says := sourcetest.OpenMistakes(t, "kubernetes, parts")
	t.Run("one is gone", func(t *testing.T) {
		s.PutSecret("default", "tfstate-default-prod-part-1", map[string][]byte{})
		says.Error(t, "one is gone", fails(t, src))
		s.Requests()
	})
	t.Run("there is no end", func(t *testing.T) {
		s.Change(func() {
			s.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
				r.URL.Path = "/api/v1/namespaces/default/secrets/tfstate-default-prod"
				return false
			}
		})
		fails(t, src, meter.TooLarge(r.MaxSize).Error())
		if n := len(s.Requests()); n > 5 {
			t.Errorf("%d secrets were read", n)
		}
	})
}

// A secret that is just full may be the last one.
func TestFullSecret(t *testing.T) {
	s := kubetest.New(t)
	var data []byte
	var b bytes.Buffer
	for n := chunk - 120; b.Len() != chunk && n < chunk; n++ { // what gzip adds is not told
		data = make([]byte, n)
		b.Reset()
		z, _ := gzip.NewWriterLevel(&b, gzip.NoCompression)
		z.Write(data)
		z.Close()
	}
	s.PutSecret("default", "tfstate-default-prod", map[string][]byte{"tfstate": b.Bytes()})
	if snap := sourcetest.Fetch(t, open(t, settingsOf(access(s)))); !bytes.Equal(snap.Data, data) {
		t.Errorf("got %d bytes", len(snap.Data))
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// A small secret that opens to a huge state is not opened.
//
// Promise: Cost
func TestBomb(t *testing.T) {
	s := kubetest.New(t)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	block := make([]byte, 1<<20)
	for range 16 {
		z.Write(block)
	}
	z.Close()
	s.PutSecret("default", "tfstate-default-prod", map[string][]byte{"tfstate": b.Bytes()})
	fails(t, open(t, settingsOf(access(s))), meter.TooLarge(1<<20).Error())
}

func TestHugeAnswers(t *testing.T) {
	for _, status := range []int{200, 404, 500} {
		s := prod(t)
		sent := make(chan int, 1)
		s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			n := 0
			for range 1024 {
				m, err := w.Write(bytes.Repeat([]byte(" "), 64<<10))
				if n += m; err != nil {
					break
				}
			}
			sent <- n
			return true
		}
		fails(t, open(t, settingsOf(access(s))))
		if n := <-sent; n > 32<<20 {
			t.Errorf("%d: %d bytes were read", status, n)
		}
	}
}

func TestWrongRequests(t *testing.T) {
	object := decoded(t, attrs{"api_version": text("modules.kubeform.com/v1alpha1"), "kind": text("RDS"), "name": text("db")})
	says := sourcetest.OpenMistakes(t, "kubernetes, settings")
	for name, c := range map[string]struct {
		attrs     attrs
		workspace string
		object    any
	}{
		"no suffix":             {attrs{}, "default", nil},
		"suffix with a slash":   {attrs{"secret_suffix": text("../x")}, "default", nil},
		"capital suffix":        {attrs{"secret_suffix": text("Prod")}, "default", nil},
		"workspace":             {attrs{"secret_suffix": text("x")}, "a_b", nil},
		"object and suffix":     {attrs{"secret_suffix": text("x")}, "default", object},
		"object with workspace": {attrs{}, "prod", object},
		"unknown cluster":       {attrs{"secret_suffix": text("x"), "cluster": text("b")}, "default", nil},
	} {
		r := request(t, c.attrs, nil)
		r.Workspace, r.Object = c.workspace, c.object
		_, err := Kind().Start(settingsOf(attrs{"host": text("h")}))(r)
		says.Error(t, name, err)
	}
	wrong := attrs{"secret_suffix": text("x"), "namespace": text("a/b")}
	_, err := unstable.NewEntry("data.statecrypt_remote_state.test.kubernetes", table(), wrong).Decode(table(), nil)
	says.Error(t, "namespace", err)
}

func decoded(t *testing.T, a attrs) *kubestate.Object {
	t.Helper()
	v, err := unstable.NewEntry("data.statecrypt_remote_state.test.object", kubestate.Table(), a).Decode(kubestate.Table(), nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := kubestate.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A redirect would take the token to another server.
func TestRedirect(t *testing.T) {
	other := kubetest.New(t)
	s := prod(t)
	s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	}
	fails(t, open(t, settingsOf(access(s))), "redirects")
	if got := other.Requests(); len(got) > 0 {
		t.Errorf("the other server was asked for %q", got)
	}
}

// What a server says about waiting is followed, a little.
func TestRetryAfter(t *testing.T) {
	s := prod(t)
	n := 0
	s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if n++; n > 1 {
			return false
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	sourcetest.Fetch(t, open(t, settingsOf(access(s))))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Change(func() {
		s.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "100000")
			w.WriteHeader(http.StatusTooManyRequests)
			time.AfterFunc(100*time.Millisecond, cancel)
			return true
		}
	})
	if _, err := open(t, settingsOf(access(s))).Fetch(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestForbiddenNamesTheRule(t *testing.T) {
	s := prod(t)
	s.Allows = func(string, string) bool { return false }
	sourcetest.OpenMistakes(t, "kubernetes, forbidden").Error(t, "no rule", fails(t, open(t, settingsOf(access(s)))))
}
