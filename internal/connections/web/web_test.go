package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// get asks a server that gives one answer after the other, the last one for
// ever. It returns what was read, and how often.
func get(t *testing.T, answers ...http.HandlerFunc) (data string, tries int, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tries++
		answers[min(tries, len(answers))-1](w, r)
	}))
	defer server.Close()
	from, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := Wire{Patience: Patience{Tries: 2}, Transport: Transport(world.World{}, new(tls.Config), Proxies(nil))}
	err = c.Get(t.Context(), from, http.Header{"X-Test": {"1"}}, func(resp *http.Response) error {
		switch resp.StatusCode {
		case http.StatusOK:
			b, err := ReadBody(resp, 100, io.Discard)
			data = string(b)
			return err
		case http.StatusNotFound:
			return &source.MissingError{Detail: "nothing"}
		}
		return Final("the server answered %s", Status(resp.StatusCode))
	})
	return data, tries, err
}

// A name of an encoding that is no compression changes nothing; what is compressed is unpacked,
// or refused by name.
func TestEncodings(t *testing.T) {
	for _, e := range nettest.Encodings() {
		data, tries, err := get(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Encoding"] = e.Names
			_, _ = w.Write(e.Body([]byte("state")))
		})
		e.Check(t, []byte("state"), []byte(data), err)
		if tries != 1 {
			t.Errorf("%q: %d tries", e.Names, tries)
		}
	}
}

func TestGet(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	state := func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "state"+r.Header.Get("X-Test")) }
	short := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "state")
	}
	long := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 101)) }
	packed := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "state")
	}
	says := testkit.OpenGolden(t, "../testdata/mistakes.txt", "answers")
	for name, c := range map[string]struct {
		answers []http.HandlerFunc
		tries   int
		fails   bool
	}{
		"at once":                  {[]http.HandlerFunc{state}, 1, false},
		"after a status":           {[]http.HandlerFunc{status(503), status(408), state}, 3, false},
		"after a broken answer":    {[]http.HandlerFunc{short, state}, 2, false},
		"never":                    {[]http.HandlerFunc{status(503)}, 3, true},
		"broken":                   {[]http.HandlerFunc{short}, 3, true},
		"broken, then never":       {[]http.HandlerFunc{short, status(503)}, 3, true},
		"refused":                  {[]http.HandlerFunc{status(403)}, 1, true},
		"not implemented":          {[]http.HandlerFunc{status(501)}, 1, true},
		"missing":                  {[]http.HandlerFunc{status(404)}, 1, true},
		"missing, after a failure": {[]http.HandlerFunc{status(500), status(404)}, 2, true},
		"too large":                {[]http.HandlerFunc{long}, 1, true},
		"not packed":               {[]http.HandlerFunc{packed}, 1, true},
	} {
		data, tries, err := get(t, c.answers...)
		if !c.fails && (err != nil || data != "state1") || tries != c.tries {
			t.Errorf("%s: got %q, %v after %d tries", name, data, err, tries)
		}
		if c.fails {
			says.Error(t, name, err)
		}
		if meter.IsTooLarge(err) != (name == "too large") {
			t.Errorf("%s: %v is taken for too much, or not", name, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrClosedPipe)
	c := Wire{Transport: Transport(world.World{}, new(tls.Config), Proxies(nil))}
	err := c.Get(ctx, &url.URL{Scheme: "http", Host: "127.0.0.1:1"}, nil, nil)
	testkit.OpenGolden(t, "../testdata/mistakes.txt", "cancelled").Error(t, "with a cause", err)
}

// A server may ask for a wait in either form, but not for more than the longest.
func TestBackoff(t *testing.T) {
	const longest = 2 * time.Hour
	date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for after, want := range map[string]struct{ least, most time.Duration }{
		"7":                   {least: 7 * time.Second, most: 7 * time.Second},
		"31536000":            {least: longest, most: longest},
		"9223372036854775807": {least: 0, most: longest},
		date(time.Hour):       {least: time.Minute, most: time.Hour},
		date(24 * time.Hour):  {least: longest, most: longest},
		date(-time.Hour):      {},
		"soon":                {least: time.Second, most: time.Second},
	} {
		answer := &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {after}}}
		if got := Backoff(time.Second, longest, 0, answer); got < want.least || got > want.most {
			t.Errorf("%s: got %v, want %v to %v", after, got, want.least, want.most)
		}
	}
}

// What is asked for keys may be asked again. Each try is signed anew, and the
// answer is told whatever its status is.
func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		statuses []int // of the answers, in turn
		body     string
		status   int
		tries    int
		err      string
	}{
		"answer":          {statuses: []int{200}, body: "keys", status: 200, tries: 1},
		"refusal":         {statuses: []int{403}, body: "no", status: 403, tries: 1},
		"redirect":        {statuses: []int{307}, status: 307, tries: 1},
		"after a failure": {statuses: []int{500, 429, 200}, body: "keys", status: 200, tries: 3},
		"out of order":    {statuses: []int{500}, body: "no", status: 500, tries: 3},
		"endless":         {statuses: []int{200}, body: strings.Repeat("x", maxAnswer+1), status: 200, tries: 1, err: "longer than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = append(got, r.Method+" "+string(body))
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(c.statuses[min(len(got), len(c.statuses))-1])
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			signed := 0
			w := Wire{
				Patience: Patience{Tries: 2}, Transport: Transport(world.World{}, new(tls.Config), Proxies(nil)),
				Authorize: func(r *http.Request) error {
					signed++
					text := strings.Repeat("s", signed) // signatures differ in length once they are encoded
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
					return nil
				},
			}
			status, body, err := w.Ask(t.Context(), http.MethodPost, server.URL, nil)
			if c.err == "" && (err != nil || string(body) != c.body) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %.20q, %v", body, err)
			}
			if want := []string{"POST s", "POST ss", "POST sss"}[:c.tries]; status != c.status || !slices.Equal(got, want) {
				t.Errorf("got %d after %q, want %d after %q", status, got, c.status, want)
			}
		})
	}
	refuses := Wire{Transport: http.DefaultTransport, Authorize: func(*http.Request) error { return Final("there are no keys") }}
	if _, _, err := refuses.Ask(t.Context(), http.MethodGet, "http://127.0.0.1:1", nil); err == nil || err.Error() != "there are no keys" {
		t.Errorf("got %v", err)
	}
}

// TestTraffic: the bytes of requests with the context are counted in both directions, and those of no others.
func TestTraffic(t *testing.T) {
	t.Parallel()
	const received, sent = 3 << 20, 1 << 20
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, received))
	}))
	defer server.Close()
	client := &http.Client{Transport: Transport(world.World{}, new(tls.Config), Proxies(nil))}
	defer client.CloseIdleConnections()
	post := func(ctx context.Context) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, bytes.NewReader(make([]byte, sent)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
	}
	ctx, traffic := WithTraffic(t.Context())
	post(ctx)
	in, out := traffic.Bytes()
	if in < received || in > received*11/10 || out < sent || out > sent*11/10 {
		t.Errorf("%d received, %d sent", in, out)
	}
	client.CloseIdleConnections()
	post(t.Context())
	if again, _ := traffic.Bytes(); again != in {
		t.Errorf("the bytes of another request count: %d, then %d", in, again)
	}
}

// TestHungUp checks the error for a server that ends the TLS handshake at once. A load balancer may do so for a moment,
// so there are further attempts.
func TestHungUp(t *testing.T) {
	t.Parallel()
	l := nettest.Listen(t)
	tries := make(chan struct{}, 9)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			tries <- struct{}{}
			_, _ = conn.Read(make([]byte, 64<<10))
			_ = conn.Close()
		}
	}()
	transport := Transport(world.World{}, &tls.Config{MinVersion: tls.VersionTLS12}, Proxies(nil))
	wire := Wire{Patience: Patience{Timeout: time.Minute, Tries: 2}, Transport: transport}
	_, _, err := wire.Ask(t.Context(), http.MethodGet, "https://"+l.Addr().String(), nil)
	testkit.OpenGolden(t, "../testdata/mistakes.txt", "handshake").Error(t, "hung up", err)
	if len(tries) != 3 {
		t.Errorf("%d tries, want 3", len(tries))
	}
}

// Only reads leave the process.
//
// Promise: Reading changes nothing
func TestReadOnly(t *testing.T) {
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1:1/", strings.NewReader("x"))
	resp, err := ReadOnly{Next: http.DefaultTransport}.RoundTrip(request)
	if err == nil {
		resp.Body.Close()
	}
	testkit.OpenGolden(t, "../testdata/mistakes.txt", "reads only").Error(t, "PUT", err)
}

// TestWellPacked: an honest state may unpack to far more than a hundred times its size.
func TestWellPacked(t *testing.T) {
	state := make([]byte, 8<<20)
	packed := nettest.Gzip(state)
	for _, size := range []int64{-1, int64(len(packed))} {
		got, err := Decode(bytes.NewReader(packed), http.Header{"Content-Encoding": {"gzip"}}, size, 16<<20)
		if err != nil || !bytes.Equal(got, state) {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
	}
}
