package gcpkms_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth/googleauthtest"
)

// A token of the code reaches nobody but Google, whatever variables say.
func TestHostileVariables(t *testing.T) {
	t.Parallel()
	googleauthtest.CheckHostile(t, "TestBesideHostileVariables", "cloudkms.googleapis.com", "cloudkms.mtls.googleapis.com")
}

// TestBesideHostileVariables is run by TestHostileVariables.
func TestBesideHostileVariables(t *testing.T) {
	if os.Getenv(googleauthtest.Asking) == "" {
		t.Skip("another test runs this one")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := build(t, nil, working()).Key(ctx, nil, []byte(`{"ciphertext":"AAAA"}`)); err == nil {
		t.Error("there was an answer")
	}
}
