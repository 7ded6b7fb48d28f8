package googleauth

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/auth"
)

// NetworkReason picks out what is known to be harmless of an error that
// arose on this side: a proxy's answer may be in it, too.
func NetworkReason(message string) string {
	for _, known := range []string{
		"no such host", "connection refused", "connection reset", "network is unreachable", "i/o timeout",
		"certificate signed by unknown authority", "certificate has expired", "certificate is valid for",
		"failed to do connect handshake",
	} {
		if strings.Contains(message, known) {
			return " (" + known + ")"
		}
	}
	return ""
}

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
	return fmt.Errorf("%s%s", what, NetworkReason(err.Error()))
}
