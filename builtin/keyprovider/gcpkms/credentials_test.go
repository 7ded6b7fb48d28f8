package gcpkms_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth/googleauthtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// google answers for every https host that the clients of tokens ask. Only these
// tests use it; Cloud KMS itself is a server of its own.
var google = &googleauthtest.Tokens{Workload: "program-token", Account: "target", Token: gcpkmstest.Token}

func TestMain(m *testing.M) {
	stop := google.Lead()
	code := m.Run()
	stop()
	os.Exit(code)
}

const user = `{"type":"authorized_user","client_id":"c","client_secret":"canary-secret","refresh_token":"good"}`

func isUser(token string) bool { return token == googleauthtest.UserToken }

// These share google, and hence run one after the other.
func TestCredentials(t *testing.T) {
	s := service()
	_, stored := kindtest.NewKey(t, build(t, s.Start(t), working()))
	path := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(path, []byte(user), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Dir(path))
	users := service()
	users.Accepts = isUser
	transport := users.Start(t)
	bare := working().With("access_token", nil)
	for name, a := range map[string]attrs{
		"contents": bare.With("credentials", user),
		"path":     bare.With("credentials", path),
		"home":     bare.With("credentials", "~/credentials.json"),
	} {
		if _, err := build(t, transport, a).Key(t.Context(), nil, stored); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
	if _, err := build(t, transport, bare).Key(t.Context(), nil, stored); err != nil {
		t.Errorf("application default credentials: %v", err)
	}
	if got := google.Requests(); len(got) != 4 {
		t.Errorf("token requests: %q", got)
	}

	// The access token goes before the credentials.
	if _, err := build(t, s.Start(t), working().With("credentials", user)).Key(t.Context(), nil, stored); err != nil {
		t.Error(err)
	}
	if got := google.Requests(); len(got) != 0 {
		t.Errorf("token requests: %q", got)
	}

	revoked := strings.Replace(user, "good", "canary-refresh", 1)
	_, err := build(t, transport, bare.With("credentials", revoked)).Key(t.Context(), nil, stored)
	if kindtest.OpenMistakes(t, "gcp_kms, a user").Error(t, "revoked", err); errors.Is(err, driver.ErrNoKey) {
		t.Errorf("revoked: %v", err)
	}
	google.Requests()
}

func TestImpersonation(t *testing.T) {
	s := service()
	transport := s.Start(t)
	_, stored := kindtest.NewKey(t, build(t, transport, working()))
	acting := working().With("access_token", "base-token", "impersonate_service_account", "target@p.iam.gserviceaccount.com")
	acting["impersonate_service_account_delegates"] = testkit.List("middle@p.iam.gserviceaccount.com")
	if _, err := build(t, transport, acting).Key(t.Context(), nil, stored); err != nil {
		t.Fatal(err)
	}
	got := google.Requests()
	if len(got) != 1 {
		t.Fatalf("requests: %q", got)
	}
	for _, want := range []string{
		"iamcredentials.googleapis.com /v1/projects/-/serviceAccounts/target@p.iam.gserviceaccount.com:generateAccessToken",
		"Bearer base-token", "projects/-/serviceAccounts/middle@p.iam.gserviceaccount.com", "https://www.googleapis.com/auth/cloudkms",
	} {
		if !strings.Contains(got[0], want) {
			t.Errorf("%q lacks %q", got[0], want)
		}
	}
	_, err := build(t, transport, acting.With("impersonate_service_account", "denied@p.iam.gserviceaccount.com")).Key(t.Context(), nil, stored)
	if kindtest.OpenMistakes(t, "gcp_kms, impersonation").Error(t, "denied", err); errors.Is(err, driver.ErrNoKey) {
		t.Errorf("denied: %v", err)
	}
	google.Requests()
}

func TestCancelledToken(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	google.Hang(cancel)
	defer func() {
		google.Hang(nil)
		google.Requests()
	}()
	start := time.Now()
	_, err := build(t, nil, working().With("access_token", nil, "credentials", user)).Key(ctx, nil, json.RawMessage(`{"ciphertext":"AAAA"}`))
	if !errors.Is(err, context.Canceled) || time.Since(start) > 45*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

// A service account signs its own token: no token service is asked.
func TestServiceAccount(t *testing.T) {
	s := service()
	transport := s.Start(t)
	_, stored := kindtest.NewKey(t, build(t, transport, working()))
	var sent string
	other := service()
	other.Accepts = func(token string) bool { sent = token; return true }
	_, err := build(t, other.Start(t), working().With("access_token", nil, "credentials",
		cloudtest.NewServiceAccount(t).JSON)).Key(t.Context(), nil, stored)
	if err != nil || !strings.HasPrefix(sent, "ey") || strings.Count(sent, ".") != 2 {
		t.Errorf("sent %.30q, %v", sent, err)
	}
	if got := google.Requests(); len(got) != 0 {
		t.Errorf("token requests: %q", got)
	}
}

// The account to act as is one segment of the path that a token is requested at.
func TestAccountIsASegment(t *testing.T) {
	block := gcpkms.BlockWith(gcpkms.Options{Transport: service().Start(t)})
	for account, isOne := range map[string]bool{
		"a b@p.iam": true, "a?b@p.iam": true, "a#b@p.iam": true, "a%2fb@p.iam": true, "a/b@p.iam": false,
		"../x@p.iam": false, "x@p.iam/..": false,
	} {
		google.Requests()
		p, err := kindtest.TryBuild(block, working().With("impersonate_service_account", account), nil)
		if !isOne {
			if err == nil || strings.Contains(err.Error(), account) {
				t.Errorf("%s: got %v", account, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", account, err)
			continue
		}
		if _, err := p.Key(t.Context(), nil, json.RawMessage(`{"ciphertext":"eA=="}`)); err == nil {
			t.Errorf("%s: nobody may act as it", account)
		}
		want := "iamcredentials.googleapis.com /v1/projects/-/serviceAccounts/" + account + ":generateAccessToken "
		if got := google.Requests(); len(got) == 0 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s: asked for %q", account, got)
		}
	}
}
