// Package googleauthtest implements fake Google token services for tests, for users, workload identities and
// impersonation.
package googleauthtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// UserToken is the token for users and workload identities.
const UserToken = "user-token"

// Tokens serves all token services, depending on the host. Its log contains lines of the form "host path
// authorization body".
type Tokens struct {
	nettest.Log[string]

	Workload string // the subject token that can be exchanged
	Account  string // the name, before the @, of the account that can be impersonated
	Token    string // the token for this account

	hung atomic.Pointer[func()]
}

// Hang makes all further requests hang, and calls told for each. If told is nil, requests are answered again.
func (s *Tokens) Hang(told func()) { s.hung.Store(&told) }

func (s *Tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // an incomplete body matches no case below
	s.Note(strings.Join([]string{r.Host, r.URL.Path, r.Header.Get("Authorization"), string(body)}, " "))
	if told := s.hung.Load(); told != nil && *told != nil {
		(*told)()
		<-r.Context().Done()
		return
	}
	has := func(text string) bool { return strings.Contains(string(body), text) }
	switch {
	case r.Host == "oauth2.googleapis.com" && r.URL.Path == "/token" && has("refresh_token=good"):
		nettest.Reply(w, 200, map[string]any{"access_token": UserToken, "expires_in": 3600, "token_type": "Bearer"})
	case r.Host == "sts.googleapis.com" && has("subject_token="+s.Workload):
		nettest.Reply(w, 200, map[string]any{
			"access_token": UserToken, "expires_in": 3600, "token_type": "Bearer",
			"issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
		})
	case r.Host == "iamcredentials.googleapis.com" && strings.Contains(r.URL.Path, fmt.Sprintf("/%s@", s.Account)):
		nettest.Reply(w, 200, map[string]any{"accessToken": s.Token, "expireTime": time.Now().Add(time.Hour).Format(time.RFC3339)})
	default:
		nettest.Reply(w, http.StatusForbidden, map[string]any{"error": "canary", "error_description": "canary"})
	}
}

// Lead directs all https connections of token clients, which are copied from the default transport, to the
// fake services. Call it in TestMain, and call stop at the end.
func (s *Tokens) Lead() (stop func()) { return Lead(s) }

// Lead works like [Tokens.Lead], for a handler that wraps the services.
func Lead(services http.Handler) (stop func()) {
	server := httptest.NewTLSServer(services)
	transport := http.DefaultTransport.(*http.Transport)
	transport.Proxy = nil // otherwise it would be looked up once, in whichever test runs first
	transport.TLSClientConfig = nettest.Anyhow(server)
	direct := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasSuffix(address, ":443") {
			address = server.Listener.Addr().String()
		}
		return direct(ctx, network, address)
	}
	return server.Close
}
