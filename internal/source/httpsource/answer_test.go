package httpsource

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
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
	for _, tt := range []struct {
		code       int
		block, not string
	}{
		{201, "answered 201 Created", "answered 201 Created"},
		{206, "answered 206 Partial Content", "answered 206 Partial Content"},
		{302, "answered 302 Found", "answered 302 Found"}, // without a Location
		{304, "answered 304 Not Modified", "answered 304 Not Modified"},
		{400, "answered 400 Bad Request", "answered 400 Bad Request"},
		{401, "refused the credentials (401 Unauthorized)", "answered 401 Unauthorized, and no credentials were sent to " + s.URL +
			"; add them to the settings"},
		{403, "refused the credentials (403 Forbidden)", "answered 403 Forbidden, and no credentials were sent to " + s.URL},
		{410, "answered 410 Gone", "answered 410 Gone"},
		{500, "answered 500 Internal Server Error; try again later, or see its log (after 3 tries)", "answered 500 Internal Server " +
			"Error; try again later, or see its log (after 3 tries)"},
		{501, "answered 501 Not Implemented", "answered 501 Not Implemented"},
		{599, "answered 599; try again later, or see its log (after 3 tries)", "answered 599; try again later, or see its log (after 3 tries)"},
	} {
		code = tt.code
		at(s.URL+"/state?x="+canary, withSecrets).wantError(t, tt.block)
		at(s.URL+"/state").wantError(t, tt.not)
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
	for _, blocks := range [][]attrs{nil, {block(s.URL, everything())}} {
		err := at(s.URL+"/state", blocks...).wantError(t, "it requires an authentication that is not supported, such as Digest")
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
	r := at(s.URL + "/other")
	r.env = map[string]string{"TF_HTTP_ADDRESS": s.URL + "/own", "TF_HTTP_USERNAME": "u", "TF_HTTP_PASSWORD": canary}
	err := r.wantError(t, "TF_HTTP_PASSWORD is meant for another state of this server")
	sourcetest.Lacks(t, err, "credentials.http", `url = "`+s.URL+`/other"`)
	hidden := at(s.URL + "/hidden")
	hidden.env = r.env
	hidden.wantError(t, "404 Not Found; TF_HTTP_PASSWORD is meant for another state of this server")
	r = at(s.URL+"/other", block(s.URL+"/other"))
	r.env = map[string]string{"TF_HTTP_ADDRESS": s.URL + "/own", "TF_HTTP_USERNAME": "u", "TF_HTTP_PASSWORD": canary}
	r.want(t, "state")
	r = at(s.URL + "/other")
	r.env = map[string]string{"TF_HTTP_ADDRESS": "https://example.com/own", "TF_HTTP_PASSWORD": canary}
	r.wantError(t, "no credentials were sent to "+s.URL+"; add them to the settings")
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
	for name, tt := range map[string]struct {
		body      []byte
		encoding  string
		want, err string
	}{
		"gzip":               {packed, "gzip", "state", ""},
		"x-gzip":             {packed, "X-GZIP", "state", ""},
		"identity":           {[]byte("state"), "identity", "state", ""},
		"empty":              {nil, "gzip", "", "there is no state"},
		"packed and empty":   {zip(nil), "gzip", "", "there is no state"},
		"two members":        {append(bytes.Clone(packed), packed...), "gzip", "statestate", ""},
		"damaged":            {damaged, "gzip", "", "unpacking the gzip data: gzip: invalid checksum"},
		"cut":                {packed[:len(packed)-4], "gzip", "", "unpacking the gzip data: unexpected EOF"},
		"not gzip":           {[]byte("state " + canary), "gzip", "", "unpacking the gzip data: "},
		"more after the end": {append(bytes.Clone(packed), "more"...), "gzip", "", "unpacking the gzip data: "},
		"bomb":               {zip(make([]byte, 8<<20)), "gzip", "", "unpacking the gzip data: the file is larger than 1048576 bytes"},
		"no compression":     {[]byte("state"), "br-" + canary, "state", ""},
		"another encoding":   {[]byte("state"), "br", "", "encoded with br"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, req *http.Request) {
				if got := req.Header.Get("Accept-Encoding"); got != "gzip" {
					t.Errorf("the client accepts %q", got)
				}
				w.Header().Set("Content-Encoding", tt.encoding)
				_, _ = w.Write(tt.body)
			})
			if tt.err == "" {
				at(s.URL).want(t, tt.want)
			} else {
				at(s.URL).wantError(t, tt.err)
			}
			s.wantRequests(t, 1)
		})
	}
}

// A server that answers 200 without a body says that there is no state, as to the backend.
//
// Promise: Pins
func TestEmptyBody(t *testing.T) {
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
			missing, ok := source.IsMissing(at(s.URL+"/state", block(s.URL, everything())).wantError(t, "200 OK, and nothing"))
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
	for name, tt := range map[string]struct {
		header string
		gzip   bool
		err    string
	}{
		"right":                {sum([]byte("state")), false, ""},
		"wrong":                {sum([]byte("other")), false, "does not match its Content-MD5"},
		"not base64":           {canary + "?", false, "not base64"},
		"short":                {"c3Rh", false, "does not match"},
		"of the packed data":   {sum(packed), true, ""},
		"of the unpacked data": {sum([]byte("state")), true, ""},
		"wrong, gzip":          {sum([]byte("other")), true, "does not match"},
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
			if tt.err == "" {
				at(s.URL).want(t, "state")
			} else {
				at(s.URL).wantError(t, tt.err)
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
			at(s.URL).wantError(t, netfail.BrokeOff+" (after 3 tries)")
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
	at(s.URL).with("timeout", cty.StringVal("30")).wantError(t, "larger than 1048576 bytes") // which a wait would not end with
	s.wantRequests(t, 1)
}

// Without an announced size, no more is read than allowed.
//
// Promise: Cost
func TestTooLargeInChunks(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.CopyN(w, zeros{}, 1<<30)
	})
	at(s.URL).wantError(t, "larger than 1048576 bytes")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
