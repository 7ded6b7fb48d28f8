package proxy

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
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/probe"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/cmdline"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// between is a proxy between a child and a backend at a URL.
func between(t *testing.T, url, settings string, more ...string) (*Proxy, *wraptest.Said) {
	t.Helper()
	environ := append(wraptest.EnvironOf(url), more...)
	told := &wraptest.Said{}
	return betweenWith(t, states.Keys{State: wraptest.Target(t, settings)}, states.Where{}, environ, told), told
}

func betweenWith(t *testing.T, keys states.Keys, where states.Where, environ []string, told io.Writer) *Proxy {
	t.Helper()
	b, err := where.Open(keys.State, environ, &module.Module{}, false, states.Notes(told, ""))
	if err != nil {
		t.Fatal(err)
	}
	g := &states.Guard{Target: keys.State, Doubts: keys.Doubts, Backend: b, Memory: &states.Memory{}, Say: states.Notes(told, "")}
	return New(&cmdline.Line{Command: cmdline.Command{Does: cmdline.Writes}}, g, &states.Leftover{})
}

// ask is a request of the child.
func ask(p *Proxy, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.SetBasicAuth(module.Username, p.password)
	p.ServeHTTP(w, r)
	return w
}

// What the backend answers comes through as it is, except for states.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const holder = `{"ID":"1","Who":"someone"}`
	mistakes := wraptest.OpenMistakes(t, "backend answers")
	for name, c := range map[string]struct {
		method, path, body string
		settings           string // sealing if there are none
		answer             http.HandlerFunc
		status             int
		want               string // the body
	}{
		"a state": {
			method: "GET", path: "/state",
			answer: wraptest.Status(200, string(wraptest.Sealed(t, wraptest.State))), status: 200, want: wraptest.State,
		},
		"none, 404":   {method: "GET", path: "/state", answer: wraptest.Status(404, "none"), status: 404},
		"none, 204":   {method: "GET", path: "/state", answer: wraptest.Status(204, ""), status: 404},
		"none, empty": {method: "GET", path: "/state", answer: wraptest.Status(200, ""), status: 404},
		"plaintext, allowed": {
			method: "GET", path: "/state", settings: wraptest.Migrating,
			answer: wraptest.Status(200, wraptest.State), status: 200, want: wraptest.State,
		},
		"plaintext": {method: "GET", path: "/state", answer: wraptest.Status(200, wraptest.State), status: 422},
		"a variable without a value": {method: "GET", path: "/state",
			settings: strings.Replace(wraptest.Sealing, `"6f6f706830656f67686f6834616872756f3751756165686565796f6f72653169"`, "var.key", 1),
			answer:   wraptest.Status(200, string(wraptest.Sealed(t, wraptest.State))), status: 422},
		"plaintext, a page": {
			method: "GET", path: "/state", settings: wraptest.Migrating,
			answer: wraptest.Status(200, "<html>"+wraptest.Canary), status: 422,
		},
		"401": {method: "GET", path: "/state", answer: wraptest.Status(401, "body"), status: 401, want: "body"},
		"403": {method: "GET", path: "/state", answer: wraptest.Status(403, "body"), status: 403, want: "body"},
		"500": {method: "GET", path: "/state", answer: wraptest.Status(500, "body"), status: 500, want: "body"},
		"sealed, not 200": {
			method: "GET", path: "/state",
			answer: wraptest.Status(203, string(wraptest.Sealed(t, wraptest.State))), status: 203, want: "sealed",
		},
		"locked":      {method: "LOCK", path: "/lock", body: "{}", answer: wraptest.Status(423, holder), status: 423, want: holder},
		"in conflict": {method: "LOCK", path: "/lock", body: "{}", answer: wraptest.Status(409, holder), status: 409, want: holder},
		"lock":        {method: "LOCK", path: "/lock", body: "{}", answer: wraptest.Status(200, "body"), status: 200},
		"lock, 500":   {method: "LOCK", path: "/lock", body: "{}", answer: wraptest.Status(500, "body"), status: 500, want: "body"},
		"unlock":      {method: "UNLOCK", path: "/lock", body: `{"ID":"1"}`, answer: wraptest.Status(200, "body"), status: 200},
		"unlock, 409": {
			method: "UNLOCK", path: "/lock", body: `{"ID":"1"}`,
			answer: wraptest.Status(409, holder), status: 409, want: holder,
		},
		"delete":         {method: "DELETE", path: "/state", answer: wraptest.Status(200, "body"), status: 200},
		"delete, 500":    {method: "DELETE", path: "/state", answer: wraptest.Status(500, "body"), status: 500, want: "body"},
		"another path":   {method: "GET", path: "/other", status: 404, want: "404 page not found\n"},
		"another method": {method: "PUT", path: "/state", body: wraptest.State, status: 405, want: "Method Not Allowed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sealed := c.want == "sealed"
			answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == c.method { // what is read before a change is none
					c.answer(w, r)
				}
			})
			url, last := wraptest.Upstream(t, &answer)
			settings := c.settings
			if settings == "" {
				settings = wraptest.Sealing
			}
			p, told := between(t, url, settings)
			p.version.Store(new(store.Version))
			w := ask(p, c.method, c.path, c.body)
			if got := w.Body.String(); w.Code != c.status || c.want != "" && got != c.want && !sealed || sealed && strings.Contains(got, `"lineage":"l","outputs"`) {
				t.Errorf("got %d %q", w.Code, got)
			}
			mistakes.Said(t, name, told.Take())
			if c.answer != nil && (last.Method != c.method || last.Body != c.body || last.Header.Get("Authorization") == "") {
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
  passphrase = "` + wraptest.Canary + ` of a file\n"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state { method = method.aes_gcm.m }
`
	file, err := wraptest.Target(t, odd).Encrypt(t.Context(), []byte(wraptest.State))
	if err != nil {
		t.Fatal(err)
	}
	mistakes := wraptest.OpenMistakes(t, "doubt")
	for name, answer := range map[string]string{"before the first state": "", "of a key that opens a state": string(file)} {
		handler := wraptest.Status(http.StatusOK, answer)
		url, _ := wraptest.Upstream(t, &handler)
		told := &wraptest.Said{}
		keys := states.Keys{State: wraptest.Target(t, odd), Doubts: wraptest.Settings(t, odd).Check()}
		if len(keys.Doubts) == 0 {
			t.Fatal("nothing is doubtful")
		}
		p := betweenWith(t, keys, states.Where{}, wraptest.EnvironOf(url), told)
		if got := ask(p, http.MethodGet, "/state", ""); (got.Code == http.StatusOK) != (answer != "") {
			t.Errorf("got %d: %s", got.Code, told.Take())
		}
		mistakes.Said(t, name, told.Take())
	}
}

// A state is sealed on its way, and the lock's ID goes with it.
//
// Promise: Only encrypted states
func TestWrite(t *testing.T) {
	t.Parallel()
	answer := wraptest.Status(404, "")
	url, last := wraptest.Upstream(t, &answer)
	p, told := between(t, url, wraptest.Sealing, "STATECRYPT_HTTP_UPDATE_METHOD=PUT")
	ask(p, "GET", "/state", "")
	ask(p, "GET", "/state", "")
	wraptest.OpenMistakes(t, "no state").Said(t, "asked twice", told.Take())
	answer = wraptest.Keeping("", 201)
	ask(p, "LOCK", "/lock", `{"ID":"4711"}`)
	if w := ask(p, "POST", "/state?ID=4711", wraptest.State); w.Code != 200 || told.Take() != "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	opened, err := wraptest.Target(t, wraptest.Sealing).Decrypt(t.Context(), []byte(last.Body))
	if err != nil || string(opened.Data) != wraptest.State || !opened.Encrypted {
		t.Errorf("the backend got %s, %v", last.Body, err)
	}
	digest := md5.Sum([]byte(last.Body)) //nolint:gosec // what the protocol wants
	if last.Method != "PUT" || last.Uri != "/s?ID=4711&team=a" || last.Header.Get("Content-Type") != "application/json" ||
		last.Header.Get("Content-Md5") != base64.StdEncoding.EncodeToString(digest[:]) {
		t.Errorf("the backend got %v", last)
	}
}

// A state is refused if it does not belong where it goes.
func TestLineage(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "lineage")
	for name, c := range map[string]struct {
		there  string // "" is none, "-" was not read, "401" could not be
		body   string
		force  bool
		status int
	}{
		"the same":                {there: wraptest.State, body: wraptest.State, status: 200},
		"the first":               {body: wraptest.State, status: 200},
		"another":                 {there: wraptest.State, body: wraptest.Other, status: 422},
		"another, forced":         {there: wraptest.State, body: wraptest.Other, force: true, status: 200},
		"not read":                {there: "-", body: wraptest.State, status: 422},
		"not read, forced":        {there: "-", body: wraptest.State, force: true, status: 200},
		"not readable":            {there: "401", body: wraptest.State, status: 422},
		"encrypted already":       {there: wraptest.State, body: string(wraptest.Sealed(t, wraptest.State)), status: 422},
		"encrypted, forced":       {there: wraptest.State, body: string(wraptest.Sealed(t, wraptest.State)), force: true, status: 422},
		"no state":                {there: wraptest.State, body: `{"canary":"` + wraptest.Canary + `"}`, force: true, status: 422},
		"nothing":                 {there: wraptest.State, force: true, status: 422},
		"lineage of a wrong kind": {there: wraptest.State, body: `{"version":4,"serial":1,"lineage":["` + wraptest.Canary + `"]}`, status: 422},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, there := wraptest.Status(404, ""), ""
			switch c.there {
			case "", "-":
			case "401":
				answer = wraptest.Status(401, "")
			default:
				there = string(wraptest.Sealed(t, c.there))
				answer = wraptest.Status(200, there)
			}
			url, last := wraptest.Upstream(t, &answer)
			p, told := between(t, url, wraptest.Sealing)
			p.guard.Force = c.force
			if c.there != "-" {
				ask(p, "GET", "/state", "")
			}
			answer = wraptest.Keeping(there, 200)
			ask(p, "LOCK", "/lock", `{"ID":"1"}`)
			told.Take()
			*last = wraptest.Request{}
			w := ask(p, "POST", "/state?ID=1", c.body)
			mistakes.Said(t, name, told.Take())
			if w.Code != c.status {
				t.Errorf("got %d, want %d", w.Code, c.status)
			}
			if (last.Method == "POST") != (c.status == 200) {
				t.Errorf("the backend got %v", last)
			}
		})
	}
}

// After a state was written, the next one is compared with it, not with the one
// before.
func TestLineageFollows(t *testing.T) {
	t.Parallel()
	answer := wraptest.Status(404, "")
	url, _ := wraptest.Upstream(t, &answer)
	p, _ := between(t, url, wraptest.Sealing)
	ask(p, "GET", "/state", "")
	answer = wraptest.Status(200, "")
	ask(p, "LOCK", "/lock", "{}")
	answer = wraptest.Status(500, "")
	ask(p, "POST", "/state", wraptest.Other) // not written
	answer = wraptest.Keeping("", 200)
	for _, c := range []struct {
		body   string
		status int
	}{{wraptest.State, 200}, {wraptest.Other, 422}, {wraptest.State, 200}} {
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
		"absent, 404":   {then: wraptest.Status(404, ""), status: 422},
		"absent, empty": {then: wraptest.Status(200, ""), status: 422},
		"another state": {then: wraptest.Status(200, string(wraptest.Sealed(t, wraptest.Other))), status: 422},
		"removed by us": {then: wraptest.Status(404, ""), remove: true, status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := wraptest.Keeping(string(wraptest.Sealed(t, wraptest.State)), 200)
			url, _ := wraptest.Upstream(t, &answer)
			p, _ := between(t, url, wraptest.Sealing)
			ask(p, "GET", "/state", "")
			ask(p, "LOCK", "/lock", "{}")
			if c.remove {
				ask(p, "DELETE", "/state", "")
			}
			answer = c.then
			ask(p, "GET", "/state", "")
			answer = wraptest.Keeping("", 200)
			if w := ask(p, "POST", "/state", wraptest.Other); w.Code != c.status {
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
	answer := wraptest.Status(200, string(wraptest.Sealed(t, wraptest.State)))
	url, last := wraptest.Upstream(t, &answer)
	p, _ := between(t, url, wraptest.Sealing)
	for _, given := range [][2]string{
		{}, {module.Username, ""}, {module.Username, "x" + p.password}, {module.Username, p.password[1:]}, {"", p.password},
	} {
		for _, path := range []string{"/state", "/lock", "/"} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", path, nil)
			r.SetBasicAuth(given[0], given[1])
			p.ServeHTTP(w, r)
			if w.Code != 401 || w.Body.Len() > 0 || last.Method != "" {
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
	mistakes := wraptest.OpenMistakes(t, "redirect")
	for name, c := range map[string]struct {
		method, body string
		code         int
		to           string
		status       int
	}{
		"same server":           {method: "GET", code: 302, to: "/there", status: 404},
		"write":                 {method: "POST", body: wraptest.State, code: 307, to: "/there", status: 200},
		"write becomes a read":  {method: "POST", body: wraptest.State, code: 302, to: "/there", status: 502},
		"another origin":        {method: "GET", code: 302, to: elsewhere.URL + "/s", status: 502},
		"write, another origin": {method: "POST", body: wraptest.State, code: 307, to: elsewhere.URL + "/s", status: 502},
	} {
		t.Run(name, func(t *testing.T) {
			keep := wraptest.Keeping("", 200)
			answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == c.method && r.URL.Path != "/there" {
					http.Redirect(w, r, c.to, c.code)
				} else {
					keep(w, r)
				}
			})
			url, _ := wraptest.Upstream(t, &answer)
			p, told := between(t, url, wraptest.Sealing, "STATECRYPT_HTTP_LOCK_ADDRESS=", "STATECRYPT_HTTP_UNLOCK_ADDRESS=")
			p.guard.Force = true
			p.version.Store(new(store.Version))
			ask(p, "LOCK", "/lock", `{"ID":"1"}`)
			w := ask(p, c.method, "/state?ID=1", c.body)
			mistakes.Said(t, name, told.Take())
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
	mistakes := wraptest.OpenMistakes(t, "redirects")
	for redirects, want := range map[int]int{10: 404, 11: 502} {
		left := redirects
		answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if left > 0 {
				left--
				http.Redirect(w, r, "/there", http.StatusFound)
			}
		})
		url, _ := wraptest.Upstream(t, &answer)
		p, told := between(t, url, wraptest.Sealing)
		w := ask(p, "GET", "/state", "")
		mistakes.Said(t, strconv.Itoa(redirects), told.Take())
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
	file := wraptest.Sealed(t, wraptest.State)
	const member = `"encrypted_data":"`
	start := bytes.Index(file, []byte(member)) + len(member)
	end := start + bytes.IndexByte(file[start:], '"') - 4 // the last four digits of base64 may hold unused bits
	probe.Every(t, file, func(damaged []byte) (string, error) {
		if len(damaged) == 0 {
			return "", errors.New("the backend says that there is none")
		}
		b := &states.Backend{State: fixed{data: damaged}}
		p := &Proxy{backend: b, say: func(string) {}}
		p.guard = &states.Guard{Target: wraptest.Target(t, wraptest.Sealing), Backend: b, Memory: &states.Memory{}, Say: p.say}
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
	sealed := wraptest.Sealed(t, wraptest.State)
	faults.Suite{
		Server: func(*testing.T) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, password, _ := r.BasicAuth(); password != wraptest.Canary {
					w.WriteHeader(401)
					return
				}
				_, _ = w.Write(sealed)
			})
		},
		Want: []byte(wraptest.State),
		Client: func(t *testing.T, f *faults.Front) faults.Client {
			told := &wraptest.Said{}
			p := betweenWith(t, states.Keys{State: wraptest.Target(t, wraptest.Sealing)}, states.Where{Limit: 1 << 20, Patience: f.Patience / 2},
				append(wraptest.EnvironOf(f.URL), "STATECRYPT_HTTP_CLIENT_CA_CERTIFICATE_PEM="+f.CA), told)
			child := httptest.NewServer(p)
			t.Cleanup(child.Close)
			return faults.Client{Secrets: []string{wraptest.Canary}, Ask: func(ctx context.Context) ([]byte, error) {
				return asTerraform(ctx, child.URL, p.password, told)
			}}
		},
		Reads:  func(r *http.Request, _ []byte) bool { return r.Method == http.MethodGet },
		Check:  func(*testing.T, error, bool) {},
		Golden: wraptest.OpenMistakes(t, "fault").Said,
		Sees: map[string]string{
			"certificate of an unknown authority": netfail.UnknownAuthority + "set client_ca_certificate_pem",
		},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "Retry-After is not passed on, so that nobody waits",
		},
	}.Run(t)
}

// asTerraform reads the state as Terraform's http backend does.
func asTerraform(ctx context.Context, url, password string, told *wraptest.Said) ([]byte, error) {
	told.Take()
	client := retryablehttp.NewClient()
	client.RetryMax, client.RetryWaitMin, client.RetryWaitMax, client.Logger = 1, time.Millisecond, time.Millisecond, nil
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, url+"/state", nil)
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth(module.Username, password)
	resp, err := client.Do(req)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil { // after a 5xx
		return nil, errors.New(strings.TrimSpace(strings.ReplaceAll(told.Take(), "\n", " ")))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != 200 {
		err = errors.New(strings.TrimSpace(strings.ReplaceAll(told.Take(), "\n", " ")))
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
	file := wraptest.Sealed(t, wraptest.State)
	for _, e := range nettest.Encodings() {
		answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Encoding"] = e.Names
			_, _ = w.Write(e.Body(file))
		})
		url, _ := wraptest.Upstream(t, &answer)
		p, told := between(t, url, wraptest.Sealing)
		w := ask(p, "GET", "/state", "")
		var err error
		if w.Code != http.StatusOK {
			err = errors.New(told.Take())
		}
		e.Check(t, []byte(wraptest.State), w.Body.Bytes(), err)
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
	url, _ := wraptest.Upstream(t, &answer)
	p, told := between(t, url, wraptest.Sealing)
	for _, step := range []struct {
		method, path string
		lines        int
	}{
		{http.MethodGet, "/state", 1}, {http.MethodGet, "/state", 0}, {http.MethodGet, "/state", 0},
		{"LOCK", "/lock", 0}, {http.MethodGet, "/state", 1},
	} {
		ask(p, step.method, step.path, `{"ID":"1"}`)
		if said := told.Take(); strings.Count(said, "\n") != step.lines {
			t.Errorf("%s: %q", step.method, said)
		}
	}
}
