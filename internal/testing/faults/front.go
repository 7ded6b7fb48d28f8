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

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Options of a front. The zero value is fine.
type Options struct {
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

	// Patience is how long a client may wait that has a limit: short where nothing
	// else ends the fault, and otherwise so long that no machine is too slow.
	Patience time.Duration

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
	begun chan struct{} // closed when the fault befalls somebody
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
	f := &Front{
		CA: a.PEM, Patience: patience, authority: a, options: o, behind: behind,
		done: make(chan struct{}), over: make(chan struct{}),
	}
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
	l := nettest.ListenApart(t) // a fault closes it, and the client asks on
	*at = "https://" + l.Addr().String()
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols),
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, 0), // clients that hang up are what this is about
		TLSConfig: f.config(fault{}),
	}
	s.Protocols.SetHTTP1(true)
	if breaks {
		s.TLSConfig.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.config(f.handshake()), nil }
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
	c := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	if broken.oldTLS {
		c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
	}
	return c
}

// have makes something go wrong from now on, for new connections too, and
// returns what is closed when it first does. Who is refused stays refused.
func (f *Front) have(now fault) (begun <-chan struct{}) {
	f.mu.Lock()
	close(f.over)
	f.fault, f.hits, f.begun, f.over = now, 0, make(chan struct{}), make(chan struct{})
	begun = f.begun
	if now.refused {
		f.hit()
	}
	f.mu.Unlock()
	if now.refused { // which is so once Accept has returned
		f.server.Close()
		f.other.Close()
		f.ended.Wait()
	}
	return begun
}

// hit is called, with the lock, when the fault befalls somebody.
func (f *Front) hit() {
	if f.hits++; f.hits == 1 {
		close(f.begun)
	}
}

// handshake returns the fault, which may be one of certificates.
func (f *Front) handshake() fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault.flaw != nil || f.fault.unknown || f.fault.oldTLS {
		f.hit()
	}
	return f.fault
}

func (f *Front) handle(w http.ResponseWriter, r *http.Request) {
	r, request := record(r)
	f.requests.Note(request)
	f.mu.Lock()
	answer := f.fault.answer
	if f.options.At != nil && !f.options.At(r, request.Body) || f.fault.once && f.hits > 0 {
		answer = nil
	}
	if answer != nil {
		f.hit()
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
		take, over := l.front.taker()
		if take == nil {
			return conn, nil
		}
		go take(conn, over)
	}
}

// taker is what has a new connection to itself, or nil.
func (f *Front) taker() (take func(net.Conn, <-chan struct{}), over <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	take = f.fault.conn
	if take != nil {
		f.hit()
	}
	return take, f.over
}

// wait is as long as a client is there, or the test.
func (f *Front) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-f.done:
	}
}
