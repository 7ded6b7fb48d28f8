package gcs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

// client is who reads, with the tokens and connections that all its reads
// share.
type client struct {
	access    googleauth.Access
	bearer    googleauth.Bearer
	header    http.Header // of each request
	transport *http.Transport
}

// newClient signs in. The roots are the system's when nil.
func newClient(ctx context.Context, s settings, roots *x509.CertPool) (*client, error) {
	header, err := s.keyHeader()
	if err != nil {
		return nil, err
	}
	creds, err := s.access.Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.checkUniverse(creds.JSON()); err != nil {
		return nil, err
	}
	c := &client{access: s.access, bearer: googleauth.Bearer{Creds: creds}, header: header}
	c.transport = web.Transport(world.For(s.lookup != nil, true), &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, web.Proxies(s.lookup))
	if project, ok := s.lookup.Get(quotaVar); ok && isFieldValue(project) {
		c.header.Set("X-Goog-User-Project", project)
	}
	return c, nil
}

// checkUniverse keeps credentials from clouds that they are not for.
func (s settings) checkUniverse(document []byte) error {
	var file struct {
		Universe string `json:"universe_domain"`
	}
	if json.Unmarshal(document, &file) == nil && file.Universe != "" && file.Universe != s.universe {
		return errors.New("the credentials are for another cloud; set universe_domain, in the gcs block of credentials, to the one in them")
	}
	return nil
}

// authorize adds the secrets.
func (c *client) authorize(req *http.Request) error {
	token, err := c.bearer.GetRequestMetadata(req.Context())
	if err != nil {
		return web.Final("%w", c.access.Explain(req.Context(), err))
	}
	for name, value := range token {
		req.Header.Set(name, value)
	}
	maps.Copy(req.Header, c.header)
	return nil
}
