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

// Log records the requests to a server. The zero value is an empty log. It is safe for concurrent use.
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

// Requests returns the requests since the last call, in order.
func (l *Log[T]) Requests() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.entries
	l.entries = nil
	return out
}

// All returns the recorded requests, in order, and keeps them.
func (l *Log[T]) All() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// Reply responds with JSON. It adds no final line break, because the imitated servers do not send one.
func Reply(w http.ResponseWriter, status int, content any) {
	body, err := json.Marshal(content)
	if err != nil {
		panic(err) // a mistake in the test
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails if the client has gone
}

// Serve serves h without TLS until the test ends, and returns its URL.
func Serve(tb testing.TB, h http.Handler) string {
	tb.Helper()
	s := Unstarted(tb, h)
	s.Start()
	return s.URL
}

// Start serves h with TLS until the test ends. It uses the given certificates, or its own certificate if there are
// none.
func Start(tb testing.TB, h http.Handler, certificates ...tls.Certificate) *httptest.Server {
	tb.Helper()
	s := Unstarted(tb, h)
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	return s
}

// Unstarted returns a server for h that has not been started. It is closed at the end of the test.
func Unstarted(tb testing.TB, h http.Handler) *httptest.Server {
	tb.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // tests include clients that disconnect, or do not trust the server
	tb.Cleanup(func() {
		s.CloseClientConnections() // handlers may be waiting for this
		s.Close()
	})
	return s
}

// Everywhere returns a client that reaches h under every host name, with and without TLS, until the test ends. The
// client does not follow redirects.
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

// Tunnel handles a CONNECT request like a proxy, but always connects to address, whatever host the client asked for.
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

// Gzip compresses data. Several results may be concatenated.
func Gzip(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data) // writes to memory, so it cannot fail
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

// Dead returns an address on this machine where no server listens.
func Dead(tb testing.TB) string {
	tb.Helper()
	return "127.0.0.1:" + Port(tb)
}

// Port returns a port on this machine where no server listens. It is one of the ports of [ListenApart], so that nothing
// else takes it before a server starts there.
func Port(tb testing.TB) string {
	tb.Helper()
	listener := ListenApart(tb)
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String()) // a TCP address always has a port
	return port
}

// ListenApart listens on this machine, on a port below those that systems assign to connections and to listeners on
// port 0 (from 32768 on Linux, from 49152 elsewhere). After the listener is closed, a client that keeps asking there
// finds no server, rather than the server of another test.
func ListenApart(tb testing.TB) net.Listener {
	tb.Helper()
	for range 100 {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort))
		listener, err := new(net.ListenConfig).Listen(context.WithoutCancel(tb.Context()), "tcp", "127.0.0.1:"+port)
		if err == nil {
			return listener // no other server listens there
		}
	}
	tb.Fatalf("a hundred ports between %d and %d are all taken", firstPort, lastPort)
	return nil
}

// These constants limit the ports from which ListenApart chooses.
const firstPort, lastPort = 16384, 32768

// Mute returns an address on this machine that accepts connections and sends nothing, until the test ends.
func Mute(tb testing.TB) string {
	tb.Helper()
	listener := Listen(tb)
	tb.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// Anyhow returns a TLS configuration that trusts the server under any host name.
func Anyhow(s *httptest.Server) *tls.Config {
	return &tls.Config{RootCAs: Pool(PEM(s.Certificate())), ServerName: "example.com", MinVersion: tls.VersionTLS12}
}
