package googleauth

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/credentials/externalaccount"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const (
	defaultProgramTime = 30 * time.Second
	maxProgramTime     = 2 * time.Minute
	maxProgramAnswer   = 1 << 20 // in bytes
)

// program prints tokens that Google exchanges for its own. The SDK would run the program with the whole
// environment, including our secrets. See
// https://google.aip.dev/auth/4117#determining-the-subject-token-in-executable-sourced-credentials.
type program struct {
	Command       string `json:"command"`
	TimeoutMillis int    `json:"timeout_millis"`
	OutputFile    string `json:"output_file"`

	impersonated string // the service account that the tokens are for; may be empty
	world        world.World
}

// errProgram means that the program did not print a valid token. It does not contain the output, which may be
// secret.
var errProgram = errors.New("credentials: the program (executable) returns no token")

// withProgram returns credentials that get tokens from a program.
func withProgram(p program, document []byte, options *credentials.DetectOptions) (*auth.Credentials, error) {
	var f struct {
		Audience              string `json:"audience"`
		SubjectTokenType      string `json:"subject_token_type"`
		TokenURL              string `json:"token_url"`
		TokenInfoURL          string `json:"token_info_url"`
		ImpersonationURL      string `json:"service_account_impersonation_url"`
		ImpersonationLifetime struct {
			Seconds int `json:"token_lifetime_seconds"`
		} `json:"service_account_impersonation"`
		ClientID                 string `json:"client_id"`
		ClientSecret             string `json:"client_secret"`
		WorkforcePoolUserProject string `json:"workforce_pool_user_project"`
		UniverseDomain           string `json:"universe_domain"`
	}
	if err := json.Unmarshal(document, &f); err != nil {
		return nil, err
	}
	if account, ok := strings.CutSuffix(path.Base(f.ImpersonationURL), ":generateAccessToken"); ok {
		p.impersonated = account
	}
	return externalaccount.NewCredentials(&externalaccount.Options{
		Audience: f.Audience, SubjectTokenType: f.SubjectTokenType, TokenURL: f.TokenURL, TokenInfoURL: f.TokenInfoURL,
		ServiceAccountImpersonationURL: f.ImpersonationURL, ServiceAccountImpersonationLifetimeSeconds: f.ImpersonationLifetime.Seconds,
		ClientID: f.ClientID, ClientSecret: f.ClientSecret,
		WorkforcePoolUserProject: f.WorkforcePoolUserProject, UniverseDomain: f.UniverseDomain,
		SubjectTokenProvider: p, Scopes: options.Scopes, Client: options.Client, Logger: options.Logger,
	})
}

// SubjectToken returns the token in the output file if it is still valid; otherwise it runs the program to
// get a new one.
func (p program) SubjectToken(ctx context.Context, request *externalaccount.RequestOptions) (string, error) {
	if allowed, _ := p.world.Lookup("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES"); allowed != "1" {
		return "", errors.New("credentials: a program (executable) runs only with GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1 in the environment")
	}
	if p.OutputFile != "" {
		if answer, err := keyfile.Read(p.OutputFile); err == nil {
			if token, ok := parseProgram(answer); ok {
				return token, nil
			}
		}
	}
	answer, err := p.run(ctx, request)
	if err != nil {
		return "", err
	}
	token, ok := parseProgram(answer)
	if !ok {
		return "", errProgram
	}
	return token, nil
}

func (p program) run(ctx context.Context, request *externalaccount.RequestOptions) ([]byte, error) {
	arguments := strings.Fields(p.Command) // Google's rule: no shell, no quotes
	if len(arguments) == 0 {
		return nil, errProgram
	}
	patience := time.Duration(p.TimeoutMillis) * time.Millisecond
	if p.TimeoutMillis <= 0 || patience > maxProgramTime {
		patience = defaultProgramTime
	}
	run := world.Program{Args: arguments, Patience: patience, Limit: maxProgramAnswer, Environ: p.world.Environ().With(
		"GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE="+request.Audience,
		"GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE="+request.SubjectTokenType,
		"GOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE=0",
	)}
	if p.impersonated != "" {
		run.Environ = run.Environ.With("GOOGLE_EXTERNAL_ACCOUNT_IMPERSONATED_EMAIL=" + p.impersonated)
	}
	if p.OutputFile != "" {
		run.Environ = run.Environ.With("GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE=" + p.OutputFile)
	}
	answer, _, err := run.Run(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
		err = errProgram
	}
	return answer, err
}

// parseProgram returns the token in a program's output. It returns false if there is no valid token.
func parseProgram(answer []byte) (string, bool) {
	var a struct {
		Version   int    `json:"version"`
		Success   bool   `json:"success"`
		TokenType string `json:"token_type"`
		Expires   int64  `json:"expiration_time"` // Unix time; 0 if missing
		IDToken   string `json:"id_token"`
		SAML      string `json:"saml_response"`
	}
	if json.Unmarshal(answer, &a) != nil || a.Version != 1 || !a.Success || a.Expires != 0 && a.Expires < time.Now().Unix() {
		return "", false
	}
	switch a.TokenType {
	case "urn:ietf:params:oauth:token-type:jwt", "urn:ietf:params:oauth:token-type:id_token":
		return a.IDToken, a.IDToken != ""
	case "urn:ietf:params:oauth:token-type:saml2":
		return a.SAML, a.SAML != ""
	}
	return "", false
}
