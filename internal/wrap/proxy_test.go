package wrap

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // what the protocol wants
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/probe"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

const (
	canary = "c4n4ry"

	keys = `
key_provider "static" "k" { key = "6f6f706830656f67686f6834616872756f3751756165686565796f6f72653169" }
method "aes_gcm" "m" { keys = key_provider.static.k }
method "unencrypted" "u" {}
`
	sealing   = keys + "state { method = method.aes_gcm.m }"
	migrating = keys + "state {\nmethod = method.aes_gcm.m\nfallback { method = method.unencrypted.u }\n}"

	state = `{"version":4,"terraform_version":"1.11.4","serial":1,"lineage":"l","outputs":{},"resources":[]}`
	other = `{"version":4,"terraform_version":"1.11.4","serial":1,"lineage":"other","outputs":{},"resources":[]}`
)

func target(t *testing.T, text string) encryption.Target {
	t.Helper()
	return settings(t, text).State()
}

func settings(t *testing.T, text string) *encryption.Encryption {
	t.Helper()
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(text, "test.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

func sealed(t *testing.T, plain string) []byte {
	t.Helper()
	file, err := target(t, sealing).Encrypt(context.Background(), []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// said is what the user is told.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// take returns what was said since the last call.
func (s *said) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.text.String()
	s.text.Reset()
	return text
}

// between is a proxy between a child and a backend at a URL.
func between(t *testing.T, url, settings string, more ...string) (*proxy, *said) {
	t.Helper()
	environ := append(environOf(url), more...)
	told := &said{}
	return betweenWith(t, Options{Keys: Keys{State: target(t, settings)}, Stderr: told, Environ: environ}), told
}

// environOf describes a backend at a URL.
func environOf(url string) []string {
	return []string{
		"STATECRYPT_HTTP_ADDRESS=" + url + "/s?team=a", "STATECRYPT_HTTP_LOCK_ADDRESS=" + url + "/l",
		"STATECRYPT_HTTP_UNLOCK_ADDRESS=" + url + "/l",
		"STATECRYPT_HTTP_USERNAME=ci", "STATECRYPT_HTTP_PASSWORD=" + canary,
	}
}

func betweenWith(t *testing.T, o Options) *proxy {
	t.Helper()
	b, err := backendIn(o)
	if err != nil {
		t.Fatal(err)
	}
	g := &guard{target: o.Keys.State, doubts: o.Keys.Doubts, backend: b, memory: &memory{}, pins: o.Wishes.Pins, say: Notes(o.Stderr)}
	return newProxy(&line{}, g, &leftover{}, false)
}

// backendIn opens the state of options.
func backendIn(o Options) (*backend, error) {
	return o.Where.open(o.Keys.State, o.Environ, &module{}, false, Notes(o.Stderr))
}

// ask is a request of the child.
func ask(p *proxy, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.SetBasicAuth(username, p.password)
	p.ServeHTTP(w, r)
	return w
}

// request is one that a backend got.
type request struct {
	method, uri, body string
	header            http.Header
}

// upstream is a backend that answers whatever it is told to.
func upstream(t *testing.T, answer *http.HandlerFunc) (url string, last *request) {
	t.Helper()
	last = &request{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodGet || last.method == "" || last.method == http.MethodGet { // a look is no change
			*last = request{r.Method, r.URL.RequestURI(), string(body), r.Header}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		(*answer)(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, last
}

// keeping is a backend that has a state, "" for none, and keeps each that it gets.
func keeping(state string, code int) http.HandlerFunc {
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

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// What the backend answers comes through as it is, except for states.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const holder = `{"ID":"1","Who":"somebody"}`
	mistakes := OpenMistakes(t, "backend answers")
	for name, c := range map[string]struct {
		method, path, body string
		settings           string // sealing if there are none
		answer             http.HandlerFunc
		status             int
		want               string // the body
	}{
		"a state":            {method: "GET", path: "/state", answer: status(200, string(sealed(t, state))), status: 200, want: state},
		"none, 404":          {method: "GET", path: "/state", answer: status(404, "none"), status: 404},
		"none, 204":          {method: "GET", path: "/state", answer: status(204, ""), status: 404},
		"none, empty":        {method: "GET", path: "/state", answer: status(200, ""), status: 404},
		"plaintext, allowed": {method: "GET", path: "/state", settings: migrating, answer: status(200, state), status: 200, want: state},
		"plaintext":          {method: "GET", path: "/state", answer: status(200, state), status: 422},
		"a variable without a value": {method: "GET", path: "/state",
			settings: strings.Replace(sealing, `"6f6f706830656f67686f6834616872756f3751756165686565796f6f72653169"`, "var.key", 1),
			answer:   status(200, string(sealed(t, state))), status: 422},
		"plaintext, a page": {method: "GET", path: "/state", settings: migrating, answer: status(200, "<html>"+canary), status: 422},
		"401":               {method: "GET", path: "/state", answer: status(401, "body"), status: 401, want: "body"},
		"403":               {method: "GET", path: "/state", answer: status(403, "body"), status: 403, want: "body"},
		"500":               {method: "GET", path: "/state", answer: status(500, "body"), status: 500, want: "body"},
		"sealed, not 200":   {method: "GET", path: "/state", answer: status(203, string(sealed(t, state))), status: 203, want: "sealed"},
		"locked":            {method: "LOCK", path: "/lock", body: "{}", answer: status(423, holder), status: 423, want: holder},
		"in conflict":       {method: "LOCK", path: "/lock", body: "{}", answer: status(409, holder), status: 409, want: holder},
		"lock":              {method: "LOCK", path: "/lock", body: "{}", answer: status(200, "body"), status: 200},
		"lock, 500":         {method: "LOCK", path: "/lock", body: "{}", answer: status(500, "body"), status: 500, want: "body"},
		"unlock":            {method: "UNLOCK", path: "/lock", body: `{"ID":"1"}`, answer: status(200, "body"), status: 200},
		"unlock, 409":       {method: "UNLOCK", path: "/lock", body: `{"ID":"1"}`, answer: status(409, holder), status: 409, want: holder},
		"delete":            {method: "DELETE", path: "/state", answer: status(200, "body"), status: 200},
		"delete, 500":       {method: "DELETE", path: "/state", answer: status(500, "body"), status: 500, want: "body"},
		"another path":      {method: "GET", path: "/other", status: 404, want: "404 page not found\n"},
		"another method":    {method: "PUT", path: "/state", body: state, status: 405, want: "Method Not Allowed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sealed := c.want == "sealed"
			answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == c.method { // what is read before a change is none
					c.answer(w, r)
				}
			})
			url, last := upstream(t, &answer)
			settings := c.settings
			if settings == "" {
				settings = sealing
			}
			p, told := between(t, url, settings)
			p.version.Store(new(store.Version))
			w := ask(p, c.method, c.path, c.body)
			if got := w.Body.String(); w.Code != c.status || c.want != "" && got != c.want && !sealed || sealed && strings.Contains(got, `"lineage":"l","outputs"`) {
				t.Errorf("got %d %q", w.Code, got)
			}
			mistakes.Said(t, name, told.take())
			if c.answer != nil && (last.method != c.method || last.body != c.body || last.header.Get("Authorization") == "") {
				t.Errorf("the backend got %v", last)
			}
		})
	}
}

// What is probably not meant in a key is said before the first state is sealed with it, and not
// once it has opened one.
func TestNoteOfDoubts(t *testing.T) {
	t.Parallel()
	odd := `
key_provider "pbkdf2" "k" {
  passphrase = "` + canary + ` of a file\n"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state { method = method.aes_gcm.m }
`
	file, err := target(t, odd).Encrypt(t.Context(), []byte(state))
	if err != nil {
		t.Fatal(err)
	}
	mistakes := OpenMistakes(t, "doubt")
	for name, answer := range map[string]string{"before the first state": "", "of a key that opens a state": string(file)} {
		handler := status(http.StatusOK, answer)
		url, _ := upstream(t, &handler)
		told := &said{}
		o := Options{Keys: Keys{State: target(t, odd), Doubts: settings(t, odd).Check()}, Stderr: told, Environ: environOf(url)}
		if len(o.Keys.Doubts) == 0 {
			t.Fatal("nothing is doubtful")
		}
		p := betweenWith(t, o)
		if got := ask(p, http.MethodGet, "/state", ""); (got.Code == http.StatusOK) != (answer != "") {
			t.Errorf("got %d: %s", got.Code, told.take())
		}
		mistakes.Said(t, name, told.take())
	}
}

// A state is sealed on its way, and the lock's ID goes with it.
//
// Promise: Only encrypted states
func TestWrite(t *testing.T) {
	t.Parallel()
	answer := status(404, "")
	url, last := upstream(t, &answer)
	p, told := between(t, url, sealing, "STATECRYPT_HTTP_UPDATE_METHOD=PUT")
	ask(p, "GET", "/state", "")
	ask(p, "GET", "/state", "")
	OpenMistakes(t, "no state").Said(t, "asked twice", told.take())
	answer = keeping("", 201)
	ask(p, "LOCK", "/lock", `{"ID":"4711"}`)
	if w := ask(p, "POST", "/state?ID=4711", state); w.Code != 200 || told.take() != "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	opened, err := target(t, sealing).Decrypt(t.Context(), []byte(last.body))
	if err != nil || string(opened.Data) != state || !opened.Encrypted {
		t.Errorf("the backend got %s, %v", last.body, err)
	}
	digest := md5.Sum([]byte(last.body)) //nolint:gosec // what the protocol wants
	if last.method != "PUT" || last.uri != "/s?ID=4711&team=a" || last.header.Get("Content-Type") != "application/json" ||
		last.header.Get("Content-Md5") != base64.StdEncoding.EncodeToString(digest[:]) {
		t.Errorf("the backend got %v", last)
	}
}

// A state is refused if it does not belong where it goes.
func TestLineage(t *testing.T) {
	t.Parallel()
	mistakes := OpenMistakes(t, "lineage")
	for name, c := range map[string]struct {
		there  string // "" is none, "-" was not read, "401" could not be
		body   string
		force  bool
		status int
	}{
		"the same":                {there: state, body: state, status: 200},
		"the first":               {body: state, status: 200},
		"another":                 {there: state, body: other, status: 422},
		"another, forced":         {there: state, body: other, force: true, status: 200},
		"not read":                {there: "-", body: state, status: 422},
		"not read, forced":        {there: "-", body: state, force: true, status: 200},
		"not readable":            {there: "401", body: state, status: 422},
		"encrypted already":       {there: state, body: string(sealed(t, state)), status: 422},
		"encrypted, forced":       {there: state, body: string(sealed(t, state)), force: true, status: 422},
		"no state":                {there: state, body: `{"canary":"` + canary + `"}`, force: true, status: 422},
		"nothing":                 {there: state, force: true, status: 422},
		"lineage of a wrong kind": {there: state, body: `{"version":4,"serial":1,"lineage":["` + canary + `"]}`, status: 422},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, there := status(404, ""), ""
			switch c.there {
			case "", "-":
			case "401":
				answer = status(401, "")
			default:
				there = string(sealed(t, c.there))
				answer = status(200, there)
			}
			url, last := upstream(t, &answer)
			p, told := between(t, url, sealing)
			p.guard.force = c.force
			if c.there != "-" {
				ask(p, "GET", "/state", "")
			}
			answer = keeping(there, 200)
			ask(p, "LOCK", "/lock", `{"ID":"1"}`)
			told.take()
			*last = request{}
			w := ask(p, "POST", "/state?ID=1", c.body)
			mistakes.Said(t, name, told.take())
			if w.Code != c.status {
				t.Errorf("got %d, want %d", w.Code, c.status)
			}
			if (last.method == "POST") != (c.status == 200) {
				t.Errorf("the backend got %v", last)
			}
		})
	}
}

// After a state was written, the next one is compared with it, not with the one
// before.
func TestLineageFollows(t *testing.T) {
	t.Parallel()
	answer := status(404, "")
	url, _ := upstream(t, &answer)
	p, _ := between(t, url, sealing)
	ask(p, "GET", "/state", "")
	answer = status(200, "")
	ask(p, "LOCK", "/lock", "{}")
	answer = status(500, "")
	ask(p, "POST", "/state", other) // not written
	answer = keeping("", 200)
	for _, c := range []struct {
		body   string
		status int
	}{{state, 200}, {other, 422}, {state, 200}} {
		if w := ask(p, "POST", "/state", c.body); w.Code != c.status {
			t.Errorf("%s: got %d, want %d", c.body, w.Code, c.status)
		}
	}
}

// A run has one state. Another one in its place, or none at all, does not make way
// for a write.
//
// Promise: Only encrypted states
func TestLineageStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then   http.HandlerFunc // what is read after the state
		remove bool
		status int
	}{
		"absent, 404":   {then: status(404, ""), status: 422},
		"absent, empty": {then: status(200, ""), status: 422},
		"another state": {then: status(200, string(sealed(t, other))), status: 422},
		"removed by us": {then: status(404, ""), remove: true, status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := keeping(string(sealed(t, state)), 200)
			url, _ := upstream(t, &answer)
			p, _ := between(t, url, sealing)
			ask(p, "GET", "/state", "")
			ask(p, "LOCK", "/lock", "{}")
			if c.remove {
				ask(p, "DELETE", "/state", "")
			}
			answer = c.then
			ask(p, "GET", "/state", "")
			answer = keeping("", 200)
			if w := ask(p, "POST", "/state", other); w.Code != c.status {
				t.Errorf("got %d, want %d", w.Code, c.status)
			}
		})
	}
}

// Nobody else on this machine gets anything.
//
// Promise: Only encrypted states
func TestPassword(t *testing.T) {
	t.Parallel()
	answer := status(200, string(sealed(t, state)))
	url, last := upstream(t, &answer)
	p, _ := between(t, url, sealing)
	for _, given := range [][2]string{{}, {username, ""}, {username, "x" + p.password}, {username, p.password[1:]}, {"", p.password}} {
		for _, path := range []string{"/state", "/lock", "/"} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", path, nil)
			r.SetBasicAuth(given[0], given[1])
			p.ServeHTTP(w, r)
			if w.Code != 401 || w.Body.Len() > 0 || last.method != "" {
				t.Errorf("%q: got %d %s", given, w.Code, w.Body)
			}
		}
	}
}

// A redirect leads to the same server, and no write becomes a read.
//
// Promise: Only encrypted states
func TestRedirects(t *testing.T) {
	t.Parallel()
	var stray string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stray = r.Method + r.URL.String() }))
	t.Cleanup(elsewhere.Close)
	mistakes := OpenMistakes(t, "redirect")
	for name, c := range map[string]struct {
		method, body string
		code         int
		to           string
		status       int
	}{
		"same server":           {method: "GET", code: 302, to: "/there", status: 404},
		"write":                 {method: "POST", body: state, code: 307, to: "/there", status: 200},
		"write becomes a read":  {method: "POST", body: state, code: 302, to: "/there", status: 502},
		"another origin":        {method: "GET", code: 302, to: elsewhere.URL + "/s", status: 502},
		"write, another origin": {method: "POST", body: state, code: 307, to: elsewhere.URL + "/s", status: 502},
	} {
		t.Run(name, func(t *testing.T) {
			keep := keeping("", 200)
			answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == c.method && r.URL.Path != "/there" {
					http.Redirect(w, r, c.to, c.code)
				} else {
					keep(w, r)
				}
			})
			url, _ := upstream(t, &answer)
			p, told := between(t, url, sealing, "STATECRYPT_HTTP_LOCK_ADDRESS=", "STATECRYPT_HTTP_UNLOCK_ADDRESS=")
			p.guard.force = true
			p.version.Store(new(store.Version))
			ask(p, "LOCK", "/lock", `{"ID":"1"}`)
			w := ask(p, c.method, "/state?ID=1", c.body)
			mistakes.Said(t, name, told.take())
			if w.Code != c.status {
				t.Errorf("got %d", w.Code)
			}
		})
	}
	if stray != "" {
		t.Errorf("another server was asked to %s", stray)
	}
}

func TestManyRedirects(t *testing.T) {
	t.Parallel()
	mistakes := OpenMistakes(t, "redirects")
	for redirects, want := range map[int]int{10: 404, 11: 502} {
		left := redirects
		answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if left > 0 {
				left--
				http.Redirect(w, r, "/there", http.StatusFound)
			}
		})
		url, _ := upstream(t, &answer)
		p, told := between(t, url, sealing)
		w := ask(p, "GET", "/state", "")
		mistakes.Said(t, strconv.Itoa(redirects), told.take())
		if w.Code != want {
			t.Errorf("after %d redirects, got %d", redirects, w.Code)
		}
	}
}

// Every truncation and every flipped bit of what is in the backend gives an
// error, or the state that was sealed.
func TestDamage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("every bit is flipped")
	}
	file := sealed(t, state)
	const member = `"encrypted_data":"`
	start := bytes.Index(file, []byte(member)) + len(member)
	end := start + bytes.IndexByte(file[start:], '"') - 4 // the last four digits of base64 may hold unused bits
	probe.Every(t, file, func(damaged []byte) (string, error) {
		if len(damaged) == 0 {
			return "", errors.New("the backend says that there is none")
		}
		b := &backend{State: fixed{data: damaged}}
		p := &proxy{backend: b, say: func(string) {}}
		p.guard = &guard{target: target(t, sealing), backend: b, memory: &memory{}, say: p.say}
		w := httptest.NewRecorder()
		p.get(w, httptest.NewRequest("GET", "/state", nil))
		if w.Code != 200 {
			return "", fmt.Errorf("%d %s", w.Code, w.Body)
		}
		return w.Body.String(), nil
	}, probe.Harmless{
		Why: "serial, lineage and names of members are not authenticated", Count: -1,
		Is: func(d probe.Case) bool { return d.At < start || d.At >= end },
	})
}

// fixed is a state that is only read.
type fixed struct {
	store.State
	data []byte
}

func (f fixed) Read(context.Context) ([]byte, store.Version, error) { return f.data, "1", nil }

// TestFaults has go wrong between us and the backend what goes wrong on networks.
// The child tries again as Terraform does.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("waiting for what does not answer takes long")
	}
	sealed := sealed(t, state)
	faults.Suite{
		Server: func(*testing.T) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, password, _ := r.BasicAuth(); password != canary {
					w.WriteHeader(401)
					return
				}
				_, _ = w.Write(sealed)
			})
		},
		Want: []byte(state),
		Client: func(t *testing.T, f *faults.Front) faults.Client {
			told := &said{}
			p := betweenWith(t, Options{
				Keys: Keys{State: target(t, sealing)}, Where: Where{Limit: 1 << 20, Patience: f.Patience / 2}, Stderr: told,
				Environ: append(environOf(f.URL), "STATECRYPT_HTTP_CLIENT_CA_CERTIFICATE_PEM="+f.CA),
			})
			child := httptest.NewServer(p)
			t.Cleanup(child.Close)
			return faults.Client{Secrets: []string{canary}, Ask: func(ctx context.Context) ([]byte, error) {
				return asTerraform(ctx, child.URL, p.password, told)
			}}
		},
		Reads:  func(r *http.Request, _ []byte) bool { return r.Method == http.MethodGet },
		Check:  func(*testing.T, error, bool) {},
		Golden: OpenMistakes(t, "fault").Said,
		Sees: map[string]string{
			"Content-Length too small": faults.InGolden,
			"endless body":             faults.InGolden,
			"gzip bomb":                faults.InGolden,
			"endless gzip of nothing":  faults.InGolden,
			"nested a million deep":    faults.InGolden,
			"another service":          faults.InGolden,

			"403":                            faults.InGolden,
			"500":                            faults.InGolden,
			"429 with Retry-After":           faults.InGolden,
			"429 with Retry-After of a year": faults.InGolden,

			"redirect loop":              faults.InGolden,
			"redirect to another origin": faults.InGolden,
			"redirect to plain http":     faults.InGolden,

			"301 that names another host": faults.InGolden,
			"401 that names another host": faults.InGolden,

			"certificate of an unknown authority": netfail.UnknownAuthority + "set client_ca_certificate_pem",
		},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "Retry-After is not passed on, so that nobody waits",
		},
	}.Run(t)
}

// asTerraform reads the state as Terraform's http backend does.
func asTerraform(ctx context.Context, url, password string, told *said) ([]byte, error) {
	told.take()
	client := retryablehttp.NewClient()
	client.RetryMax, client.RetryWaitMin, client.RetryWaitMax, client.Logger = 1, time.Millisecond, time.Millisecond, nil
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, url+"/state", nil)
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth(username, password)
	resp, err := client.Do(req)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil { // after a 5xx
		return nil, errors.New(strings.TrimSpace(strings.ReplaceAll(told.take(), "\n", " ")))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != 200 {
		err = errors.New(strings.TrimSpace(strings.ReplaceAll(told.take(), "\n", " ")))
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return body, err
}

// What a server says of the encoding of the state is taken as by every source: a team that
// could write it can read it.
//
// Promise: Runs under wrap
func TestEncodings(t *testing.T) {
	t.Parallel()
	file := sealed(t, state)
	for _, e := range nettest.Encodings() {
		answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Encoding"] = e.Names
			_, _ = w.Write(e.Body(file))
		})
		url, _ := upstream(t, &answer)
		p, told := between(t, url, sealing)
		w := ask(p, "GET", "/state", "")
		var err error
		if w.Code != http.StatusOK {
			err = errors.New(told.take())
		}
		e.Check(t, []byte(state), w.Body.Bytes(), err)
	}
}

// TestToldOnce: what each try of the child fails with is said once, and again after anything else.
func TestToldOnce(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "LOCK" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	url, _ := upstream(t, &answer)
	p, told := between(t, url, sealing)
	for _, step := range []struct {
		method, path string
		lines        int
	}{
		{http.MethodGet, "/state", 1}, {http.MethodGet, "/state", 0}, {http.MethodGet, "/state", 0},
		{"LOCK", "/lock", 0}, {http.MethodGet, "/state", 1},
	} {
		ask(p, step.method, step.path, `{"ID":"1"}`)
		if said := told.take(); strings.Count(said, "\n") != step.lines {
			t.Errorf("%s: %q", step.method, said)
		}
	}
}
