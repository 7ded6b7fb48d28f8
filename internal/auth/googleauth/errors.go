package googleauth

import (
	"context"
	"errors"

	"cloud.google.com/go/auth"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
)

// Explain translates an error from getting a token. The result is final, because a fallback would hide that
// the credentials are wrong.
func (a Access) Explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return web.Final("waiting for a Google access token: %w", ctx.Err())
	}
	if web.Own(err) != nil {
		return err
	}
	if answer, ok := errors.AsType[*auth.Error](err); ok && answer.Response != nil {
		return a.refused(answer.Response.StatusCode)
	}
	if reason := netfail.KnownReason(err, ""); reason != "" {
		return web.Final("%s: %s", a.noToken(), reason)
	}
	return web.Final("%s", a.noToken())
}

// noToken returns the beginning of an error about a missing token.
func (a Access) noToken() string {
	if a.Impersonate == "" {
		return "Google returns no access token for the credentials"
	}
	return "Google returns no access token for " + a.Impersonate
}

// refused returns the error for a response with this status instead of a token.
func (a Access) refused(status int) error {
	advice := ""
	if a.Impersonate != "" {
		advice = "; grant the credentials roles/iam.serviceAccountTokenCreator on this account"
	}
	return web.Final("%s (HTTP status %d)%s", a.noToken(), status, advice)
}
