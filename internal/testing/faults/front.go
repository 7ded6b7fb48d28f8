// Package faults stands between a client and a faithful server in tests, and simulates network failures. [Suite]
// contains the table of faults, which sources and key providers share. Their own tests say what users see in each case.
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

// Options are the options of a front. The zero value is ready to use.
type Options struct {
	Hosts []string // host names for the certificate, in addition to 127.0.0.1

	// At selects the requests that response faults affect; nil selects all.
	At func(r *http.Request, body []byte) bool
}

// Front is a TLS server that passes requests and responses on unchanged, unless a fault is set.
type Front struct {
	URL   string // for example, https://127.0.0.1:12345
	Other string // another origin with the same certificate, which never has faults
	CA    string // the certificate of the signing authority, in PEM format

	// Patience is the time limit for clients that have one. It is short if nothing else ends the fault. Otherwise, it
	// is long enough for the slowest machine.
	Patience time.Duration

	authority *nettest.Authority
	options   Options
	behind    http.Handler
	server    *http.Server
	other     *http.Server
	ended     sync.WaitGroup // the running servers
	done      chan struct{}  // closed at the end of the test

	requests nettest.Log[Request] // requests that arrived at URL, except when TLS failed
	strayed  nettest.Log[Request] // requests that arrived at Other

	mu    sync.Mutex
	fault fault
	begun chan struct{} // closed when the fault first takes effect
	over  chan struct{} // closed when the fault ends
	hits  int
}

// Request is a received request.
type Request struct {
	*http.Request // without its body
	Body          []byte
	Text          string // all parts of the request that may contain a secret
}

// New starts a Front for a server. The Front is closed when the test ends.
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
	l := nettest.ListenApart(t) // a fault may close it while the client keeps asking
	*at = "https://" + l.Addr().String()
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols),
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, 0), // clients that hang up are expected
		TLSConfig: f.config(fault{}),
	}
	s.Protocols.SetHTTP1(true)
	if breaks {
		s.TLSConfig.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.config(f.handshake()), nil }
		l = listener{l, f}
	}
	f.ended.Go(func() { _ = s.ServeTLS(l, "", "") }) // returns after Close
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

// have sets the fault from now on, for new connections too. It returns a channel that is closed when the fault first
// takes effect. The fault called refused closes the servers for good.
func (f *Front) have(now fault) (begun <-chan struct{}) {
	f.mu.Lock()
	close(f.over)
	f.fault, f.hits, f.begun, f.over = now, 0, make(chan struct{}), make(chan struct{})
	begun = f.begun
	if now.refused {
		f.hit()
	}
	f.mu.Unlock()
	if now.refused { // in effect once Accept has returned
		f.server.Close()
		f.other.Close()
		f.ended.Wait()
	}
	return begun
}

// hit records that the fault took effect. The caller must hold the lock.
func (f *Front) hit() {
	if f.hits++; f.hits == 1 {
		close(f.begun)
	}
}

// handshake returns the current fault, which may be a certificate fault.
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

// record reads the whole request, so that the server notices when the client disconnects. It returns a copy whose body
// can be read again, because net/http tracks the body of the original request.
func record(r *http.Request) (*http.Request, Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20)) // a read error also truncates the copy
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

// listener applies connection faults.
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

// taker returns the function that takes over a new connection, or nil.
func (f *Front) taker() (take func(net.Conn, <-chan struct{}), over <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	take = f.fault.conn
	if take != nil {
		f.hit()
	}
	return take, f.over
}

// wait waits until the client disconnects or the test ends.
func (f *Front) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-f.done:
	}
}
