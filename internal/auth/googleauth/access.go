// Package googleauth gets access tokens for Google Cloud, using the credentials in key providers and sources.
package googleauth

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Access holds the settings for signing in.
type Access struct {
	Credentials string // JSON, or the path of a JSON file; may be empty
	From        string // the environment variable that sets Credentials; empty if the settings do
	Token       string // an access token, which takes precedence over Credentials
	Impersonate string // the service account to impersonate; may be empty
	Delegates   []string

	Scopes            []string // the scopes of tokens
	ImpersonateScopes []string // the scopes of tokens for Impersonate

	Universe     string // the domain of the cloud; empty for [DefaultUniverse]
	QuotaProject string // the project to bill instead of the one in the credentials; may be empty

	// World is either the user's World or the zero World. Secret is true if the configuration sets
	// Credentials or Token. In that case, World is restricted, unless the credentials contain no secret.
	World   world.World
	Secret  bool
	Command error // why the program in Credentials must not run; nil if it may
}

// Open finds the credentials and gets a first token, so that mistakes in the credentials are not reported as
// failed reads.
func (a Access) Open(ctx context.Context) (*Bearer, error) {
	for _, account := range append([]string{a.Impersonate}, a.Delegates...) {
		if account != "" && !strings.Contains(account, "@") {
			return nil, errors.New("impersonate_service_account or a delegate is not the e-mail address of a service account; write an " +
				"address like reader@PROJECT.iam.gserviceaccount.com")
		}
	}
	creds, err := a.base(ctx)
	if err != nil {
		return nil, err
	}
	b := Bearer{a, creds}
	if a.Impersonate != "" {
		b.access.Impersonate = ""
		b = Bearer{a, a.impersonate(b)}
	}
	_, err = b.Header(ctx)
	return &b, err
}

// base returns the credentials before any impersonation.
func (a Access) base(ctx context.Context) (*auth.Credentials, error) {
	if a.Token != "" {
		return auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: staticToken(a.Token)}), nil
	}
	options := &credentials.DetectOptions{
		Scopes:           a.Scopes,
		UseSelfSignedJWT: a.Impersonate == "", // saves a token request, as in the SDK's own detection
		Logger:           Silence(),
		UniverseDomain:   a.Universe,
		Client:           &http.Client{Transport: transport(a.World), Timeout: tokenTimeout},
	}
	text := a.Credentials
	if text == "" {
		text = wellKnownFile()
	}
	if text == "" {
		if err := a.World.Refuse(world.GoogleDetection); err != nil {
			return nil, err
		}
		return detect(ctx, options)
	}
	document, kind, err := readCredentials(text)
	if err != nil {
		return nil, a.named(err)
	}
	program, certificate, err := a.check(document)
	if err != nil {
		return nil, err
	}
	if certificate {
		options.Client = nil // the SDK creates its own client with the certificate
	}
	var creds *auth.Credentials
	if program != nil {
		program.world = a.World
		creds, err = withProgram(*program, document, options)
	} else {
		creds, err = credentials.NewCredentialsFromJSON(kind, document, options)
	}
	if err != nil {
		return nil, a.named(unusable(document))
	}
	return creds, nil
}

// named adds the origin of the credentials to an error.
func (a Access) named(err error) error {
	if a.From != "" {
		return fmt.Errorf("the environment variable %s: %w", a.From, err)
	}
	return fmt.Errorf("credentials: %w", err)
}

// unusable returns an error for credentials of the two most common types that are incomplete. See
// https://google.aip.dev/auth/4112 and https://google.aip.dev/auth/4113.
func unusable(document []byte) error {
	var fields map[string]any
	_ = json.Unmarshal(document, &fields) // document is valid JSON
	needs := []string{"client_email", "private_key", "token_uri"}
	if fields["type"] == string(credentials.AuthorizedUser) {
		needs = []string{"client_id", "client_secret", "refresh_token"}
	}
	for _, name := range needs {
		if text, _ := fields[name].(string); text == "" {
			return fmt.Errorf("these Google credentials have no %s; use the complete file from Google, or create new credentials", name)
		}
	}
	return errors.New("these are not usable Google credentials; use the complete file from Google, or create new credentials")
}

// staticToken is an access token that another program renews.
type staticToken string

func (t staticToken) Token(context.Context) (*auth.Token, error) {
	return &auth.Token{Value: string(t), Type: "Bearer"}, nil
}

// detect returns the credentials from the metadata server. Outside of Google Cloud, the SDK may wait for a
// server that does not exist, and cannot be cancelled, so detect stops waiting when ctx is done.
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
			return nil, fault.Known(errors.New("no usable Google credentials were found; set credentials, access_token or "+
				"GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login"), fault.NoCredentials{})
		}
		return creds, nil
	}
}

// readCredentials returns the JSON in text, or in the file at the path text, as in OpenTofu. It also returns
// the type of the credentials, which the SDK requires.
func readCredentials(text string) ([]byte, credentials.CredType, error) {
	document, err := ReadPathOrContents(text)
	if err != nil {
		return nil, "", err
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
	var client map[string]json.RawMessage
	if json.Unmarshal(document, &client) == nil && (client["installed"] != nil || client["web"] != nil) {
		return nil, "", errors.New("this is the ID of an OAuth client, not credentials; use the key of a service account, or run " +
			"gcloud auth application-default login")
	}
	return nil, "", errors.New("this JSON has no known type of Google credentials; use, for example, the key file of a service account")
}

// notCredentials returns the error for a text that does not contain credentials. It repeats the text only if
// it is certainly a file path.
func notCredentials(text string) error {
	if recognize.IsPath(text) {
		return fmt.Errorf("the file %q is missing or does not contain JSON; check the path and the working directory", text)
	}
	if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil && json.Valid(decoded) {
		return errors.New("this is JSON in base64; use base64decode(…) to get the JSON")
	}
	switch trimmed := strings.TrimSpace(text); {
	case recognize.IsPEM(trimmed):
		return errors.New("this is only a private key; give the whole JSON file from Google")
	case strings.HasPrefix(trimmed, "{"):
		return errors.New("this JSON is truncated or damaged; use the complete file from Google")
	}
	return errors.New("this is neither JSON nor the path of a JSON file; copy the whole value")
}

// ReadPathOrContents returns the content of the file at the path text, or text itself if there is no such
// file.
func ReadPathOrContents(text string) ([]byte, error) {
	// Errors must not contain the path, because it may be a secret that was set by mistake.
	if path, err := world.ExpandHome(text); err == nil {
		if _, err := os.Stat(path); err == nil {
			content, err := keyfile.ReadText(path)
			return content, cmp.Or(errors.Unwrap(err), err)
		}
	}
	return []byte(text), nil
}

// Silence returns a logger that discards everything. If GOOGLE_SDK_GO_LOGGING_LEVEL is set, the SDK's own
// logger prints requests and responses, including keys.
func Silence() *slog.Logger { return slog.New(slog.DiscardHandler) }
