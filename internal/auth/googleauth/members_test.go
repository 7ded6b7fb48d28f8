package googleauth

import (
	cryptorand "crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// TestMembers: in credentials of any type, no member that is null, empty, given twice or
// where it does not belong lets their program run, or has Google's client read variables,
// if they must not.
//
// Promise: TF_ENCRYPTION
func TestMembers(t *testing.T) {
	testkit.OneGoroutine(t)
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	var arrived nettest.Log[string]
	server := nettest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived.Note(fmt.Sprint(r.URL, r.Header, string(body)))
		nettest.Reply(w, http.StatusOK, map[string]any{"access_token": "t", "token_type": "Bearer", "expires_in": 3600, "accessToken": "t",
			"expireTime": "2100-01-01T00:00:00Z", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"})
	}))
	dir := t.TempDir()
	script, ran, certificates := filepath.Join(dir, "program"), filepath.Join(dir, "ran"), filepath.Join(dir, "certificates.json")
	for path, text := range map[string]string{
		script: "#!/bin/sh\necho x >>" + ran + "\n", certificates: fmt.Sprintf(`{"cert_configs":{},"libs":{"ecp":%q}}`, script),
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // one of them is run
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES": "1", "GOOGLE_API_CERTIFICATE_CONFIG": certificates, "AWS_REGION": "eu-west-1",
		"AWS_ACCESS_KEY_ID": "canary", "AWS_SECRET_ACCESS_KEY": "canary", "AWS_SESSION_TOKEN": "canary", "GOOGLE_CLOUD_QUOTA_PROJECT": "canary",
		"HOME": dir,
	} {
		t.Setenv(name, value)
	}
	source := map[string]any{
		"executable": map[string]any{"command": script, "timeout_millis": 5000, "output_file": filepath.Join(dir, "none")}, "file": script,
		"url": server, "headers": map[string]any{"a": "b"}, "certificate": map[string]any{"use_default_certificate_config": true},
		"environment_id": "aws1", "region_url": server, "regional_cred_verification_url": server + "?{region}",
		"cred_verification_url": server, "imdsv2_session_token_url": server, "format": map[string]any{"type": "text"},
	}
	members := map[string]any{
		"client_id": "c", "client_secret": "s", "refresh_token": "r", "private_key": rsaKey(t), "private_key_id": "k",
		"client_email": "a@example.com", "project_id": "p", "project": "p", "name": "n", "token_uri": server, "token_url": server,
		"token_info_url": server, "revoke_url": server, "auth_uri": server, "audience": "//iam.googleapis.com/x", "ca_cert_path": "",
		"subject_token_type": "urn:ietf:params:oauth:token-type:id_token", "quota_project_id": "q", "universe_domain": DefaultUniverse,
		"service_account_impersonation_url": server + "/a@example.com:generateAccessToken", "delegates": []string{"b@example.com"},
		"service_account_impersonation": map[string]any{"token_lifetime_seconds": 3600}, "workforce_pool_user_project": "w",
		"format_version": "1", "gdc_audience": "https://gdc", "credential_source": source,
	}
	types := []string{"service_account", "authorized_user", "external_account", "external_account_authorized_user",
		"impersonated_service_account", "gdch_service_account"}
	var documents []string
	for _, kind := range types {
		whole := with(members, "type", kind)
		for _, inner := range []map[string]any{nil, with(members, "type", "external_account")} {
			if inner != nil {
				whole = with(whole, "source_credentials", inner)
			}
			for _, name := range slices.Sorted(maps.Keys(whole)) {
				for _, value := range []any{nil, map[string]any{}, "", []any{}} {
					documents = append(documents, encode(t, with(whole, name, value)),
						twice(t, whole, name, value, true), twice(t, whole, name, value, false))
				}
				without := maps.Clone(whole)
				delete(without, name)
				documents = append(documents, encode(t, without))
			}
			for name := range source {
				for _, value := range []any{nil, map[string]any{}, ""} {
					documents = append(documents, encode(t, with(whole, "credential_source", with(source, name, value))))
				}
				alone := map[string]any{name: source[name], "executable": source["executable"]}
				documents = append(documents, encode(t, with(whole, "credential_source", alone)),
					twice(t, with(whole, "credential_source", alone), "credential_source", map[string]any{"file": script}, true),
					twice(t, with(whole, "credential_source", alone), "credential_source", map[string]any{"file": script}, false),
					encode(t, with(with(whole, "credential_source", map[string]any{name: source[name]}), "CREDENTIAL_SOURCE", alone)))
			}
		}
	}
	some := append([]int{len(documents)}, rand.Perm(len(documents))[:testkit.Rounds(len(documents))]...)
	documents = append(documents, encode(t, map[string]any{"type": "service_account", "client_email": "a@example.com",
		"private_key": members["private_key"], "private_key_id": "k", "token_uri": server})) // which is good, and signs by itself
	opened := 0
	for _, i := range some {
		for name, a := range map[string]Access{
			"a layer":            {Command: errors.New("no program"), World: world.Here()},
			"no environment":     {},
			"a secret, and code": {World: world.Here(), Secret: true, Credentials: "secret"},
		} {
			if a.Credentials != "" && !strings.Contains(documents[i], `"client_secret":"s"`) {
				continue // in external credentials, which have no other secret for sure
			}
			a.Credentials, a.Scopes = documents[i], []string{"https://www.googleapis.com/auth/cloudkms"}
			if b, err := a.Open(t.Context()); err == nil && b != nil {
				opened++
			}
			if _, err := os.Stat(ran); err == nil {
				_ = os.Remove(ran)
				t.Errorf("%s: a program runs with %s", name, documents[i])
			}
			if got := fmt.Sprint(arrived.All()); a.World != world.Here() && strings.Contains(got, "canary") {
				t.Errorf("%s: variables are sent with %s: %s", name, documents[i], got)
			}
		}
		arrived.Requests()
	}
	if opened == 0 {
		t.Error("no credentials are good: this shows nothing")
	}
}

func with(members map[string]any, name string, value any) map[string]any {
	all := maps.Clone(members)
	all[name] = value
	return all
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// twice has one member a second time, before or after the others.
func twice(t *testing.T, members map[string]any, name string, value any, before bool) string {
	t.Helper()
	text, again := encode(t, members), encode(t, map[string]any{name: value})
	again = again[1 : len(again)-1]
	if before {
		return "{" + again + "," + text[1:]
	}
	return text[:len(text)-1] + "," + again + "}"
}

func rsaKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(cryptorand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
