// Package azureauthtest implements a fake Microsoft sign-in service for tests, including the identity service
// of virtual machines and the identity providers of pipelines.
package azureauthtest

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// The client that may sign in, unless a test decides otherwise.
const (
	Tenant   = "11111111-2222-3333-4444-555555555555"
	ClientID = "66666666-7777-8888-9999-000000000000"
	Secret   = "azureauthtest-client-secret"
)

// Serve handles a request to any host. The function granted decides whether to grant a token request; if it
// is nil, the client secret must be Secret. The function token returns the token for a scope or resource.
func Serve(w http.ResponseWriter, r *http.Request, granted func(form url.Values) bool, token func(scope string) string) {
	base := "https://" + r.Host + "/" + Tenant
	switch path, query := r.URL.Path, r.URL.Query(); {
	case strings.HasSuffix(path, "/discovery/instance"):
		nettest.Reply(w, 200, map[string]any{
			"tenant_discovery_endpoint": base + "/v2.0/.well-known/openid-configuration",
			"metadata":                  []any{map[string]any{"preferred_network": r.Host, "preferred_cache": r.Host, "aliases": []string{r.Host}}},
		})
	case strings.HasSuffix(path, "/openid-configuration"):
		nettest.Reply(w, 200, map[string]any{
			"token_endpoint": base + "/oauth2/v2.0/token", "authorization_endpoint": base + "/authorize", "issuer": base + "/v2.0",
		})
	case strings.HasSuffix(path, "/oauth2/v2.0/token"):
		if granted == nil {
			granted = func(form url.Values) bool { return form.Get("client_secret") == Secret }
		}
		if err := r.ParseForm(); err != nil || !granted(r.PostForm) {
			nettest.Reply(w, 401, map[string]any{"error": "invalid_client", "error_description": "canary: it repeats " + r.PostForm.Encode()})
			return
		}
		nettest.Reply(w, 200, map[string]any{"access_token": token(r.PostForm.Get("scope")), "expires_in": 3600, "token_type": "Bearer"})
	case strings.HasSuffix(path, "/identity/oauth2/token") && r.Header.Get("Metadata") == "true":
		resource := query.Get("resource")
		nettest.Reply(w, 200, map[string]any{
			"access_token": token(resource), "resource": resource, "expires_in": "3600", "expires_on": "4102444800", "token_type": "Bearer",
		})
	case path == "/metadata/endpoints":
		nettest.Reply(w, 200, map[string]any{
			"authentication": map[string]any{
				"loginEndpoint": "https://login.private.test/", "audiences": []string{"https://management.private.test/"},
			},
			"resourceManager": "https://management.private.test/", "suffixes": map[string]any{"storage": "private.test"},
		})
	case path != "/oidc" || r.Header.Get("Authorization") != "Bearer request-token":
		nettest.Reply(w, 404, map[string]any{"error": "canary"})
	case r.Method == http.MethodPost && query.Get("serviceConnectionId") == "connection": // Azure DevOps
		nettest.Reply(w, 200, map[string]any{"oidcToken": "oidc-token"})
	default: // GitHub
		nettest.Reply(w, 200, map[string]any{"value": "oidc-token"})
	}
}
