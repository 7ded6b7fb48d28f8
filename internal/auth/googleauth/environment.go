package googleauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"cloud.google.com/go/auth"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/trust"
)

// Bearer puts a token on requests, and the project that user credentials name
// for the bill.
type Bearer struct {
	Creds *auth.Credentials
	Next  http.RoundTripper
}

// GetRequestMetadata is for gRPC.
func (b Bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := b.Creds.Token(ctx)
	if err != nil {
		return nil, err
	}
	header := map[string]string{"authorization": "Bearer " + token.Value}
	var file struct {
		QuotaProject string `json:"quota_project_id"`
	}
	if json.Unmarshal(b.Creds.JSON(), &file) == nil && file.QuotaProject != "" {
		header["x-goog-user-project"] = file.QuotaProject
	}
	return header, nil
}

// RequireTransportSecurity is for gRPC: no token is sent in plaintext.
func (Bearer) RequireTransportSecurity() bool { return true }

// RoundTrip is for HTTP.
func (b Bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	header, err := b.GetRequestMetadata(request.Context())
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	for name, value := range header {
		request.Header.Set(name, value)
	}
	return b.Next.RoundTrip(request)
}

// DirectTransport goes through no proxy.
func DirectTransport() http.RoundTripper {
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // a program's own; it knows what it does
	}
	direct := standard.Clone()
	direct.Proxy = nil
	direct.TLSClientConfig = trust.Config(world.World{}, direct.TLSClientConfig)
	return direct
}

// RefuseVariables returns an error if the environment is switched off and a
// variable that steers a part of the SDK is set. No credentials are better
// than those that they name.
func (a Access) RefuseVariables(c world.Client) error {
	if name := a.World.Steering(c); name != "" {
		return fmt.Errorf("the environment is switched off, but Google's client would follow the variable %s; "+
			"unset it, or set credentials or access_token", name)
	}
	return nil
}

// wellKnownFile is where gcloud puts the application default credentials; ""
// when there are none. It belongs to the user and not to the environment, as
// the home directory does.
// https://cloud.google.com/docs/authentication/application-default-credentials#personal
func wellKnownFile() string {
	dir, err := world.ConfigDir()
	path := filepath.Join(dir, "gcloud", "application_default_credentials.json")
	if _, e := os.Stat(path); err != nil || e != nil {
		return ""
	}
	return path
}

// file is what decides how credentials may be used.
type file struct {
	Type   string `json:"type"`
	Source struct {
		EnvironmentID string          `json:"environment_id"`
		Program       *program        `json:"executable"`
		Certificate   json.RawMessage `json:"certificate"`
	} `json:"credential_source"`
	Inner json.RawMessage `json:"source_credentials"` // of impersonation
}

func (f file) hasCertificate() bool {
	return len(f.Source.Certificate) > 0 && string(f.Source.Certificate) != "null"
}

// check refuses credentials for which the SDK would read the environment. It
// returns the program that gives the tokens, if there is one.
func (a Access) check(document []byte) (*program, error) {
	var f file
	if json.Unmarshal(document, &f) != nil {
		return nil, unusable(document)
	}
	if f.Inner != nil {
		inner, err := a.check(f.Inner)
		if err == nil && inner != nil {
			err = errors.New("credentials: a program cannot give the tokens of impersonated credentials here; use " +
				"its credentials with impersonate_service_account")
		}
		return nil, err
	}
	if f.Source.Program != nil && a.Command != nil {
		return nil, fmt.Errorf("credentials: a program (executable): %w", a.Command)
	}
	if !a.World.ReadsEnvironment() {
		what := ""
		switch {
		case f.Source.EnvironmentID != "":
			what = "credentials of AWS"
		case f.Source.Program != nil:
			what = "a program's credentials"
		case f.hasCertificate():
			what = "a certificate's credentials"
		case f.Type == "gdch_service_account":
			what = "credentials of Google Distributed Cloud"
		}
		if what != "" {
			return nil, fmt.Errorf("credentials: %s need the environment, which is switched off", what)
		}
		if err := a.RefuseVariables(world.GoogleBoundaries); err != nil {
			return nil, err
		}
	}
	return f.Source.Program, nil
}
