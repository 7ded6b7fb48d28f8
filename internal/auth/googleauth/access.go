// Package googleauth gets access tokens for Google Cloud from the credentials
// of key providers and sources.
package googleauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/credentials/impersonate"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Access is how to authenticate.
type Access struct {
	Credentials string // JSON, or the path of a file with it; may be empty
	Token       string // goes before Credentials
	Impersonate string // the service account to act as; may be empty
	Delegates   []string

	Scopes            []string // of the tokens
	ImpersonateScopes []string // of the tokens of Impersonate

	Universe string // of Google's clouds; googleapis.com when empty

	World world.World
}

// Open finds the credentials and gets a first token with them, so that a
// mistake in them is not reported as a failed read.
func (a Access) Open(ctx context.Context) (*auth.Credentials, error) {
	creds, err := a.base(ctx)
	if err != nil {
		return nil, err
	}
	if a.Impersonate != "" {
		options := &impersonate.CredentialsOptions{
			TargetPrincipal: a.Impersonate,
			Delegates:       a.Delegates,
			Scopes:          a.ImpersonateScopes,
			Credentials:     creds,
			Logger:          Silence(),
			UniverseDomain:  a.Universe,
		}
		if options.Client, err = a.bearer(creds); err == nil {
			creds, err = impersonate.NewCredentials(options)
		}
		if err != nil {
			return nil, errors.New("impersonate_service_account: the credentials cannot be used for that")
		}
	}
	if _, err := creds.Token(ctx); err != nil {
		return nil, a.Explain(ctx, err)
	}
	return creds, nil
}

// base returns the credentials before any impersonation.
func (a Access) base(ctx context.Context) (*auth.Credentials, error) {
	if a.Token != "" {
		return auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: staticToken(a.Token)}), nil
	}
	options := &credentials.DetectOptions{
		Scopes:           a.Scopes,
		UseSelfSignedJWT: a.Impersonate == "", // spares the token service, as the SDK's own detection does
		Logger:           Silence(),
		UniverseDomain:   a.Universe,
	}
	if !a.World.ReadsEnvironment() {
		options.Client = &http.Client{Transport: once{DirectTransport()}}
	}
	text := a.Credentials
	if text == "" {
		text = wellKnownFile()
	}
	if text == "" {
		if err := a.RefuseVariables(world.GoogleDetection); err != nil {
			return nil, err
		}
		return detect(ctx, options)
	}
	document, kind, err := readCredentials(text)
	if err != nil {
		return nil, err
	}
	program, err := a.check(document)
	if err != nil {
		return nil, err
	}
	if options.Client == nil && !hasCertificate(document) { // with which the SDK makes a client of its own
		options.Client = &http.Client{Transport: once{standardTransport()}, Timeout: tokenTimeout}
	}
	var creds *auth.Credentials
	if program != nil {
		program.world = a.World
		creds, err = withProgram(*program, document, options)
	} else {
		creds, err = credentials.NewCredentialsFromJSON(kind, document, options)
	}
	if err != nil {
		return nil, errors.New("credentials: these are not usable Google credentials; create them anew")
	}
	return creds, nil
}

// staticToken is an access token that is renewed elsewhere.
type staticToken string

func (t staticToken) Token(context.Context) (*auth.Token, error) {
	return &auth.Token{Value: string(t), Type: "Bearer"}, nil
}

// detect gets credentials from the metadata server. Outside of Google's cloud
// it may wait for a server that does not exist, and cannot be cancelled.
func detect(ctx context.Context, options *credentials.DetectOptions) (*auth.Credentials, error) {
	found := make(chan *auth.Credentials, 1)
	go func() {
		creds, err := credentials.DetectDefault(options)
		if err != nil {
			creds = nil
		}
		found <- creds
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("looking for Google credentials: %w", ctx.Err())
	case creds := <-found:
		if creds == nil {
			return nil, errors.New("no usable Google credentials were found; set credentials or access_token, " +
				"GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login")
		}
		return creds, nil
	}
}

// readCredentials reads JSON, or the file with it, as OpenTofu does. It returns
// their type too, which the SDK requires.
func readCredentials(text string) ([]byte, credentials.CredType, error) {
	document, err := ReadPathOrContents(text)
	if err != nil {
		return nil, "", fmt.Errorf("credentials: %w", err)
	}
	var content struct {
		Type credentials.CredType `json:"type"`
	}
	if json.Unmarshal(document, &content) != nil {
		return nil, "", notCredentials(text)
	}
	switch content.Type {
	case credentials.ServiceAccount, credentials.AuthorizedUser, credentials.ExternalAccount,
		credentials.ImpersonatedServiceAccount, credentials.GDCHServiceAccount, credentials.ExternalAccountAuthorizedUser:
		return document, content.Type, nil
	}
	return nil, "", errors.New("credentials: this JSON is not of a known type of Google credentials, such as service_account")
}

// notCredentials names what was given if that is surely the path of a file.
func notCredentials(text string) error {
	if keyfile.IsPath(text) {
		return fmt.Errorf("credentials: there is no file %q with the JSON of Google credentials; check its path, and in which folder "+
			"this runs", text)
	}
	return errors.New("credentials: this is neither JSON nor the path of a file that holds JSON; write file(…) for the content of one")
}

// ReadPathOrContents returns the contents of the file whose path text is, or
// else text itself.
func ReadPathOrContents(text string) ([]byte, error) {
	// No error names the file: its name may be the secret.
	if path, err := keyfile.ExpandHome(text); err == nil {
		if _, err := os.Stat(path); err == nil {
			content, err := keyfile.Read(path)
			return content, cmp.Or(errors.Unwrap(err), err)
		}
	}
	return []byte(text), nil
}

// Silence is a logger that logs nothing. With GOOGLE_SDK_GO_LOGGING_LEVEL in
// the environment, the SDK's own prints requests and answers, keys included.
func Silence() *slog.Logger { return slog.New(slog.DiscardHandler) }
