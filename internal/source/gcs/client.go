package gcs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
)

// client holds the tokens and connections that all reads with one credentials block share.
type client struct {
	bearer    *googleauth.Bearer
	header    http.Header // headers for every request
	transport *http.Transport
}

// newClient signs in and returns a client. If roots is nil, the client trusts the system's certificates.
func newClient(ctx context.Context, s settings, roots *x509.CertPool) (*client, error) {
	header, err := s.keyHeader()
	if err != nil {
		return nil, err
	}
	bearer, err := s.access.Open(ctx)
	if err != nil {
		return nil, err
	}
	transport := web.Transport(s.access.World, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, web.Proxies(s.lookup))
	return &client{bearer, header, transport}, nil
}

// authorize adds the headers with the access token and the encryption key to req.
func (c *client) authorize(req *http.Request) error {
	header, err := c.bearer.Header(req.Context())
	if err != nil {
		return err
	}
	maps.Copy(req.Header, header)
	maps.Copy(req.Header, c.header)
	return nil
}
