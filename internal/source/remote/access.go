package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// access sends requests with the connection settings of one credentials block. Blocks do not share
// connections, because a proxy and a CA belong to the connection.
type access struct {
	block      string // url of the block; "" if there is none
	transport  *http.Transport
	unverified bool
}

// grantFor returns the credentials for u. A block for an organization or a workspace covers its host; any
// other host needs a block for the whole host. Environment variables are only used for the host in their
// names.
func (l *location) grantFor(u *url.URL) (source.Grant, error) {
	c := l.credentials
	names := variables(u.Host)
	c.Table = credentials(names...)
	c.Home = source.Home{Vars: names, Compare: func(string, string) source.Match { return source.SamePlace }}
	return c.Redirected(l.target(u))
}

// target returns the URL that a block for u must cover.
func (l *location) target(u *url.URL) *url.URL {
	host := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}
	if source.Covers(host, l.address()) {
		return l.address()
	}
	return host
}

// accessTo returns the access with the credentials for u.
func (l *location) accessTo(ctx context.Context, u *url.URL) (*access, error) {
	g, err := l.grantFor(u)
	if err != nil {
		return nil, err
	}
	return l.accesses.Do(ctx, g.String("url"), func(context.Context) (*access, error) { return newAccess(l.world, g, l.proxies), nil })
}

// tokenFor returns the token that may be sent to u, or an empty string if there is none. It may read the
// CLI's files.
func (l *location) tokenFor(u *url.URL) (string, error) {
	g, err := l.grantFor(u)
	if err != nil || u.Scheme != "https" {
		return "", err
	}
	if token := g.String("token"); token != "" {
		return token, nil
	}
	token := l.tokens.forHost(u.Host)
	return token, source.CheckWord("the token for "+outside.Line(u.Host, maxHost)+" in a CLI file", token)
}

func checkURL(u *url.URL) error {
	switch path := strings.Trim(u.Path, "/"); {
	case u.Scheme != "https":
		return errors.New("the URL does not begin with https://; use https")
	case path != "" && path != "app" && !strings.HasPrefix(path, "app/"):
		return errors.New("this is not the URL of a host, an organization or a workspace; write a URL like https://app.terraform.io/ or " +
			"https://app.terraform.io/app/acme/")
	}
	return nil
}

func newAccess(w world.World, g source.Grant, proxies *httpproxy.Config) *access {
	transport := web.TransportFor(w, g.Values, &tls.Config{MinVersion: tls.VersionTLS12}, proxies)
	return &access{block: g.String("url"), transport: transport, unverified: g.Bool("skip_cert_verification")}
}
