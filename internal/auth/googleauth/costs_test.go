package googleauth

import (
	"net/http"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth/googleauthtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// What the token services answer costs no more than its size allows.
func TestCosts(t *testing.T) {
	const user = `{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"good"}`
	answers := amplification.NewAnswers(&googleauthtest.Tokens{Account: "reader", Token: "token"})
	standard := http.DefaultTransport
	defer func() { http.DefaultTransport = standard }()
	http.DefaultTransport = standard.(*http.Transport).Clone()
	defer googleauthtest.Lead(answers)()
	scopes := []string{"https://www.googleapis.com/auth/devstorage.read_only"}
	access := Access{Credentials: user, Impersonate: "reader@p.iam.gserviceaccount.com", Scopes: scopes, ImpersonateScopes: scopes}
	answers.Run(t, func(*testing.T) func() error {
		return func() error {
			_, err := access.Open(t.Context())
			return err
		}
	})
}
