package remote

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/net/http/httpproxy"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

// access is what a credentials block says, ready to be used. No two blocks share
// connections, because a proxy and a CA belong to the connection.
type access struct {
	block      string // its url; "" where there is no block
	transport  *http.Transport
	unverified bool
}

// grantFor returns what is meant for u. Blocks for an organization or a workspace
// are for its host; another host needs a block for all of it. What the variables
// are called depends on the host, which is thereby their home.
func (l *location) grantFor(u *url.URL) (source.Grant, error) {
	target := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}
	if source.Covers(target, l.address()) {
		target = l.address()
	}
	c := l.credentials
	names := variables(u.Host)
	c.Table = credentials(names...)
	c.Home = source.Home{Vars: names, Near: func(string, string) source.Nearness { return source.SamePlace }}
	return c.Redirected(target)
}

// accessTo returns what may be used for u.
func (l *location) accessTo(u *url.URL) (*access, error) {
	g, err := l.grantFor(u)
	if err != nil {
		return nil, err
	}
	key := g.String("url")
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, ok := l.accesses[key]; ok {
		return a, nil
	}
	a, err := newAccess(g, l.proxies)
	if err != nil {
		return nil, err
	}
	a.block, l.accesses[key] = key, a
	return a, nil
}

// tokenFor returns the token that may be sent to u, "" when there is none. It may
// read the files of the CLIs.
func (l *location) tokenFor(u *url.URL) (string, error) {
	g, err := l.grantFor(u)
	if err != nil || u.Scheme != "https" {
		return "", err
	}
	if token := g.String("token"); token != "" {
		return token, checkToken(g)
	}
	token := l.tokens.forHost(u.Host)
	if !web.IsFieldValue(token) {
		return "", errors.New("the token for " + outside.Line(u.Host, maxHost) +
			" in a file of the CLI contains a line break or another control character")
	}
	return token, nil
}

func checkToken(g source.Grant) error {
	if !web.IsFieldValue(g.String("token")) {
		return g.Errorf("token", "the token holds a line break or another control character")
	}
	return nil
}

// checkURLs refuses blocks that could never be used: their secrets would be
// missed in a less helpful way.
func (r *run) checkURLs() error {
	for _, e := range r.credentials.Entries {
		text := e.Settings["url"].Value
		if text == cty.NilVal || text.Type() != cty.String || !text.IsKnown() || text.IsNull() {
			continue // Credentials.For says what is wrong
		}
		u, err := source.ParseBase(text.AsString())
		if err != nil {
			continue // likewise
		}
		switch path := strings.Trim(u.Path, "/"); {
		case u.Scheme != "https":
			err = errors.New("the URL must begin with https://")
		case path != "" && path != "app" && !strings.HasPrefix(path, "app/"):
			err = errors.New("the URL of a host is required, such as https://app.terraform.io/, or that of an organization or workspace there, " +
				"as a browser shows it: https://app.terraform.io/app/acme/")
		default:
			continue
		}
		return &attr.Error{Address: e.Address, Attr: "url", Pos: e.Settings["url"].Pos, Err: err}
	}
	return nil
}

func newAccess(g source.Grant, proxies *httpproxy.Config) (*access, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	a := &access{transport: web.Transport(settings, proxies), unverified: g.Bool("skip_cert_verification")}
	settings.InsecureSkipVerify = a.unverified //nolint:gosec // the user's choice, with a warning at each read
	if err := checkToken(g); err != nil {
		return nil, err
	}
	if ca := g.String("client_ca_certificate_pem"); ca != "" {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM([]byte(ca)) {
			return nil, g.Errorf("client_ca_certificate_pem", "there is no certificate in PEM format in it")
		}
	}
	if text := g.String("proxy"); text != "" {
		own, err := web.ParseProxy(text)
		if err != nil {
			return nil, g.Errorf("proxy", "%w", err)
		}
		a.transport.Proxy = http.ProxyURL(own)
	}
	return a, nil
}
