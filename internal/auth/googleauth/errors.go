package googleauth

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/auth"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/netfail"
)

// Explain says why there is no token. None of these is a matter of what is read: a
// fallback would hide that the credentials are wrong.
func (a Access) Explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for a Google access token: %w", ctx.Err())
	}
	what := "Google gives no access token for the credentials"
	if a.Impersonate != "" {
		what = "Google gives no access token for " + a.Impersonate + "; the credentials need roles/iam.serviceAccountTokenCreator on it"
	}
	if answer, ok := errors.AsType[*auth.Error](err); ok && answer.Response != nil {
		return fmt.Errorf("%s (HTTP status %d)", what, answer.Response.StatusCode)
	}
	if reason := netfail.KnownReason(err, ""); reason != "" {
		what += ": " + reason
	}
	return errors.New(what)
}
