package httpsource

import (
	"crypto/tls"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/net/http/httpproxy"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Access sends requests with the headers and connection settings of a [source.Grant]. Grants do not share
// connections, because a client certificate and a proxy belong to the connection.
type Access struct {
	header     http.Header
	query      string // secret part of the query, encoded
	transport  *http.Transport
	unverified bool
	grant      source.Grant
	certified  atomic.Bool // whether a server has requested and received the client certificate
}

// refused returns the error for a server that refused the credentials.
func (a *Access) refused(status string) error {
	doubts := Doubts(a.grant.Values)
	err := errors.New("the server refused the credentials (" + status + ")" + doubts)
	if doubts == "" {
		err = fault.With(err, source.Rights)
	}
	return a.grant.Blame(err)
}

// Doubts returns the likely mistakes in credentials that a server refused, to be appended to an error message. It
// returns an empty string if there are none.
func Doubts(v attr.Values) (text string) {
	add := func(mistake string) { text += "; " + mistake }
	switch username, password := v.String("username") != "", v.String("password") != ""; {
	case password && !username:
		add("password is set, but username is not")
	case username && !password:
		add("username is set, but password is missing or empty")
	}
	headers := v.StringMap("headers")
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch value := headers[name]; {
		case value == "":
			add("a header in headers is empty; check whether a variable is empty")
		case strings.EqualFold(name, "Authorization") && !strings.Contains(value, " "):
			add("the value of Authorization does not begin with a scheme like Basic or Bearer")
		}
	}
	return text
}

func newAccess(w world.World, g source.Grant, proxies *httpproxy.Config) (*Access, error) {
	a := &Access{query: query(g), unverified: g.Bool("skip_cert_verification"), grant: g}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if a.header, err = header(g); err == nil {
		err = a.identify(g, settings)
	}
	if err != nil {
		return nil, g.Errorf("", "%w", err)
	}
	a.transport = web.TransportFor(w, g.Values, settings, proxies)
	return a, nil
}

// RoundTrip sends a copy of req with the secrets. The secrets are not added to req itself, so that they
// cannot appear in errors or in the Referer of a redirect.
func (a *Access) RoundTrip(req *http.Request) (*http.Response, error) {
	wire := req.Clone(req.Context())
	// http.Client sets the Referer to the URL that redirected here, including its query.
	wire.Header.Del("Referer")
	maps.Copy(wire.Header, a.header)
	if a.query != "" && wire.URL.RawQuery != "" {
		wire.URL.RawQuery += "&"
	}
	wire.URL.RawQuery += a.query
	resp, err := a.transport.RoundTrip(wire)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// sends reports whether requests carry a secret. A client certificate counts once a server has received it.
func (a *Access) sends() bool {
	return len(a.header) > 0 || a.query != "" || a.certified.Load()
}

// Exposes reports whether others on the network could read a secret that was sent with req.
func (a *Access) Exposes(req *http.Request) bool {
	proxy, _ := a.transport.Proxy(req)
	return a.sends() && netfail.IsExposed(req.URL, proxy)
}

// identify adds the client certificate of g, if there is one, to c. A server receives it if it requests one.
func (a *Access) identify(g source.Grant, c *tls.Config) error {
	certificate, key := g.String("client_certificate_pem"), g.String("client_private_key_pem")
	if certificate == "" {
		return nil
	}
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return errors.New("client_certificate_pem and client_private_key_pem are not a certificate and its unencrypted key in PEM format; " +
			"correct them")
	}
	c.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if asked.SupportsCertificate(&pair) != nil {
			return &tls.Certificate{}, nil
		}
		a.certified.Store(true)
		return &pair, nil
	}
	return nil
}

// Connect returns an Access with the credentials and authorities in a block of the table [Backend]. The
// credentials are added to each request, so the caller must not follow redirects to another origin.
func Connect(v attr.Values) (*Access, error) {
	env := v.Environment()
	return newAccess(world.For(env, true), source.Grant{Values: v, Found: true, Env: env}, web.Proxies(env))
}
