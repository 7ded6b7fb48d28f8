package nettest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
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

// Start serves h with TLS until the test ends.
func Start(tb testing.TB, h http.Handler) *httptest.Server {
	tb.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // clients that leave, or do not trust it, are part of tests
	s.StartTLS()
	tb.Cleanup(s.Close)
	return s
}

// Everywhere returns a client that reaches h under every name, with TLS and
// without, until the test ends. It follows no redirect.
func Everywhere(tb testing.TB, h http.Handler) *http.Client {
	tb.Helper()
	secure, plain := httptest.NewTLSServer(h), httptest.NewServer(h)
	tb.Cleanup(secure.Close)
	tb.Cleanup(plain.Close)
	config := Anyhow(secure)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, plain.Listener.Addr().String())
		},
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&tls.Dialer{Config: config}).DialContext(ctx, network, secure.Listener.Addr().String())
		},
	}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Anyhow trusts the server under whatever name it is asked for.
func Anyhow(s *httptest.Server) *tls.Config {
	return &tls.Config{RootCAs: Pool(PEM(s.Certificate())), ServerName: "example.com", MinVersion: tls.VersionTLS12}
}
