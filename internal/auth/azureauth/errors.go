package azureauth

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
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
		status := ""
		if failed.RawResponse != nil {
			status = fmt.Sprintf(" (HTTP status %d)", failed.RawResponse.StatusCode)
		}
		return fmt.Errorf("no access token: Azure does not accept the credentials, or cannot be reached%s%s", status, NetworkReason(err))
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	return nil
}

// NetworkReason picks out of an error what is known to be harmless. The rest
// may hold addresses with tokens in them, or what somebody answered.
func NetworkReason(err error) string {
	message := err.Error()
	for _, known := range []string{
		"no such host", "connection refused", "connection reset", "network is unreachable", "i/o timeout",
		"certificate signed by unknown authority", "certificate has expired", "certificate is valid for",
		"doesn't match the requested domain", "WWW-Authenticate", "oidc_request_url", "the file for oidc_token",
	} {
		if strings.Contains(message, known) {
			return " (" + known + ")"
		}
	}
	return ""
}
