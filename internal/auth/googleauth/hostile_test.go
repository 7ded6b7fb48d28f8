package googleauth

import (
	"os"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth/googleauthtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// A token of the code reaches nobody but Google, whatever variables say.
//
// Promise: Where secrets go
func TestHostileVariables(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	googleauthtest.CheckHostile(t, "TestBesideHostileVariables", "iamcredentials.googleapis.com", "iamcredentials.mtls.googleapis.com")
}

// TestBesideHostileVariables is run by TestHostileVariables.
func TestBesideHostileVariables(t *testing.T) {
	if os.Getenv(googleauthtest.Asking) == "" {
		t.Skip("another test runs this one")
	}
	scopes := []string{"https://www.googleapis.com/auth/devstorage.read_only"}
	a := Access{
		Token: "canary", Impersonate: "reader@p.iam.gserviceaccount.com", Scopes: scopes, ImpersonateScopes: scopes, World: world.Here(),
	}
	if _, err := a.Open(t.Context()); err == nil {
		t.Error("there is a token")
	}
}
