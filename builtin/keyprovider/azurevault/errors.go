package azurevault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth"
)

// explain translates an error from the vault. The result wraps [driver.ErrNoKey] if another key provider may
// be tried. It does not repeat response bodies.
func (p *provider) explain(ctx context.Context, verb string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for %s: %w", p.vault, ctx.Err())
	}
	if own := azureauth.Explain(err); own != nil {
		return own
	}
	if refused, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return p.explainAnswer(verb, refused)
	}
	return fmt.Errorf("no usable answer from %s: %s", p.vault, azureauth.Reason(err))
}

// explainAnswer translates an error response from the vault. The error codes are documented in
// https://learn.microsoft.com/azure/key-vault/general/rest-error-codes.
func (p *provider) explainAnswer(verb string, refused *azcore.ResponseError) error {
	key, isProxy := "the key "+p.name+" of "+p.vault, refused.ErrorCode == ""
	return answers.Find([]answers.Row{
		{Unless: !isProxy, Status: "400 403 404", Text: fmt.Sprintf("no usable answer from %s: the answer does not come from Key "+
			"Vault (HTTP status %d); check vault_uri and any proxy", p.vault, refused.StatusCode)},
		{Status: "404", Wraps: driver.ErrNoKey,
			Text: "the vault does not have " + key + " or its required version", Advice: "check vault_uri and vault_key_name"},
		{Status: "403", Code: "ForbiddenByFirewall ForbiddenByConnection", Text: "the network rules of " + p.vault +
			" block this machine; allow its address, or run inside the network"},
		{Status: "403", Code: "KeyDisabled", Wraps: driver.ErrNoKey, Text: key + " or its required version is disabled",
			Advice: "enable the key"},
		{Status: "403", Wraps: driver.ErrNoKey,
			Text:   fmt.Sprintf("the vault does not allow these credentials to %s with %s, or the key is disabled or has expired", verb, key),
			Advice: "grant the permission " + verb + ", for example with the role Key Vault Crypto User"},
		{Status: "400", Wraps: driver.ErrNoKey, Text: fmt.Sprintf("the vault cannot %s the key of the file with %s: "+
			"the key or its type is wrong, or the metadata of the file is damaged", verb, key)},
		{Status: "401", Text: p.vault + " rejects the credentials; check the tenant and the cloud"},
		{Status: "429", Text: p.vault + " reports too many calls; try again later"},
		{Text: fmt.Sprintf("the vault failed to %s with %s (HTTP status %d); try again later", verb, key, refused.StatusCode)},
	}, refused.StatusCode, innerCode(refused), "").Err()
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
