package azureauth

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/netfail"
)

// unset is the error where nothing says how to authenticate.
type unset string

func (e unset) Error() string { return string(e) }

// IsUnset reports whether err says that nothing says how to authenticate.
func IsUnset(err error) bool {
	_, ok := errors.AsType[unset](err)
	return ok
}

// Explain returns an error for people where err says that there is no access
// token, and nil where it does not.
func Explain(err error) error {
	if failed, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok {
		text := "no access token: Azure does not accept the credentials, or cannot be reached"
		if failed.RawResponse != nil {
			text += fmt.Sprintf(" (HTTP status %d)", failed.RawResponse.StatusCode)
		}
		if known := knownReason(err); known != "" {
			text += ": " + known
		}
		return errors.New(text)
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	return nil
}

// Reason says why there is no usable answer.
func Reason(err error) string {
	if known := knownReason(err); known != "" {
		return known
	}
	return netfail.Reason(err, "")
}

// knownReason picks out of an error what is known to be harmless. The rest may
// hold addresses with tokens in them, or what somebody answered.
func knownReason(err error) string {
	for _, known := range []struct{ text, means string }{
		{"doesn't match the requested domain", "it wants a token for another domain"},
		{"WWW-Authenticate", "its header WWW-Authenticate is not that of Azure"},
		{"oidc_request_url", "oidc_request_url gives no token"},
		{"the file for oidc_token", "the file for oidc_token cannot be used"},
	} {
		if strings.Contains(err.Error(), known.text) {
			return known.means
		}
	}
	return netfail.KnownReason(err, "")
}
