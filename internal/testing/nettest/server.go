package nettest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Log is what a server was asked. The zero value is empty, and it is safe for
// concurrent use.
type Log[T any] struct {
	mu      sync.Mutex
	entries []T
}

// Note adds a request.
func (l *Log[T]) Note(request T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, request)
}

// Requests returns what was asked since the last call, in order.
func (l *Log[T]) Requests() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.entries
	l.entries = nil
	return out
}

// All returns what was asked, in order, and keeps it.
func (l *Log[T]) All() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// Reply answers with JSON, without the line end that the servers it stands
// for do not send.
func Reply(w http.ResponseWriter, status int, content any) {
	body, err := json.Marshal(content)
	if err != nil {
		panic(err) // a mistake of the test
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has gone
}

// Serve serves h without TLS until the test ends, and returns its URL.
func Serve(tb testing.TB, h http.Handler) string {
	tb.Helper()
	s := Unstarted(tb, h)
	s.Start()
	return s.URL
}

// Start serves h with TLS until the test ends, with a certificate of its own
// unless it gets one.
func Start(tb testing.TB, h http.Handler, certificates ...tls.Certificate) *httptest.Server {
	tb.Helper()
	s := Unstarted(tb, h)
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	return s
}

// Unstarted is a server of h that ends with the test, whoever starts it.
func Unstarted(tb testing.TB, h http.Handler) *httptest.Server {
	tb.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // clients that leave, or do not trust it, are part of tests
	tb.Cleanup(func() {
		s.CloseClientConnections() // which handlers may wait for
		s.Close()
	})
	return s
}

// Everywhere returns a client that reaches h under every name, with TLS and
// without, until the test ends. It follows no redirect.
func Everywhere(tb testing.TB, h http.Handler) *http.Client {
	tb.Helper()
	secure, plain := Start(tb, h), strings.TrimPrefix(Serve(tb, h), "http://")
	config := Anyhow(secure)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, plain)
		},
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&tls.Dialer{Config: config}).DialContext(ctx, network, secure.Listener.Addr().String())
		},
	}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Tunnel does what a proxy does with CONNECT, and leads to address whatever the
// client has asked for.
func Tunnel(w http.ResponseWriter, r *http.Request, address string) {
	server, err := new(net.Dialer).DialContext(r.Context(), "tcp", address)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer server.Close()
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the client has gone
	}
	defer client.Close()
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

// Gzip packs data. What it returns for several may follow each other.
func Gzip(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data) // to memory
	_ = z.Close()
	return b.Bytes()
}

// Listen listens on this machine.
func Listen(tb testing.TB) net.Listener {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(context.WithoutCancel(tb.Context()), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return listener
}

// Dead returns an address on this machine where nobody listens.
func Dead(tb testing.TB) string {
	tb.Helper()
	return "127.0.0.1:" + Port(tb)
}

// Port returns a port of this machine where nobody listens, out of those of [ListenApart], so that
// nobody has taken it by the time a server starts there.
func Port(tb testing.TB) string {
	tb.Helper()
	listener := ListenApart(tb)
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String()) // which it has
	return port
}

// ListenApart listens on this machine, at a port below those that systems give to connections and to
// listeners on port 0 (from 32768 on Linux, from 49152 elsewhere). Once the listener is closed, a client
// that still asks there meets nobody, and not the server of another test.
func ListenApart(tb testing.TB) net.Listener {
	tb.Helper()
	for range 100 {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort))
		listener, err := new(net.ListenConfig).Listen(context.WithoutCancel(tb.Context()), "tcp", "127.0.0.1:"+port)
		if err == nil {
			return listener // nobody else listens there
		}
	}
	tb.Fatalf("a hundred ports between %d and %d are all taken", firstPort, lastPort)
	return nil
}

// The ports that ListenApart chooses from.
const firstPort, lastPort = 16384, 32768

// Mute returns an address on this machine where connections are accepted and
// nothing is said, until the test ends.
func Mute(tb testing.TB) string {
	tb.Helper()
	listener := Listen(tb)
	tb.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// Anyhow trusts the server under whatever name it is asked for.
func Anyhow(s *httptest.Server) *tls.Config {
	return &tls.Config{RootCAs: Pool(PEM(s.Certificate())), ServerName: "example.com", MinVersion: tls.VersionTLS12}
}
