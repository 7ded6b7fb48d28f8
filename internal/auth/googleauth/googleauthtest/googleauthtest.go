// Package googleauthtest is Google's token services for tests: those of users,
// of workload identities and of impersonation.
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

// UserToken is what users and workload identities get.
const UserToken = "user-token"

// Tokens is the services, told apart by the host. Its log has lines of "host
// path authorization body".
type Tokens struct {
	nettest.Log[string]

	Workload string // the subject token that is exchanged
	Account  string // that may be impersonated, before the @
	Token    string // of this account

	hung atomic.Pointer[func()]
}

// Hang has nobody get an answer from now on, and told of each request. With nil,
// that is over.
func (s *Tokens) Hang(told func()) { s.hung.Store(&told) }

func (s *Tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is missing of it is no good
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

// Lead leads every https connection of the clients of tokens, which are made
// from the default transport, to the services. It is for TestMain, which calls
// stop in the end.
func (s *Tokens) Lead() (stop func()) { return Lead(s) }

// Lead is [Tokens.Lead] for what stands before the services.
func Lead(services http.Handler) (stop func()) {
	server := httptest.NewTLSServer(services)
	transport := http.DefaultTransport.(*http.Transport)
	transport.Proxy = nil // it would be looked up once, in whatever test comes first
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
