package azureauth

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
)

// Explain translates an error from getting an access token, so that its text is safe to show. It returns nil
// for all other errors.
func Explain(err error) error {
	if failed, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok {
		status := ""
		if failed.RawResponse != nil {
			status = fmt.Sprintf(" (HTTP status %d)", failed.RawResponse.StatusCode)
		}
		return fmt.Errorf("no access token%s: %s", status, cmp.Or(knownReason(err), "Azure rejects the credentials, or cannot be reached"))
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	return nil
}

// Reason returns the reason why there is no usable response. The text is safe to show.
func Reason(err error) string {
	if known := knownReason(err); known != "" {
		return known
	}
	return netfail.Reason(err, "")
}

// knownReason returns a reason if the error contains a text that is known to be harmless, or else an empty
// string. Other texts may contain addresses with tokens, or server responses.
func knownReason(err error) string {
	return cmp.Or(answers.Find([]answers.Row{
		{Said: "doesn't match the requested domain", Text: "the server requests a token for another domain"},
		{Said: "WWW-Authenticate", Text: "the WWW-Authenticate header does not come from Azure"},
		{Said: "oidc_request_url", Text: "oidc_request_url returns no token"},
		{Said: "the file for oidc_token", Text: "the file for oidc_token cannot be used"},
	}, 0, "", err.Error()).Text, netfail.KnownReason(err, ""))
}
