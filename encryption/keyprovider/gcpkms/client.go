package gcpkms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/credentials/impersonate"
	kms "cloud.google.com/go/kms/apiv1"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

const (
	// defaultPatience is how long the client would retry by its own settings
	// when nobody else sets a deadline.
	defaultPatience = 60 * time.Second

	maxCredentials = 1 << 20 // bytes of a file

	// impersonateScope is the one that OpenTofu asks for; Cloud KMS has no
	// smaller one: https://developers.google.com/identity/protocols/oauth2/scopes#cloudkms
	impersonateScope = "https://www.googleapis.com/auth/cloudkms"
)

// access is how to authenticate.
type access struct {
	credentials string // JSON, or the path of a file with it
	token       string // goes before credentials
	impersonate string // the service account to act as; may be empty
	delegates   []string

	environment bool // may be read
}

// call makes one call, and retries as the client would by itself: while the
// service is unavailable, for at most a minute.
func call[Request, Response any](
	ctx context.Context, p *Provider, verb string,
	method func(*kms.KeyManagementClient, context.Context, Request, ...gax.CallOption) (Response, error), request Request,
) (Response, error) {
	var none Response
	client, err := p.connect(ctx)
	if err != nil {
		return none, err
	}
	limited, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	var reason error // why the last attempt failed
	response, err := method(client, limited, request, gax.WithRetry(func() gax.Retryer {
		return retryer{gax.OnCodes([]codes.Code{codes.Unavailable, codes.DeadlineExceeded}, gax.Backoff{
			Initial: 100 * time.Millisecond, Max: 10 * time.Second, Multiplier: 1.3,
		}), &reason}
	}))
	if err != nil {
		if limited.Err() != nil && reason != nil {
			err = reason // and not that the time was up meanwhile
		}
		return none, p.explain(ctx, verb, err)
	}
	return response, nil
}

// retryer remembers the last failure, which the client forgets.
type retryer struct {
	gax.Retryer
	reason *error
}

func (r retryer) Retry(err error) (time.Duration, bool) {
	*r.reason = err
	return r.Retryer.Retry(err)
}

// connect returns the client. It is made once, and not again after a failure
// of one reader: what was cancelled may be tried anew.
func (p *Provider) connect(ctx context.Context) (*kms.KeyManagementClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client != nil {
		return p.client, nil
	}
	creds, err := p.access.open(ctx)
	if err != nil {
		return nil, err
	}
	own := []option.ClientOption{option.WithLogger(silence()), option.WithTelemetryDisabled()}
	if p.access.environment {
		own = append(own, option.WithAuthCredentials(creds))
	} else if own, err = withoutEnvironment(own, creds); err != nil {
		return nil, err
	}
	client, err := kms.NewKeyManagementClient(context.WithoutCancel(ctx), append(own, p.options...)...)
	if err != nil {
		// The reason may quote what was configured.
		return nil, errors.New("the client of Cloud KMS cannot be set up; check the credentials and Google's own environment variables")
	}
	p.client = client
	return client, nil
}

// silence is a logger that logs nothing. With GOOGLE_SDK_GO_LOGGING_LEVEL in
// the environment, the SDK's own prints requests and answers, keys included.
func silence() *slog.Logger { return slog.New(slog.DiscardHandler) }

// open finds the credentials and gets a first token with them, so that what is
// wrong with them is not taken for what is wrong with the key.
func (a access) open(ctx context.Context) (*auth.Credentials, error) {
	creds, err := a.base(ctx)
	if err != nil {
		return nil, err
	}
	if a.impersonate != "" {
		options := &impersonate.CredentialsOptions{
			TargetPrincipal: a.impersonate,
			Delegates:       a.delegates,
			Scopes:          []string{impersonateScope},
			Credentials:     creds,
			Logger:          silence(),
		}
		if !a.environment {
			options.Client = &http.Client{Transport: bearer{creds, directTransport()}}
		}
		creds, err = impersonate.NewCredentials(options)
		if err != nil {
			return nil, errors.New("impersonate_service_account: the credentials cannot be used for that")
		}
	}
	if _, err := creds.Token(ctx); err != nil {
		return nil, a.explain(ctx, err)
	}
	return creds, nil
}

// base returns the credentials before any impersonation.
func (a access) base(ctx context.Context) (*auth.Credentials, error) {
	if a.token != "" {
		return auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: staticToken(a.token)}), nil
	}
	options := &credentials.DetectOptions{
		Scopes:           kms.DefaultAuthScopes(),
		UseSelfSignedJWT: a.impersonate == "", // spares the token service, as the SDK's own detection does
		Logger:           silence(),
	}
	if !a.environment {
		options.Client = &http.Client{Transport: directTransport()}
	}
	text := a.credentials
	if text == "" {
		text = wellKnownFile()
	}
	if text == "" {
		if err := a.steered("GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_HOST"); err != nil {
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
	var creds *auth.Credentials
	if program != nil {
		creds, err = a.withProgram(*program, document, options)
	} else {
		creds, err = credentials.NewCredentialsFromJSON(kind, document, options)
	}
	if err != nil {
		return nil, errors.New("credentials: these are not usable Google credentials; create them anew")
	}
	return creds, nil
}

// staticToken is an access token that somebody else renews.
type staticToken string

func (t staticToken) Token(context.Context) (*auth.Token, error) {
	return &auth.Token{Value: string(t), Type: "Bearer"}, nil
}

// detect asks the metadata server for credentials. Outside of Google's cloud
// that can wait for one that is not there, and cannot be cancelled.
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
			return nil, errors.New("no usable Google credentials were found; set credentials or access_token, GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login")
		}
		return creds, nil
	}
}

// readCredentials takes JSON, or the path of a file with it, as OpenTofu does.
// It returns their kind too, which the SDK wants to be told.
func readCredentials(text string) ([]byte, credentials.CredType, error) {
	document := []byte(text)
	// No error of these may be shown: what was not found may be the secret.
	if path, err := config.ExpandHome(text); err == nil {
		if info, err := os.Stat(path); err == nil {
			if document, err = readFile(path, info); err != nil {
				return nil, "", fmt.Errorf("credentials: %w", err)
			}
		}
	}
	var content struct {
		Type credentials.CredType `json:"type"`
	}
	if json.Unmarshal(document, &content) != nil {
		return nil, "", errors.New("credentials: this is neither JSON nor the path of a file that holds JSON")
	}
	switch content.Type {
	case credentials.ServiceAccount, credentials.AuthorizedUser, credentials.ExternalAccount,
		credentials.ImpersonatedServiceAccount, credentials.GDCHServiceAccount, credentials.ExternalAccountAuthorizedUser:
		return document, content.Type, nil
	}
	return nil, "", errors.New("credentials: this JSON is not of a known type of Google credentials, such as service_account")
}

func readFile(path string, info os.FileInfo) ([]byte, error) {
	if !info.Mode().IsRegular() {
		return nil, errors.New("the path does not lead to a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	document, err := io.ReadAll(io.LimitReader(f, maxCredentials+1))
	if err == nil && len(document) > maxCredentials {
		err = errors.New("the file is larger than 1 MiB")
	}
	return document, err
}
