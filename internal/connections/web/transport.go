package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/hashicorp/go-cleanhttp"
	"golang.org/x/net/http/httpproxy"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/trust"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Transport returns a transport that trusts the certificate authorities of w. It does not decompress
// responses; see [ReadBody].
func Transport(w world.World, settings *tls.Config, proxies *httpproxy.Config) *http.Transport {
	find := proxies.ProxyFunc()
	t := cleanhttp.DefaultPooledTransport()
	t.Proxy = func(req *http.Request) (*url.URL, error) { return find(req.URL) }
	t.TLSClientConfig = trust.Config(w, settings)
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &greeting{Conn: counted(ctx, conn)}, nil
	}
	t.DisableCompression = true
	t.MaxResponseHeaderBytes = 1 << 20
	t.OnProxyConnectResponse = proxyAnswer
	return t
}

// TransportFor returns a transport like [Transport], configured by skip_cert_verification,
// client_ca_certificate_pem and proxy in v.
func TransportFor(w world.World, v attr.Values, settings *tls.Config, proxies *httpproxy.Config) *http.Transport {
	settings.InsecureSkipVerify = v.Bool("skip_cert_verification") //nolint:gosec // the user's choice, with a warning at each read
	settings.RootCAs = Authorities([]byte(v.String("client_ca_certificate_pem")))
	t := Transport(w, settings, proxies)
	if text := v.String("proxy"); text != "" {
		own, _ := url.Parse(text) // the attribute's Check has validated the URL
		t.Proxy = http.ProxyURL(own)
	}
	return t
}

// Authorities returns the certificates in a PEM text, or nil if there are none.
func Authorities(text []byte) *x509.CertPool {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil
	}
	return pool
}

// Unverified returns the warning that a server's certificate was not verified. The parameter whose names the
// server.
func Unverified(whose, because string) netfail.Warning {
	return netfail.Unverified(whose, because, "read the credentials and replace the state")
}

// Unencrypted returns the warning that credentials were sent over a connection without TLS.
func Unencrypted(because string) netfail.Warning {
	return netfail.Unencrypted("The credentials and the state were", because, "read them and replace the state")
}

// Warnings returns a warning about a connection that works: either that the server was not verified, because
// of setting, or that others can read the connection. The parameter because is the reason for the latter.
func Warnings(unverified bool, setting string, exposed bool, because string) []netfail.Warning {
	switch {
	case unverified:
		return []netfail.Warning{Unverified("the server", setting)}
	case exposed:
		return []netfail.Warning{Unencrypted(because)}
	}
	return nil
}

// proxyAnswer returns an error if a proxy has refused the connection. The error of net/http would contain
// text from the proxy.
func proxyAnswer(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code == http.StatusProxyAuthRequired:
		return Final("the proxy refused the connection (%s); check its user name and password", Status(code))
	case isTransient(code):
		return Again("the proxy refused the connection (%s); check the proxy settings", Status(code))
	default:
		return Final("the proxy refused the connection (%s); check the proxy settings", Status(code))
	}
}

// Proxies returns the proxies in the environment variables that all Go programs read. It uses lookup, because
// the environment may be off.
func Proxies(lookup attr.LookupEnv) *httpproxy.Config {
	either := func(upper, lower string) string {
		value, _ := lookup.Get(upper, lower)
		return value
	}
	return &httpproxy.Config{
		HTTPProxy:  either("HTTP_PROXY", "http_proxy"),
		HTTPSProxy: either("HTTPS_PROXY", "https_proxy"),
		NoProxy:    either("NO_PROXY", "no_proxy"),
	}
}

// CheckAuthorities returns an error for a text that contains no certificate. An empty text is valid, and
// means the system's certificates.
func CheckAuthorities(text string) error {
	if text == "" || Authorities([]byte(text)) != nil {
		return nil
	}
	return recognize.NoContent("it holds no certificate in PEM format", text)
}

// CheckProxy returns an error unless text is a proxy URL or empty. An empty text means no proxy. Errors from
// libraries would repeat an invalid URL, including its password.
func CheckProxy(text string) error {
	u, err := url.Parse(text)
	isProxy := err == nil && u.Hostname() != "" && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)
	if text == "" || isProxy {
		return nil
	}
	return errors.New("this is not the URL of a proxy; write a URL like http://proxy.example.com:3128")
}

// ReadOnly is a transport that rejects all requests except GET requests without a body. It is for clients
// that could send others.
type ReadOnly struct{ Next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (r ReadOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet || req.Body != nil && req.Body != http.NoBody {
		return nil, errors.New("only GET requests without a body may be sent")
	}
	return r.Next.RoundTrip(req)
}

// Brief is a transport that truncates the bodies of error responses, for clients that read them completely.
type Brief struct{ Next http.RoundTripper }

const maxRefusal = 64 << 10 // the maximum size of an error response body, in bytes

// RoundTrip implements [http.RoundTripper].
func (b Brief) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.Next.RoundTrip(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		resp.Body = outside.Limit(resp.Body, maxRefusal)
	}
	return resp, err
}
