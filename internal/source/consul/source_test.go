package consul

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/consul/consultest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

const (
	stateJSON = `{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"x","outputs":{}}`
	canary    = "canary-7e1f"
)

// hurried is a kind that does not wait long between two tries, each of which may
// take the timeout.
func hurried(timeout *time.Duration) source.Kind {
	kind := Kind()
	kind.Begin = func(s source.Settings) source.Open {
		r := newRun(s)
		r.patience = web.Patience{Timeout: *timeout, Tries: 1, WaitMin: time.Millisecond, WaitMax: 100 * time.Millisecond}
		return r.open
	}
	return kind
}

// holding is a server whose only token may read what the example says, and that
// serves nothing else.
func holding(t *testing.T, data []byte) *consultest.Server {
	s := consultest.New(t)
	s.Tokens = map[string]consultest.Policy{"token-" + canary: reader(t), "": func(string, string) bool { return false },
		"powerless": func(string, string) bool { return false }}
	s.Auth = "proxy:auth-" + canary
	if data != nil {
		s.Put("network", data)
	}
	return s
}

// access is what a block needs to read there.
func access(s *consultest.Server) attrs {
	return attrs{"address": text(s.URL), "access_token": text("token-" + canary), "http_auth": text(s.Auth)}
}

func placeOf(s *consultest.Server, a attrs) sourcetest.Place {
	return sourcetest.Place{
		Attrs: attrs{"path": text("network")}, Settings: settingsOf(a), Secrets: []string{canary},
		Changed: func() error {
			for _, r := range s.Requests() {
				if !strings.HasPrefix(r, "GET /") || !strings.HasSuffix(r, "/v1/kv/network") {
					return fmt.Errorf("it was asked for %s", r)
				}
			}
			return nil
		},
	}
}

func TestSource(t *testing.T) {
	bad := func(change func(*consultest.Server, attrs)) func(*testing.T) sourcetest.Place {
		return func(t *testing.T) sourcetest.Place {
			s := holding(t, []byte(stateJSON))
			a := access(s)
			change(s, a)
			return placeOf(s, a)
		}
	}
	replies := func(status int, body string, headers ...string) func(*testing.T) sourcetest.Place {
		return bad(func(s *consultest.Server, _ attrs) {
			s.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
				for i := 0; i+1 < len(headers); i += 2 {
					w.Header().Set(headers[i], headers[i+1])
				}
				w.WriteHeader(status)
				fmt.Fprint(w, body)
				return true
			}
		})
	}
	sourcetest.Run(t, sourcetest.Harness{
		Kind: hurried(new(time.Minute)),
		Place: func(t *testing.T, data []byte) sourcetest.Place {
			s := holding(t, data)
			return placeOf(s, access(s))
		},
		Bad: map[string]func(*testing.T) sourcetest.Place{
			"unknown token":    bad(func(_ *consultest.Server, a attrs) { a["access_token"] = text("other") }),
			"no token":         bad(func(_ *consultest.Server, a attrs) { delete(a, "access_token") }),
			"forbidden":        bad(func(_ *consultest.Server, a attrs) { a["access_token"] = text("powerless") }),
			"wrong password":   bad(func(_ *consultest.Server, a attrs) { a["http_auth"] = text("proxy:other") }),
			"another prefix":   bad(func(_ *consultest.Server, a attrs) { a["address"] = text(a["address"].AsString() + "/elsewhere") }),
			"https":            bad(func(_ *consultest.Server, a attrs) { a["scheme"] = text("https") }),
			"404 of a proxy":   replies(404, "not found: "+canary),
			"404, odd index":   replies(404, "", "X-Consul-Index", "x"),
			"404, index 0":     replies(404, "", "X-Consul-Index", "0"),
			"not JSON":         replies(200, "<html>"+canary),
			"no key":           replies(200, "[]"),
			"no list":          replies(200, `{"Key":"network","Value":"","ModifyIndex":1}`),
			"another key":      replies(200, `[{"Key":"other","Value":"","ModifyIndex":1}]`),
			"two keys":         replies(200, `[{"Key":"network","Value":""},{"Key":"network","Value":""}]`),
			"not base64":       replies(200, `[{"Key":"network","Value":"%","ModifyIndex":1}]`),
			"negative index":   replies(200, `[{"Key":"network","Value":"","ModifyIndex":-1}]`),
			"no content":       replies(204, ""),
			"broken":           replies(500, "{"+canary),
			"no leader":        replies(500, "No cluster leader "+canary),
			"moved":            replies(301, "", "Location", "/v1/kv/other"),
			"damaged gzip":     bad(func(s *consultest.Server, _ attrs) { s.Put("network", []byte("\x1f\x8bnot gzip")) }),
			"cut gzip":         bad(func(s *consultest.Server, _ attrs) { s.Put("network", nettest.Gzip([]byte(stateJSON))[:20]) }),
			"index of another": bad(func(s *consultest.Server, _ attrs) { s.Put("network", []byte(`{"current-hash":"x","chunks":[]}`)) }),
			"nobody there":     bad(func(_ *consultest.Server, a attrs) { a["address"] = text(nettest.Dead(t)) }),
			"missing CA file":  bad(func(_ *consultest.Server, a attrs) { a["ca_file"] = text("/no/such/file") }),
			"missing token file": bad(func(_ *consultest.Server, a attrs) {
				delete(a, "access_token")
				a["token_file"] = text("/no/such/file")
			}),
		},
		Stuck: func(t *testing.T) sourcetest.Place {
			s := holding(t, []byte(stateJSON))
			s.Answer = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
			return placeOf(s, access(s))
		},
	})
}

// What the user is told of each answer.
func TestRefusals(t *testing.T) {
	refuses := func(status int, body string) func(*consultest.Server, attrs, attrs) {
		return func(s *consultest.Server, _, _ attrs) {
			s.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(status)
				fmt.Fprint(w, body)
				return true
			}
		}
	}
	says := sourcetest.OpenMistakes(t, "consul, answers")
	for name, c := range map[string]struct {
		change func(s *consultest.Server, block, data attrs)
	}{
		"missing":         {func(s *consultest.Server, _, _ attrs) { s.Remove("network") }},
		"unknown token":   {func(_ *consultest.Server, b, _ attrs) { b["access_token"] = text("x") }},
		"no token":        {func(s *consultest.Server, b, _ attrs) { s.Auth = ""; delete(b, "access_token"); delete(b, "http_auth") }},
		"forbidden":       {func(_ *consultest.Server, b, _ attrs) { b["access_token"] = text("powerless") }},
		"wrong password":  {func(_ *consultest.Server, b, _ attrs) { b["http_auth"] = text("proxy:wrong") }},
		"datacenter":      {func(_ *consultest.Server, _, d attrs) { d["datacenter"] = text("dc9") }},
		"namespace":       {func(_ *consultest.Server, _, d attrs) { d["namespace"] = text("team") }},
		"partition":       {func(_ *consultest.Server, _, d attrs) { d["partition"] = text("team") }},
		"no leader":       {refuses(500, "No cluster leader")},
		"names, 1.21.5":   {refuses(500, `invalid key name, keys should respect the "^[a-zA-Z0-9,_./\\-?&=]+$" format`)},
		"names, later":    {refuses(500, "invalid key name, path traversal is not allowed")},
		"another 403":     {refuses(403, "Endpoint is blocked by agent configuration")},
		"bad gateway":     {refuses(502, canary)},
		"an odd status":   {refuses(299, canary)},
		"too many":        {refuses(429, canary)},
		"not implemented": {refuses(501, canary)},
	} {
		t.Run(name, func(t *testing.T) {
			s := holding(t, []byte(stateJSON))
			block, data := access(s), attrs{"path": text("network")}
			c.change(s, block, data)
			src, err := hurried(new(time.Minute)).Start(settingsOf(block))(request(t, data, nil))
			if err != nil {
				t.Fatal(err)
			}
			_, err = src.Fetch(t.Context())
			says.Error(t, name, err)
			missing, ok := source.IsMissing(err)
			if ok != (name == "missing") {
				t.Errorf("missing: %t", ok)
			}
			// Very old versions of Consul say that there is no key to those who may not read it.
			if ok && !missing.CredentialsSent {
				t.Error("credentials were sent, and it does not say so")
			}
		})
	}
}

func TestCompressed(t *testing.T) {
	s := holding(t, nettest.Gzip([]byte(stateJSON)))
	src := opened(t, settingsOf(access(s)), request(t, attrs{"path": text("network")}, nil))
	if snap := sourcetest.Fetch(t, src); string(snap.Data) != stateJSON {
		t.Errorf("got %q", snap.Data)
	}
	// A few kilobytes that are a lot.
	s.Put("network", nettest.Gzip(make([]byte, 20<<20)))
	if _, err := src.Fetch(t.Context()); err == nil || err.Error() != meter.TooLarge(1<<20).Error() {
		t.Errorf("got %v", err)
	}
}

// store stores a state as the backend does when it is large.
func store(s *consultest.Server, key, data string, size int) (hash string, names []string) {
	hash = checksum([]byte(data))
	for i := 0; i*size < len(data); i++ {
		name := fmt.Sprintf("%s/tfstate.%s/%d", strings.TrimRight(key, "/"), hash, i)
		s.Put(name, []byte(data[i*size:min(len(data), (i+1)*size)]))
		names = append(names, name)
	}
	s.Put(key, fmt.Appendf(nil, `{"chunks":["%s"],"current-hash":"%s"}`, strings.Join(names, `","`), hash))
	return hash, names
}

func TestParts(t *testing.T) {
	state := stateJSON + strings.Repeat(" ", 2*chunk)
	for path, size := range map[string]int{"network": chunk, "network/": chunk / 2, "deep/down/state": chunk} {
		s := consultest.New(t)
		_, names := store(s, path, state, size)
		if size < chunk {
			// No backend writes so many of them for so little.
			src := opened(t, settingsOf(access(s)), request(t, attrs{"path": text(path)}, nil))
			if _, err := src.Fetch(t.Context()); !meter.IsTooLarge(err) {
				t.Errorf("got %v", err)
			}
		}
		r := request(t, attrs{"path": text(path)}, nil)
		r.MaxSize = 8 << 20
		s.Requests()
		snap := sourcetest.Fetch(t, opened(t, settingsOf(attrs{"address": text(s.URL)}), r))
		if string(snap.Data) != state || snap.Revision != fmt.Sprint(s.Entry(path).ModifyIndex) {
			t.Errorf("%s: got %d bytes at %s", path, len(snap.Data), snap.Revision)
		}
		want := []string{"GET /v1/kv/" + path}
		for _, n := range names {
			want = append(want, "GET /v1/kv/"+n)
		}
		if got := s.Requests(); !slices.Equal(got, want) {
			t.Errorf("asked for %q, want %q", got, want)
		}
		r.MaxSize = int64(len(state)) - 1
		if _, err := opened(t, settingsOf(attrs{"address": text(s.URL)}), r).Fetch(t.Context()); err == nil ||
			err.Error() != meter.TooLarge(r.MaxSize).Error() {
			t.Errorf("got %v", err)
		}
	}
}

// The state is replaced after the list of its parts was read. The backend
// removes the old parts.
func TestReplacedMeanwhile(t *testing.T) {
	before, after := stateJSON+strings.Repeat(" ", chunk), stateJSON+strings.Repeat("\n", chunk)
	says := sourcetest.OpenMistakes(t, "consul, replaced meanwhile")
	for name, always := range map[string]bool{"once": false, "always": true} {
		t.Run(name, func(t *testing.T) {
			s := consultest.New(t)
			_, old := store(s, "network", before, chunk)
			replaced := 0
			s.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/v1/kv/network" || replaced > 0 && !always {
					return false
				}
				replaced++
				for _, k := range old {
					s.Remove(k)
				}
				_, old = store(s, "network", after+strings.Repeat(" ", replaced), chunk)
				return false
			}
			r := request(t, attrs{"path": text("network")}, nil)
			r.MaxSize = 8 << 20
			snap, err := opened(t, settingsOf(attrs{"address": text(s.URL)}), r).Fetch(t.Context())
			switch {
			case !always && (err != nil || string(snap.Data) != after+" "):
				t.Errorf("got %v", err)
			case always:
				says.Error(t, name, err)
			}
			if _, missing := source.IsMissing(err); missing {
				t.Error("a state that is being replaced is not missing")
			}
		})
	}
}

// What an index may not do: name other keys, or more than there can be.
//
// Promise: Objects of others
func TestHostileIndex(t *testing.T) {
	hash := strings.Repeat("a", 32)
	part := func(i int) string { return fmt.Sprintf(`"network/tfstate.%s/%d"`, hash, i) }
	many := make([]string, 1000)
	for i := range many {
		many[i] = part(i)
	}
	says := sourcetest.OpenMistakes(t, "consul, indexes")
	for i, index := range []string{
		`{"current-hash":"` + hash + `","chunks":["secret/key"]}`,
		`{"current-hash":"` + hash + `","chunks":["network/tfstate.` + hash + `/../0"]}`,
		`{"current-hash":"` + hash + `","chunks":[` + part(1) + `]}`,
		`{"current-hash":"` + hash + `","chunks":["networks/tfstate.` + hash + `/0"]}`,
		`{"current-hash":"` + hash + `","chunks":["network/tfstate.` + strings.Repeat("b", 32) + `/0"]}`,
		`{"current-hash":"../../` + strings.Repeat("a", 26) + `","chunks":["x"]}`,
		`{"current-hash":"` + strings.ToUpper(hash) + `","chunks":[]}`,
		`{"current-hash":1,"chunks":[]}`,
		`{"current-hash":null,"chunks":[]}`,
		`{"current-hash":"` + hash + `","chunks":"x"}`,
		`{"current-hash":"` + hash + `"}`,
		`{"current-hash":"` + hash + `","chunks":[1]}`,
		`{"current-hash":"` + hash + `","chunks":[]}`,
		`{"current-hash":"` + hash + `","chunks":[` + part(0) + `]}`,
		`{"current-hash":"` + hash + `","chunks":[` + strings.Join(many, ",") +
			`]}`,
		`{"version":4,"current-hash":"` + hash + `","chunks":[` + part(0) + `],"outputs":{"x":{"value":"` + canary + `"}}}`,
	} {
		s := consultest.New(t)
		s.Put("network", []byte(index))
		s.Put("secret/key", []byte(stateJSON))
		_, err := opened(t, settingsOf(attrs{"address": text(s.URL)}), request(t, attrs{"path": text("network")}, nil)).Fetch(t.Context())
		says.Error(t, strconv.Itoa(i), err)
		for _, r := range s.Requests() {
			if !strings.HasPrefix(r, "GET /v1/kv/network") || strings.Contains(r, "..") {
				t.Errorf("%.100s: asked for %s", index, r)
			}
		}
	}
	// A key that only looks like it is a state to the backend as well.
	for _, state := range []string{`{"Current-Hash":"x"}`, `["current-hash"]`, `{"outputs":{"current-hash":"x"}}`} {
		s := consultest.New(t)
		s.Put("network", []byte(state))
		if snap := sourcetest.Fetch(t, opened(t, settingsOf(attrs{"address": text(s.URL)}),
			request(t, attrs{"path": text("network")}, nil))); string(snap.Data) != state {
			t.Errorf("got %q", snap.Data)
		}
	}
}

func TestPartsAreDenied(t *testing.T) {
	s := holding(t, nil)
	store(s, "network", stateJSON, chunk)
	s.Tokens["token-"+canary] = func(_, key string) bool { return key == "network" }
	_, err := opened(t, settingsOf(access(s)), request(t, attrs{"path": text("network")}, nil)).Fetch(t.Context())
	sourcetest.OpenMistakes(t, "consul, parts").Error(t, "denied", err)
}

// Nobody waits for a server that asks for patience longer than for a cancelled
// run.
func TestCancelledWhileWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := holding(t, nil)
	s.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "31536000")
		w.WriteHeader(http.StatusTooManyRequests)
		time.AfterFunc(100*time.Millisecond, cancel)
		return true
	}
	run := newRun(settingsOf(access(s)).For(Kind()))
	run.patience.WaitMax = time.Hour
	src, err := run.open(request(t, attrs{"path": text("network")}, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Fetch(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzReadIndex(f *testing.F) {
	f.Add([]byte(stateJSON))
	f.Add([]byte(`{"current-hash":"` + strings.Repeat("a", 32) + `","chunks":["network/tfstate.a/0"]}`))
	f.Add([]byte(`{"current-hash":null}`))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, value []byte) {
		if x, err := readIndex(value); err == nil && x != nil && !md5Pattern.MatchString(x.hash) {
			t.Errorf("got the hash %q", x.hash)
		}
	})
}
