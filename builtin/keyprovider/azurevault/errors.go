package azurevault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
)

// explain says what an error of the vault means, and whether another key
// provider may be tried. The bodies of answers are not shown.
func (p *provider) explain(ctx context.Context, verb string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for %s: %w", p.vault, ctx.Err())
	}
	if own := azureauth.Explain(err); own != nil {
		return own
	}
	if answer, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return p.explainAnswer(verb, answer)
	}
	return fmt.Errorf("no usable answer from %s: %s", p.vault, azureauth.Reason(err))
}

// explainAnswer knows the vault's error codes:
// https://learn.microsoft.com/azure/key-vault/general/rest-error-codes
func (p *provider) explainAnswer(verb string, answer *azcore.ResponseError) error {
	key := "the key " + p.name + " of " + p.vault
	switch answer.StatusCode {
	case http.StatusNotFound, http.StatusForbidden, http.StatusBadRequest:
		if answer.ErrorCode == "" { // a proxy's, say, which knows nothing of keys
			return fmt.Errorf("no usable answer from %s: it is not that of Key Vault (HTTP status %d); check vault_uri and any proxy",
				p.vault, answer.StatusCode)
		}
	}
	switch answer.StatusCode {
	case http.StatusNotFound:
		return fact.Advise(fmt.Errorf("%w: the vault does not know %s, or the version that is needed", driver.ErrNoKey, key),
			"check vault_uri and vault_key_name")
	case http.StatusForbidden:
		switch innerCode(answer) {
		case "ForbiddenByFirewall", "ForbiddenByConnection":
			return fmt.Errorf("no access: the network rules of %s do not let this machine in; allow its address, or run inside the network", p.vault)
		case "KeyDisabled":
			return fact.Advise(fmt.Errorf("%w: %s, or the version that is needed, is disabled", driver.ErrNoKey, key), "enable it")
		}
		return fact.Advise(fmt.Errorf("%w: the vault denies to %s with %s, or the key is disabled or has expired", driver.ErrNoKey, verb, key),
			"grant the key permission "+verb+" (role Key Vault Crypto User)")
	case http.StatusBadRequest:
		return fmt.Errorf("%w: the vault cannot %s this with %s: it was encrypted with another key, it is damaged, "+
			"or the key is of another type", driver.ErrNoKey, verb, key)
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
