package googleauth

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"cloud.google.com/go/auth/credentials"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// wellKnownFile returns the path of the file where gcloud stores the application default credentials, or an
// empty string if it does not exist. Like the home directory, this file belongs to the user, not to the
// environment. See https://cloud.google.com/docs/authentication/application-default-credentials#personal.
func wellKnownFile() string {
	dir, err := world.ConfigDir()
	path := filepath.Join(dir, "gcloud", "application_default_credentials.json")
	if _, e := os.Stat(path); err != nil || e != nil {
		return ""
	}
	return path
}

// file holds the members of credentials that determine how the credentials may be used.
type file struct {
	Type         string `json:"type"`
	Universe     string `json:"universe_domain"`
	ClientSecret string `json:"client_secret"`
	Source       struct {
		EnvironmentID string          `json:"environment_id"`
		Headers       json.RawMessage `json:"headers"`
		Program       *program        `json:"executable"`
		Certificate   json.RawMessage `json:"certificate"`
	} `json:"credential_source"`
	Inner json.RawMessage `json:"source_credentials"` // the credentials that impersonate an account
}

func (f file) hasCertificate() bool {
	return len(f.Source.Certificate) > 0 && string(f.Source.Certificate) != "null"
}

// hasSecret reports whether the credentials contain a secret, rather than just the location of a token.
func (f file) hasSecret() bool {
	return f.Type != string(credentials.ExternalAccount) || f.ClientSecret != "" || len(f.Source.Headers) > 0
}

// check returns an error for credentials that would make the SDK read forbidden parts of the environment, and
// for credentials of another cloud. It returns the program that provides tokens, or nil if there is none, and
// whether a certificate is used to authenticate.
func (a Access) check(document []byte) (run *program, certificate bool, err error) {
	var f file
	if json.Unmarshal(document, &f) != nil {
		return nil, false, unusable(document)
	}
	if universe := cmp.Or(a.Universe, DefaultUniverse); f.Universe != "" && f.Universe != universe {
		return nil, false, fmt.Errorf("the credentials are for a cloud other than %s; set universe_domain of the source gcs to the "+
			"value in the credentials. The key provider gcp_kms supports only googleapis.com", universe)
	}
	if f.Type == string(credentials.ImpersonatedServiceAccount) && f.Inner != nil {
		run, certificate, err = a.check(f.Inner)
		if err == nil && run != nil {
			err = errors.New("credentials: impersonated credentials cannot run a program; use the credentials of the " +
				"program with impersonate_service_account")
		}
		return nil, certificate, err
	}
	if f.Source.Program != nil && a.Command != nil {
		return nil, false, fmt.Errorf("credentials: a program (executable): %w", a.Command)
	}
	if w := a.World.Beside(a.Secret && f.hasSecret()); !w.ReadsEnvironment() {
		what := ""
		switch {
		case f.Source.EnvironmentID != "":
			what = "credentials of AWS"
		case f.Source.Program != nil:
			what = "credentials from a program"
		case f.hasCertificate():
			what = "credentials with a certificate"
		case f.Type == "gdch_service_account":
			what = "credentials of Google Distributed Cloud"
		}
		if what != "" {
			return nil, false, fmt.Errorf("credentials: %s, but %s need the environment", w.Reason(), what)
		}
		if err := w.Refuse(world.GoogleBoundaries); err != nil {
			return nil, false, err
		}
	}
	return f.Source.Program, f.hasCertificate(), nil
}
