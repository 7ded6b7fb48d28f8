package gcpkms

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

const (
	// host is the host of Cloud KMS. Environment variables and credentials cannot change it, because the host
	// receives new keys in plaintext. See https://cloud.google.com/kms/docs/reference/rest.
	host = "cloudkms.googleapis.com"

	// scope is the OAuth scope that covers only Cloud KMS; see
	// https://developers.google.com/identity/protocols/oauth2/scopes#cloudkms.
	scope = "https://www.googleapis.com/auth/cloudkms"
)

// Close closes idle connections to Cloud KMS. Connections in use are closed after their request.
func (p *provider) Close() {
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
}

// call sends a request for the key to Cloud KMS. The verb is encrypt or decrypt; see
// https://cloud.google.com/kms/docs/reference/rest/v1/projects.locations.keyRings.cryptoKeys.
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
	case json.Unmarshal(body, answer) != nil: // omits the error from Unmarshal, because it quotes the response
		return p.unexpected(verb, "the answer cannot be read")
	}
	return nil
}
