package httpsource

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

func TestStatus(t *testing.T) {
	var code int
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		if code != 204 && code != 304 {
			_, _ = w.Write([]byte("do not show this " + canary))
		}
	})
	withSecrets := block(s.URL, everything())
	golden := sourcetest.OpenMistakes(t, "http, statuses")
	for _, code = range []int{201, 206, 302, 304, 400, 401, 403, 410, 500, 501, 599} { // 302 has no Location
		at(s.URL+"/state?x="+canary, withSecrets).says(t, golden, strconv.Itoa(code)+", with a block")
		at(s.URL+"/state").says(t, golden, strconv.Itoa(code))
	}
	for _, code = range []int{204, 404} {
		for _, blocks := range [][]attrs{nil, {withSecrets}} {
			missing, ok := source.IsMissing(at(s.URL+"/state", blocks...).wantError(t))
			if !ok || missing.CredentialsSent != (blocks != nil) || !strings.Contains(missing.Detail, web.Status(code)) {
				t.Errorf("%d with %d blocks: got %+v", code, len(blocks), missing)
			}
		}
	}
}

// The block that is advised is for what the server asks for.
func TestChallenge(t *testing.T) {
	t.Parallel()
	basic, bearer := []string{"username = var.state_username", "password = var.state_password"}, []string{"bearer_token = var.state_token"}
	for name, c := range map[string]struct {
		challenges, want []string
	}{
		"nothing":  {nil, bearer},
		"Basic":    {[]string{`basic realm="x"`}, basic},
		"Bearer":   {[]string{"Bearer"}, bearer},
		"either":   {[]string{"Bearer", "Basic"}, bearer},
		"nonsense": {[]string{""}, bearer},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Www-Authenticate"] = c.challenges
			w.WriteHeader(401)
		})
		t.Run(name, func(*testing.T) {
			sourcetest.Lacks(t, at(s.URL+"/state").wantError(t), "credentials.http", append([]string{`url = "` + s.URL + `/state"`}, c.want...)...)
		})
	}
}

// A server that asks for nothing but Digest gets no block that could help.
func TestDigest(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Digest realm="x", nonce="`+canary+`"`)
		w.WriteHeader(401)
	})
	golden := sourcetest.OpenMistakes(t, "http, Digest")
	for name, blocks := range map[string][]attrs{"no block": nil, "a block": {block(s.URL, everything())}} {
		err := at(s.URL+"/state", blocks...).says(t, golden, name)
		if fault.Has[fault.NoBlock](err) {
			t.Errorf("a block is advised: %v", err)
		}
	}
}

// Variables of a job are for the state that TF_HTTP_ADDRESS names, and for others of its server
// if a block without anything says so.
func TestSibling(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, req *http.Request) {
		switch _, password, _ := req.BasicAuth(); {
		case strings.HasSuffix(req.URL.Path, "/hidden"):
			w.WriteHeader(404)
		case password != canary:
			w.WriteHeader(401)
		}
		_, _ = w.Write([]byte("state"))
	})
	golden := sourcetest.OpenMistakes(t, "http, another state")
	r := at(s.URL + "/other")
	r.env = map[string]string{"TF_HTTP_ADDRESS": s.URL + "/own", "TF_HTTP_USERNAME": "u", "TF_HTTP_PASSWORD": canary}
	err := r.says(t, golden, "refused")
	sourcetest.Lacks(t, err, "credentials.http", `url = "`+s.URL+`/other"`)
	hidden := at(s.URL + "/hidden")
	hidden.env = r.env
	hidden.says(t, golden, "hidden")
	r = at(s.URL+"/other", block(s.URL+"/other"))
	r.env = map[string]string{"TF_HTTP_ADDRESS": s.URL + "/own", "TF_HTTP_USERNAME": "u", "TF_HTTP_PASSWORD": canary}
	r.want(t, "state")
	r = at(s.URL + "/other")
	r.env = map[string]string{"TF_HTTP_ADDRESS": "https://example.com/own", "TF_HTTP_PASSWORD": canary}
	r.says(t, golden, "of another server")
}

func TestRevision(t *testing.T) {
	for etag, want := range map[string]string{
		"":           "",
		`"abc"`:      "abc",
		`W/"abc"`:    "abc",
		"abc":        "abc",
		"\"a\xffc\"": `a\xffc`,
	} {
		s := serve(t, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("ETag", etag)
			ok(w, req)
		})
		if got := at(s.URL).want(t, "state").Revision; got != want {
			t.Errorf("ETag %q: got the revision %q, want %q", etag, got, want)
		}
	}
}

func zip(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

// Promise: Cost
func TestGzip(t *testing.T) {
	packed := zip([]byte("state"))
	damaged := bytes.Clone(packed)
	damaged[len(damaged)-8] ^= 1 // in the checksum
	golden := sourcetest.OpenMistakes(t, "http, gzip")
	for name, tt := range map[string]struct {
		body     []byte
		encoding string
		want     string
		fails    bool
	}{
		"gzip":               {packed, "gzip", "state", false},
		"x-gzip":             {packed, "X-GZIP", "state", false},
		"identity":           {[]byte("state"), "identity", "state", false},
		"empty":              {nil, "gzip", "", true},
		"packed and empty":   {zip(nil), "gzip", "", true},
		"two members":        {append(bytes.Clone(packed), packed...), "gzip", "statestate", false},
		"damaged":            {damaged, "gzip", "", true},
		"cut":                {packed[:len(packed)-4], "gzip", "", true},
		"not gzip":           {[]byte("state " + canary), "gzip", "", true},
		"more after the end": {append(bytes.Clone(packed), "more"...), "gzip", "", true},
		"bomb":               {zip(make([]byte, 8<<20)), "gzip", "", true},
		"no compression":     {[]byte("state"), "br-" + canary, "state", false},
		"another encoding":   {[]byte("state"), "br", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, req *http.Request) {
				if got := req.Header.Get("Accept-Encoding"); got != "gzip" {
					t.Errorf("the client accepts %q", got)
				}
				w.Header().Set("Content-Encoding", tt.encoding)
				_, _ = w.Write(tt.body)
			})
			if tt.fails {
				at(s.URL).says(t, golden, name)
			} else {
				at(s.URL).want(t, tt.want)
			}
			s.wantRequests(t, 1)
		})
	}
}

// A server that answers 200 without a body says that there is no state, as to the backend.
//
// Promise: Pins
func TestEmptyBody(t *testing.T) {
	golden := sourcetest.OpenMistakes(t, "http, nothing")
	for name, header := range map[string]http.Header{
		"empty":            {"Content-Length": {"0"}},
		"in chunks":        {},
		"a page":           {"Content-Type": {"text/html"}},
		"with a checksum":  {"Content-Md5": {"1B2M2Y8AsgTpgAmY7PhCfg=="}},
		"with an encoding": {"Content-Encoding": {"aws-chunked"}},
		"with gzip, empty": {"Content-Encoding": {"gzip"}},
		"with a revision":  {"Etag": {`"1"`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				maps.Copy(w.Header(), header)
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
			})
			missing, ok := source.IsMissing(at(s.URL+"/state", block(s.URL, everything())).says(t, golden, name))
			if !ok || !missing.CredentialsSent || missing.Mistaken {
				t.Errorf("got %+v", missing)
			}
			s.wantRequests(t, 1)
		})
	}
}

func TestContentMD5(t *testing.T) {
	sum := func(b []byte) string { s := md5.Sum(b); return base64.StdEncoding.EncodeToString(s[:]) }
	packed := zip([]byte("state"))
	golden := sourcetest.OpenMistakes(t, "http, Content-MD5")
	for name, tt := range map[string]struct {
		header string
		gzip   bool
		fails  bool
	}{
		"right":                {sum([]byte("state")), false, false},
		"wrong":                {sum([]byte("other")), false, true},
		"not base64":           {canary + "?", false, true},
		"short":                {"c3Rh", false, true},
		"of the packed data":   {sum(packed), true, false},
		"of the unpacked data": {sum([]byte("state")), true, false},
		"wrong, gzip":          {sum([]byte("other")), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Content-MD5", tt.header)
				if tt.gzip {
					w.Header().Set("Content-Encoding", "gzip")
					_, _ = w.Write(packed)
				} else {
					ok(w, req)
				}
			})
			if tt.fails {
				at(s.URL).says(t, golden, name)
			} else {
				at(s.URL).want(t, "state")
			}
		})
	}
}

// A body that is shorter than announced breaks off, and is asked for again.
//
// Promise: Whole answers
func TestBrokenBody(t *testing.T) {
	for name, answer := range map[string]string{
		"length":       "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nstate",
		"chunks":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nstate\r\n",
		"gzip, length": "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n" + string(zip([]byte("state"))[:12]),
		"no answer":    "",
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) { hijack(w, answer) })
			at(s.URL).wantError(t, netfail.BrokeOff)
			s.wantRequests(t, 3)
		})
	}
}

func TestBrokenBodyThenState(t *testing.T) {
	var s *recorder
	s = serve(t, func(w http.ResponseWriter, req *http.Request) {
		if len(s.seen()) == 1 {
			hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nsta")
			return
		}
		ok(w, req)
	})
	at(s.URL).want(t, "state")
}

// The announced size is enough to refuse; nothing of the body is waited for.
func TestTooLargeByHeader(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Length", "1048577")
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	})
	at(s.URL).with("timeout", cty.StringVal("30")).wantError(t, meter.TooLarge(1<<20).Error()) // which a wait would not end with
	s.wantRequests(t, 1)
}

// Without an announced size, no more is read than allowed.
//
// Promise: Cost
func TestTooLargeInChunks(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.CopyN(w, zeros{}, 1<<30)
	})
	at(s.URL).wantError(t, meter.TooLarge(1<<20).Error())
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
