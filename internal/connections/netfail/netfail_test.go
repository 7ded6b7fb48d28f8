package netfail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

const canary = "c4n4ry"

// asking returns what net/http reports about a GET of address.
func asking(t *testing.T, client *http.Client, address string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"?token="+canary, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err == nil {
		resp.Body.Close()
		t.Fatal("there is an answer")
	}
	return err
}

// peer is a server that says one thing on each connection and hangs up.
func peer(t *testing.T, says string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, says)
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

// What leaves this machine without encryption is exposed.
func TestIsExposed(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"http://127.0.0.1:8200/x": false, "http://127.9.9.9": false, "http://[::1]:8200": false, "http://localhost": false,
		"http://[::ffff:127.0.0.1]": false, "https://state.example.com": false, "": false,

		"http://state.example.com": true, "http://localhost.example.com": true, "http://x.localhost": true, "http://localhost.": true,
		"http://LOCALHOST": true, "http://127.1": true, "http://127.0.0.1.example.com": true, "http://0.0.0.0": true, "http://10.0.0.1": true,
		"HTTP://state.example.com": true,

		"http://127.0.0.1 http://127.0.0.1:3128": false, "http://127.0.0.1 http://proxy.example.com:3128": true,
		"https://127.0.0.1 http://proxy.example.com:3128": false,
	} {
		first, second, proxied := strings.Cut(address, " ")
		u, err := url.Parse(first)
		proxy, proxyErr := url.Parse(second)
		if err != nil || proxyErr != nil {
			t.Fatal(err, proxyErr)
		}
		if !proxied {
			proxy = nil
		}
		if got := IsExposed(u, proxy); got != want {
			t.Errorf("%s: got %t", address, got)
		}
	}
}

// What net/http reports when something goes wrong.
func TestReasonOfHTTP(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(slow.Close)
	modern := httptest.NewUnstartedServer(http.NotFoundHandler())
	modern.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	modern.StartTLS()
	t.Cleanup(modern.Close)

	trusting := func(c *tls.Config) *http.Client {
		c.RootCAs = x509.NewCertPool()
		c.RootCAs.AddCert(server.Certificate())
		return &http.Client{Transport: &http.Transport{TLSClientConfig: c}}
	}
	proxied := func(says string) *http.Client {
		proxy := &url.URL{Scheme: "http", Host: peer(t, says)}
		return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	}
	nowhere := &url.URL{Scheme: "http", Host: "proxy.invalid:3128"}
	for name, c := range map[string]struct {
		client  *http.Client
		address string
		want    string
		isTLS   bool
	}{
		"nobody listens": {
			client: http.DefaultClient, address: "http://[::1]:1",
			want: NotReached + ": dial tcp [::1]:1: connect: ",
		},
		"no such host": {client: http.DefaultClient, address: "http://nowhere.invalid", want: "the host nowhere.invalid" + NotFound},
		"no such proxy": {client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(nowhere)}},
			address: "http://nowhere.invalid", want: "the proxy host proxy.invalid" + NotFound + ": "},
		"too slow": {
			client: &http.Client{Timeout: 50 * time.Millisecond}, address: slow.URL,
			want: NotInTime,
		},
		"no answer": {
			client: http.DefaultClient, address: "http://" + peer(t, ""),
			want: BrokeOff,
		},
		"not HTTP": {
			client: http.DefaultClient, address: "http://" + peer(t, canary+"\r\n\r\n"),
			want: Invalid,
		},
		"HTTP to TLS": {
			client: http.DefaultClient, address: "http://" + peer(t, "\x15\x03\x01\x00\x02\x02\x0a"),
			want: speaksTLS,
		},
		"bad header": {
			client: http.DefaultClient, address: "http://" + peer(t, "HTTP/1.1 200 OK\r\n"+canary+"\r\n\r\n"),
			want: Invalid,
		},
		"proxy refuses": {
			client: proxied("HTTP/1.1 403 " + canary + "\r\n\r\n"), address: "https://a.example",
			want: Invalid,
		},

		"unknown authority": {
			client: http.DefaultClient, address: server.URL,
			want: UnknownAuthority + "TRUST", isTLS: true,
		},
		"another host": {
			client: trusting(&tls.Config{ServerName: "b.example"}), address: server.URL, isTLS: true,
			want: NotTrusted + ": x509: certificate is valid for example.com, ",
		},
		"no TLS": {
			client: http.DefaultClient, address: strings.Replace(slow.URL, "http:", "https:", 1), isTLS: true,
			want: NotTLS,
		},
		"alert": {
			client: trusting(&tls.Config{MaxVersion: tls.VersionTLS12}), address: modern.URL, isTLS: true,
			want: NoHandshake + ": remote error: tls: protocol version not supported",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := asking(t, c.client, c.address)
			if got := Reason(err, "TRUST"); !strings.Contains(got, c.want) || strings.Contains(got, canary) {
				t.Errorf("got %q of %v, want %q", got, err, c.want)
			}
			if IsTLS(err) != c.isTLS {
				t.Errorf("about TLS: %t, want %t: %v", !c.isTLS, c.isTLS, err)
			}
		})
	}
}

// What clients report that keep only a part of the error.
func TestReason(t *testing.T) {
	t.Parallel()
	text := func(s string) error { return errors.New(canary + ": " + s + " (" + canary + ")") }
	expired := x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	for _, c := range []struct {
		err         error
		trust, want string
	}{
		{err: fmt.Errorf("%s: %w", canary, context.Canceled), want: Cancelled},
		{err: fmt.Errorf("%s: %w", canary, context.DeadlineExceeded), want: NotInTime},
		{err: &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}, want: NotReached + ": dial tcp: i/o timeout"},
		{err: &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, want: NotInTime},
		{err: &net.DNSError{Err: "no such host", Name: "a\x1b[2J.example"}, want: `the host a\u001b[2J.example` + NotFound + ": no such host"},
		{err: &net.DNSError{Err: "no such host"}, want: "the host" + NotFound + ": no such host"},
		{err: reset, want: Ended + ": read tcp: read: connection reset by peer"},
		{err: &net.OpError{Op: "proxyconnect", Net: "tcp", Err: syscall.ECONNREFUSED},
			want: proxyNotReached + ": proxyconnect tcp: connection refused"},
		{err: syscall.ECONNRESET, want: failed + ": connection reset by peer"},
		{err: io.ErrUnexpectedEOF, want: BrokeOff},

		{err: expired, want: NotTrusted + ": x509: certificate has expired or is not yet valid: "},
		{
			err: x509.UnknownAuthorityError{}, trust: "TRUST",
			want: UnknownAuthority + "TRUST",
		},
		{err: x509.UnknownAuthorityError{}, want: NotTrusted + ": x509: certificate signed by unknown authority"},
		{
			err:  x509.SystemRootsError{Err: errors.New("none")},
			want: NotTrusted + ": x509: failed to load system roots",
		},
		{err: http.ErrSchemeMismatch, want: NotTLS},

		{err: text("x509: certificate signed by unknown authority"), trust: "TRUST", want: UnknownAuthority + "TRUST"},
		{err: text("x509: certificate signed by unknown authority"), want: NotTrusted + ": certificate signed by unknown authority"},
		{
			err:  text("x509: certificate has expired or is not yet valid"),
			want: NotTrusted + ": certificate has expired",
		},
		{
			err:  text("x509: certificate is valid for a, not b"),
			want: NotTrusted + ": certificate is valid for another host",
		},
		{err: text("dial tcp: lookup a: no such host"), want: "the host" + NotFound},
		{err: text("connect: connection refused"), want: NotReached + ": connection refused"},
		{err: text("failed to do connect handshake, response: x"), want: proxyRefuses},
		{err: text("context deadline exceeded"), want: NotInTime},
		{err: text("HTTP/1.1 200 OK"), want: Invalid},
	} {
		got := Reason(c.err, c.trust)
		if !strings.Contains(got, c.want) || strings.Contains(got, canary) {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
		if known := KnownReason(c.err, c.trust); (known == "") != (got == Invalid) {
			t.Errorf("%v: what is known is %q", c.err, known)
		}
	}
}
