package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
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

// Transport returns a transport that trusts the authorities of w. It does not decompress answers: see
// [ReadBody].
func Transport(w world.World, settings *tls.Config, proxies *httpproxy.Config) *http.Transport {
	find := proxies.ProxyFunc()
	t := cleanhttp.DefaultPooledTransport()
	t.Proxy = func(req *http.Request) (*url.URL, error) { return find(req.URL) }
	t.TLSClientConfig = trust.Config(w, settings)
	t.DisableCompression = true
	t.MaxResponseHeaderBytes = 1 << 20
	t.OnProxyConnectResponse = proxyAnswer
	return t
}

// TransportFor returns a transport like [Transport], with the values of skip_cert_verification,
// client_ca_certificate_pem and proxy in v.
func TransportFor(w world.World, v attr.Values, settings *tls.Config, proxies *httpproxy.Config) *http.Transport {
	settings.InsecureSkipVerify = v.Bool("skip_cert_verification") //nolint:gosec // the user's choice, with a warning at each read
	settings.RootCAs = Authorities([]byte(v.String("client_ca_certificate_pem")))
	t := Transport(w, settings, proxies)
	if text := v.String("proxy"); text != "" {
		own, _ := url.Parse(text) // the Check of the attribute has found no error
		t.Proxy = http.ProxyURL(own)
	}
	return t
}

// Authorities returns the certificates in a text in PEM format, nil if there are none.
func Authorities(text []byte) *x509.CertPool {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil
	}
	return pool
}

// Unverified returns the warning about a server, called whose, that was not verified.
func Unverified(whose, because string) netfail.Warning {
	return netfail.Unverified(whose, because, "read the credentials and replace the state")
}

// Unencrypted returns the warning about a connection without TLS over which credentials were sent.
func Unencrypted(because string) netfail.Warning {
	return netfail.Unencrypted("The credentials and the state were", because, "read them and replace the state")
}

// Warnings returns the warning about a working connection whose server was not verified, because of
// setting, or else about an exposed connection, which others can read for the reason because.
func Warnings(unverified bool, setting string, exposed bool, because string) []netfail.Warning {
	switch {
	case unverified:
		return []netfail.Warning{Unverified("the server", setting)}
	case exposed:
		return []netfail.Warning{Unencrypted(because)}
	}
	return nil
}

// proxyAnswer returns the error for a refusal of a proxy. The error of net/http would contain text of
// the proxy.
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

// Proxies returns the proxies in the variables that every Go program reads. It reads them through
// lookup, because the environment may be switched off.
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

// CheckAuthorities returns an error for a text without certificates. An empty text is valid, and stands
// for the system's certificates.
func CheckAuthorities(text string) error {
	if text == "" || Authorities([]byte(text)) != nil {
		return nil
	}
	return recognize.NoContent("it holds no certificate in PEM format", text)
}

// CheckProxy returns an error for a text that is not the URL of a proxy; an empty text means no
// proxy. Errors of libraries would repeat a wrong URL with its password.
func CheckProxy(text string) error {
	u, err := url.Parse(text)
	isProxy := err == nil && u.Hostname() != "" && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)
	if text == "" || isProxy {
		return nil
	}
	return errors.New("a URL is required, such as http://proxy.example.com:3128")
}

// ReadOnly is a transport that refuses all requests but a GET without a body, for clients that could
// send others.
type ReadOnly struct{ Next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (r ReadOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet || req.Body != nil && req.Body != http.NoBody {
		return nil, errors.New("only GET requests without a body may be sent")
	}
	return r.Next.RoundTrip(req)
}

// Brief is a transport that cuts the bodies of errors, for clients that read them whole.
type Brief struct{ Next http.RoundTripper }

const maxRefusal = 64 << 10 // bytes of the body of an error

// RoundTrip implements [http.RoundTripper].
func (b Brief) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.Next.RoundTrip(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		resp.Body = outside.Limit(resp.Body, maxRefusal)
	}
	return resp, err
}
