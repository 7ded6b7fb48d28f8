// Package faults stands between a client and a faithful server in tests, and
// makes go wrong what goes wrong on networks. [Suite] has the one table of it
// that sources and key providers run; what their users see of each row is in
// their tests.
package faults

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/nettest"
)

// Options of a front. The zero value is fine.
type Options struct {
	HTTP2 bool     // instead of HTTP/1.1, for gRPC
	Hosts []string // that the certificate is for, besides 127.0.0.1

	// At chooses the requests that a fault of answers befalls, nil all of them.
	At func(r *http.Request, body []byte) bool
}

// Front is a server with TLS that passes requests on and answers back, and
// does so faithfully unless it is told otherwise.
type Front struct {
	URL   string // https://127.0.0.1:12345
	Other string // another origin with the same certificate, which answers faithfully
	CA    string // PEM of the authority that signed the certificate

	authority *nettest.Authority
	options   Options
	behind    http.Handler
	server    *http.Server
	other     *http.Server
	ended     sync.WaitGroup // the servers
	done      chan struct{}  // closed when the test ends

	requests nettest.Log[Request] // what arrived at URL, unless TLS broke
	strayed  nettest.Log[Request] // what arrived at Other

	mu    sync.Mutex
	fault fault
	over  chan struct{} // closed when the fault ends
	hits  int
}

// Request is one that arrived.
type Request struct {
	*http.Request // without its body
	Body          []byte
	Text          string // everything in it that may carry a secret
}

// New starts a front before a server. It ends with the test.
func New(t testing.TB, behind http.Handler, o Options) *Front {
	t.Helper()
	a := nettest.NewAuthority()
	f := &Front{CA: a.PEM, authority: a, options: o, behind: behind, done: make(chan struct{}), over: make(chan struct{})}
	f.server = f.serve(t, f.handle, &f.URL, true)
	f.other = f.serve(t, f.elsewhere, &f.Other, false)
	t.Cleanup(func() {
		f.have(fault{})
		close(f.done)
		f.server.Close()
		f.other.Close()
	})
	return f
}

func (f *Front) serve(t testing.TB, h http.HandlerFunc, at *string, breaks bool) *http.Server {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	*at = "https://" + l.Addr().String()
	faithful := f.config(fault{})
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols),
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, 0), // clients that hang up are what this is about
		TLSConfig: faithful,
	}
	s.Protocols.SetHTTP1(!f.options.HTTP2)
	s.Protocols.SetHTTP2(f.options.HTTP2)
	if breaks {
		s.TLSConfig = faithful.Clone()
		s.TLSConfig.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			broken := f.now()
			c := f.config(broken)
			if f.options.HTTP2 {
				c.NextProtos = []string{"h2"}
			}
			if broken.oldTLS {
				c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
			}
			return c, nil
		}
		l = listener{l, f}
	}
	f.ended.Go(func() { _ = s.ServeTLS(l, "", "") }) // ends with Close
	return s
}

func (f *Front) config(broken fault) *tls.Config {
	authority := f.authority
	if broken.unknown {
		authority = nettest.NewAuthority()
	}
	certificate := authority.Issue(broken.flaw, f.options.Hosts...).Pair()
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
}

// have makes something go wrong from now on, for new connections too. Who is
// refused stays refused.
func (f *Front) have(now fault) {
	f.mu.Lock()
	close(f.over)
	f.fault, f.hits, f.over = now, 0, make(chan struct{})
	f.mu.Unlock()
	if now.refused { // which is so once Accept has returned
		f.server.Close()
		f.other.Close()
		f.ended.Wait()
	}
}

func (f *Front) now() fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault
}

func (f *Front) handle(w http.ResponseWriter, r *http.Request) {
	r, request := record(r)
	f.requests.Note(request)
	f.mu.Lock()
	answer := f.fault.answer
	if f.options.At != nil && !f.options.At(r, request.Body) || f.fault.once && f.hits > 0 {
		answer = nil
	} else {
		f.hits++
	}
	f.mu.Unlock()
	if answer == nil {
		f.behind.ServeHTTP(w, r)
		return
	}
	answer(&exchange{front: f, w: w, r: r, request: request})
}

func (f *Front) elsewhere(w http.ResponseWriter, r *http.Request) {
	r, request := record(r)
	f.strayed.Note(request)
	f.behind.ServeHTTP(w, r)
}

// record reads the whole request, so that the server notices when a client
// goes. It returns a copy whose body can be read again: net/http goes by the
// body of the original.
func record(r *http.Request) (*http.Request, Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20)) // what is missing of it is missing in the copy too
	r = r.WithContext(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	user, password, _ := r.BasicAuth()
	query, _ := url.QueryUnescape(r.URL.RawQuery)
	return r, Request{
		Request: r.Clone(context.Background()),
		Body:    body,
		Text:    fmt.Sprint(r.Method, r.RequestURI, query, r.Header, user, password, string(body)),
	}
}

// listener has the faults of connections happen.
type listener struct {
	net.Listener
	front *Front
}

func (l listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.front.mu.Lock()
		take, over, speech := l.front.fault.conn, l.front.over, l.front.fault.speech
		l.front.mu.Unlock()
		if l.front.options.HTTP2 && speech != "" {
			take = l.front.say(speech)
		}
		if take == nil {
			return conn, nil
		}
		go take(conn, over)
	}
}

// say is for a connection on which HTTP/2 is agreed on, and not spoken.
func (f *Front) say(speech string) func(net.Conn, <-chan struct{}) {
	return func(c net.Conn, _ <-chan struct{}) {
		conn := tls.Server(c, f.server.TLSConfig)
		defer conn.Close()
		_, _ = io.WriteString(conn, speech)
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, 1<<20)) // until the client goes
	}
}

// wait is as long as a client is there, or the test.
func (f *Front) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-f.done:
	}
}
