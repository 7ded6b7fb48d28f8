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

// Client holds the tokens and connections shared by all requests with one credentials block.
type Client struct {
	Transport *http.Transport
	Key       http.Header // the request headers for objects encrypted with a customer-supplied key

	bearer *googleauth.Bearer
}

// newClient signs in and returns a client. If roots is nil, the client trusts the system's
// certificates.
func newClient(ctx context.Context, s settings, roots *x509.CertPool) (*Client, error) {
	key, err := s.keyHeader()
	if err != nil {
		return nil, err
	}
	bearer, err := s.access.Open(ctx)
	if err != nil {
		return nil, err
	}
	transport := web.Transport(s.access.World, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, web.Proxies(s.lookup))
	return &Client{transport, key, bearer}, nil
}

// Authorize adds the headers with the access token to req.
func (c *Client) Authorize(req *http.Request) error {
	header, err := c.bearer.Header(req.Context())
	if err != nil {
		return err
	}
	maps.Copy(req.Header, header)
	return nil
}
