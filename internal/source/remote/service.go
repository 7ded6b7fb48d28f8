package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// serviceKey is a host, and the block with the settings for connecting to it.
type serviceKey struct{ host, block string }

// service returns the URL of the API. The host publishes it in a document at a well-known path. The document
// is public, so no token is sent. It is read once per run.
func (l *location) service(ctx context.Context) (*url.URL, error) {
	a, err := l.accessTo(ctx, l.address())
	if err != nil {
		return nil, err
	}
	return l.services.Do(ctx, serviceKey{l.host, a.block}, func(ctx context.Context) (*url.URL, error) {
		service, err := l.discover(ctx)
		if err != nil {
			return nil, err
		}
		return service, l.checkToken(service)
	})
}

func (l *location) discover(ctx context.Context) (*url.URL, error) {
	x := &exchange{location: l, anonymous: true}
	at := &url.URL{Scheme: "https", Host: l.host, Path: "/.well-known/terraform.json"}
	const maxServices = 1 << 20 // bytes
	var offered map[string]json.RawMessage
	err := x.get(ctx, at, "application/json", func(resp *http.Response) error {
		_, err := readJSON(resp, maxServices, errLong, &offered)
		return err
	})
	switch code := statusOf(err); {
	case code == http.StatusNotFound:
		return nil, fmt.Errorf("%s offers no Terraform services (404 Not Found); check the argument hostname", x.origin())
	case code != 0:
		return nil, fmt.Errorf("%s answered %s to the request for its list of services; check the argument "+
			"hostname", x.origin(), web.Status(code))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", x.origin(), err)
	}
	// The cloud and remote backends look for the first two; state.v2 only serves states.
	for _, id := range []string{"tfe.v2", "tfe.v2.1", "tfe.v2.2", "state.v2"} {
		var text string
		if json.Unmarshal(offered[id], &text) == nil && text != "" {
			return x.parseService(text)
		}
	}
	return nil, fmt.Errorf("%s offers no service for states (tfe.v2 or state.v2); check the argument hostname", x.origin())
}

// parseService parses the URL of a service, which may be relative to the URL of the document.
func (x *exchange) parseService(text string) (*url.URL, error) {
	u, err := x.asked.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s returned a service URL that is not valid", x.origin())
	}
	if err := web.MayLead(x.asked, u); err != nil {
		return nil, fmt.Errorf("%s returned an address for a service, but %w", x.origin(), err)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%s returned a service URL with a query or a fragment", x.origin())
	}
	return u, nil
}

// checkToken returns an error if there is no token for the service. Without a token, the service would report
// that the workspace does not exist.
func (l *location) checkToken(service *url.URL) error {
	token, err := l.tokenFor(service)
	if err != nil || token != "" {
		return err
	}
	if service.Host == l.host {
		add := ", or add a token to {settings}"
		if missed := l.credentials.Uncovered(l.target(service)); missed != "" {
			add = ". No credentials block supplies the token: " + missed
		}
		set := "set the variable " + variable(l.host) + ", or run"
		if strings.Contains(l.host, ":") { // no shell allows a colon in a variable name
			set = "run"
		}
		return fault.Known(fmt.Errorf("there is no token for %s%s; %s terraform login or tofu login%s", l.host, l.tokens.trouble(), set, add),
			l.noToken(service))
	}
	return fault.Known(fmt.Errorf("the API of %s is at %s, but a token for one host is not sent to another host; if that host may receive a "+
		"token, add one for it to {settings}", l.host, outside.Line(source.Origin(service), maxHost)), l.noToken(service))
}

// noToken returns the error for a server for which no block has a token.
func (l *location) noToken(server *url.URL) fault.NoBlock {
	return source.NoCredentials("remote", l.target(server), "token = var.state_token")
}

// at returns the URL of an API resource below service.
func at(service *url.URL, path ...string) *url.URL {
	for i, segment := range path {
		path[i] = url.PathEscape(segment)
	}
	u := *service
	u.Path = strings.TrimSuffix(u.Path, "/") + "/"
	return u.JoinPath(path...)
}
