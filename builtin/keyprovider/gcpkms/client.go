package gcpkms

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

const (
	// host is the host of Cloud KMS. No variable and no credentials can change it, because it
	// receives new keys in plaintext.
	// https://cloud.google.com/kms/docs/reference/rest
	host = "cloudkms.googleapis.com"

	// scope is the only OAuth scope of Cloud KMS itself:
	// https://developers.google.com/identity/protocols/oauth2/scopes#cloudkms
	scope = "https://www.googleapis.com/auth/cloudkms"
)

// Close closes the connections to Cloud KMS. A connection in use is closed after its request.
func (p *provider) Close() {
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
}

// call sends a request to Cloud KMS for the key. The verb is encrypt or decrypt.
// https://cloud.google.com/kms/docs/reference/rest/v1/projects.locations.keyRings.cryptoKeys
func (p *provider) call(ctx context.Context, verb string, question, answer any) error {
	bearer, err := p.bearers.Do(ctx, struct{}{}, p.access.Open)
	if err != nil {
		return err
	}
	address := url.URL{Scheme: "https", Host: host, Path: "/v1/" + p.name + ":" + verb}
	status, body, err := bearer.Post(ctx, p.wire, address.String(), question)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for Cloud KMS: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("no answer from Cloud KMS: %w", err)
	case status != http.StatusOK:
		return p.refusal(verb, status, body)
	case json.Unmarshal(body, answer) != nil: // the error of Unmarshal is left out, because it quotes the answer
		return p.unexpected(verb, "the answer cannot be read")
	}
	return nil
}
