package azurevault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// explain says what an error of the vault means, and whether another key
// provider may be tried. The bodies of answers stay out of it.
func (p *Provider) explain(ctx context.Context, verb string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for %s: %w", p.vault, ctx.Err())
	}
	if failed, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok {
		status := ""
		if failed.RawResponse != nil {
			status = fmt.Sprintf(" (HTTP status %d)", failed.RawResponse.StatusCode)
		}
		return fmt.Errorf("no access token: Azure does not accept the credentials, or cannot be reached%s%s", status, networkReason(err))
	}
	if own, ok := errors.AsType[*accessError](err); ok {
		return own
	}
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	switch {
	case ok:
		return p.explainAnswer(verb, answer)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer in time from %s", p.vault)
	}
	return fmt.Errorf("no usable answer from %s%s", p.vault, networkReason(err))
}

// explainAnswer knows the vault's error codes:
// https://learn.microsoft.com/azure/key-vault/general/rest-error-codes
func (p *Provider) explainAnswer(verb string, answer *azcore.ResponseError) error {
	key := "the key " + p.name + " of " + p.vault
	switch answer.StatusCode {
	case http.StatusNotFound:
		return fmt.Errorf("%w: the vault does not know %s, or the version that is needed", encryption.ErrNoKey, key)
	case http.StatusForbidden:
		switch innerCode(answer) {
		case "ForbiddenByFirewall", "ForbiddenByConnection":
			return fmt.Errorf("no access: the network rules of %s do not let this machine in", p.vault)
		case "KeyDisabled":
			return fmt.Errorf("%w: %s, or the version that is needed, is disabled", encryption.ErrNoKey, key)
		}
		return fmt.Errorf("%w: the vault denies to %s with %s, or the key is disabled or has expired; grant the key permission %s (role Key Vault Crypto User)", encryption.ErrNoKey, verb, key, verb)
	case http.StatusBadRequest:
		return fmt.Errorf("%w: the vault cannot %s this with %s: it was encrypted with another key, it is damaged, or the key is of another type", encryption.ErrNoKey, verb, key)
	case http.StatusUnauthorized:
		return fmt.Errorf("no access: %s does not accept the credentials; check the tenant and the cloud", p.vault)
	case http.StatusTooManyRequests:
		return fmt.Errorf("too many calls: %s refuses further ones for now; try again later", p.vault)
	}
	return fmt.Errorf("unexpected answer: the vault failed to %s with %s (HTTP status %d)", verb, key, answer.StatusCode)
}

func innerCode(answer *azcore.ResponseError) string {
	if answer.RawResponse == nil {
		return ""
	}
	body, err := runtime.Payload(answer.RawResponse)
	var content struct {
		Error struct {
			Inner struct {
				Code string `json:"code"`
			} `json:"innererror"`
		} `json:"error"`
	}
	if err != nil || json.Unmarshal(body, &content) != nil {
		return ""
	}
	return content.Error.Inner.Code
}

// networkReason picks out of an error what is known to be harmless. The rest
// may hold addresses with tokens in them, or what somebody answered.
func networkReason(err error) string {
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
