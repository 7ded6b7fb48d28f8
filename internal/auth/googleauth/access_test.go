package googleauth

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"cloud.google.com/go/auth"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// The key provider gcp_kms and the source gcs test how credentials are used.

func TestReadPathOrContents(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	path := filepath.Join(home, "file")
	if err := os.WriteFile(path, []byte("contents"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(home, "large")
	if err := os.WriteFile(large, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{path: "contents", "~/file": "contents", "{}": "{}", "/canary/none": "/canary/none", "": ""} {
		if got, err := ReadPathOrContents(text); err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	says := testkit.OpenGolden(t, "../testdata/mistakes.txt", "Google, files", home)
	for name, path := range map[string]string{"folder": home, "large": large} {
		_, err := ReadPathOrContents(path)
		says.Error(t, name, err)
	}
}

// A token that someone else renews is used as it is, by whoever asks.
func TestToken(t *testing.T) {
	t.Parallel()
	bearer, err := Access{Token: "token", Credentials: "canary"}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	header, err := bearer.Header(t.Context())
	if err != nil || len(header) != 1 || header.Get("Authorization") != "Bearer token" {
		t.Errorf("got %v, %v", header, err)
	}
}

// What is said of a token that was refused is ours.
func TestExplain(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	canary := &auth.Error{Err: errors.New("canary"), Body: []byte("canary"), Response: &http.Response{StatusCode: 403}}
	says := testkit.OpenGolden(t, "../testdata/mistakes.txt", "Google, tokens", "canary")
	for name, err := range map[string]error{
		"refused":      Access{}.Explain(t.Context(), canary),
		"impersonated": Access{Impersonate: "me@p.iam.gserviceaccount.com"}.Explain(t.Context(), canary),
		"no answer":    Access{}.Explain(t.Context(), errors.New("canary: connection refused")),
		"cancelled":    Access{}.Explain(ended, canary),
	} {
		says.Error(t, name, err)
	}
}

// Credentials that say only where a token is to be found are the user's, also in the
// code. Beside a secret of the code, the environment gives no part of them.
func TestWhatCredentialsMayRead(t *testing.T) {
	t.Setenv("GOOGLE_AUTH_TRUST_BOUNDARY_ENABLED", "true")
	says := testkit.OpenGolden(t, "../testdata/mistakes.txt", "Google, credentials", "canary")
	const aws = `"type":"external_account","credential_source":{"environment_id":"aws1"`
	for name, c := range map[string]struct {
		document string
		secret   bool
		refused  bool
	}{
		"AWS":                           {`{` + aws + `}}`, true, false},
		"AWS, with a secret":            {`{` + aws + `},"client_secret":"canary"}`, true, true},
		"AWS, with one in headers":      {`{` + aws + `,"headers":{"Authorization":"canary"}}}`, true, true},
		"AWS, with a secret, not ours":  {`{` + aws + `},"client_secret":"canary"}`, false, false},
		"user":                          {`{"type":"authorized_user"}`, true, true},
		"user, of the environment":      {`{"type":"authorized_user"}`, false, false},
		"within":                        {`{"type":"impersonated_service_account","source_credentials":{"type":"gdch_service_account"}}`, true, true},
		"within, and only to be found":  {`{"type":"impersonated_service_account","source_credentials":{` + aws + `}}}`, true, false},
		"not within anything":           {`{` + aws + `},"client_secret":"canary","source_credentials":null}`, true, true},
		"of another cloud":              {`{"type":"service_account","universe_domain":"evil.example"}`, false, true},
		"of another cloud, and outside": {`{"type":"impersonated_service_account","universe_domain":"evil.example","source_credentials":{}}`, false, true},
	} {
		_, _, err := Access{World: world.Here(), Secret: c.secret}.check([]byte(c.document))
		if c.refused {
			says.Error(t, name, err)
		} else if err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
