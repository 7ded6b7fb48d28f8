package azurevault_test

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault/azurevaulttest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// certificate returns a certificate with its key. It is PEM, which is read as
// well as PKCS#12.
func certificate(t *testing.T) string {
	t.Helper()
	key := privateKeys()[0]
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

func TestAuthentication(t *testing.T) {
	t.Setenv("MSI_ENDPOINT", "")
	t.Setenv("AZURE_CLIENT_ID", "workload")
	t.Setenv("AZURE_TENANT_ID", azurevaulttest.Tenant)
	t.Setenv("AZURE_FEDERATED_TOKEN_FILE", write(t, "federated-token"))
	key, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))

	noID := bare().With("tenant_id", azurevaulttest.Tenant)
	id := noID.With("client_id", azurevaulttest.ClientID)
	cert := certificate(t)
	secretForm := map[string]string{"client_id": azurevaulttest.ClientID, "client_secret": azurevaulttest.Secret}
	oidc := id.With("use_oidc", true)
	// The SDK keeps tokens of managed identities for the whole process, so each
	// case whose requests are looked at has an identity of its own.
	for name, c := range map[string]struct {
		attrs attrs
		form  map[string]string // of the request for a token; a value "*" is any
		other string            // another request that must have been made
	}{
		"client secret":      {attrs: working(), form: secretForm},
		"client secret file": {attrs: id.With("client_secret_file_path", write(t, azurevaulttest.Secret)), form: secretForm},
		"client id file": {attrs: working().With("client_id", nil, "client_id_file_path", write(t, azurevaulttest.ClientID)),
			form: secretForm},
		"certificate": {attrs: id.With("client_certificate", base64.StdEncoding.EncodeToString([]byte(cert))),
			form: map[string]string{"client_assertion": "*"}},
		"certificate file": {attrs: working().With("client_certificate_path", write(t, cert)),
			form: map[string]string{"client_assertion": "*"}},
		"oidc token": {attrs: oidc.With("oidc_token", "oidc-token"), form: map[string]string{"client_assertion": "oidc-token"}},
		"oidc token file": {attrs: oidc.With("oidc_token_file_path", write(t, "oidc-token")),
			form: map[string]string{"client_assertion": "oidc-token"}},
		"oidc request": {attrs: oidc.With("oidc_request_url", "https://ci.test/oidc?x=1", "oidc_request_token", "request-token"),
			form: map[string]string{"client_assertion": "oidc-token"}, other: "GET ci.test/oidc?audience=api%3A%2F%2FAzureADTokenExchange&x=1"},
		"managed identity": {attrs: bare().With("use_msi", true)},
		"user-assigned": {attrs: bare().With("use_msi", true, "client_id", "mine"),
			other: "GET 169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&client_id=mine"},
		"msi endpoint": {attrs: bare().With("use_msi", true, "client_id", "other", "msi_endpoint",
			"http://identity.test/identity/oauth2/token"), other: "GET identity.test/identity/oauth2/token?"},
		"workload identity": {attrs: bare().With("use_aks_workload_identity", true),
			form: map[string]string{"client_id": "workload", "client_assertion": "federated-token"}},
		"us government": {attrs: working().With("environment", "usgovernment"), form: secretForm, other: "POST login.microsoftonline.us/"},
		"china":         {attrs: working().With("environment", "china"), form: secretForm, other: "POST login.chinacloudapi.cn/"},
		"metadata host": {attrs: working().With("metadata_host", "management.private.test"), form: secretForm,
			other: "POST login.private.test/"},
		"secret before cli":  {attrs: working().With("use_cli", true), form: secretForm},
		"secret before oidc": {attrs: working().With("use_oidc", true, "oidc_token", "x"), form: secretForm},
		"oidc before msi": {attrs: oidc.With("oidc_token", "oidc-token", "use_msi", true),
			form: map[string]string{"client_assertion": "oidc-token"}},
		"msi before workload": {attrs: bare().With("use_msi", true, "client_id", "third", "use_aks_workload_identity", true),
			other: "GET 169.254.169.254/"},
	} {
		t.Run(name, func(t *testing.T) {
			s := service()
			signedIn := false
			s.SignIn = func(form url.Values) bool {
				signedIn = true
				for field, want := range c.form {
					if got := strings.Join(form[field], " "); got != want && (want != "*" || got == "") {
						t.Errorf("%s: %q", field, got)
					}
				}
				return true
			}
			got, err := build(t, s.Start(t), c.attrs).Key(t.Context(), nil, stored)
			if err != nil || string(got) != string(key) {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			if signedIn != (c.form != nil) {
				t.Errorf("signed in: %t", signedIn)
			}
			if !slices.ContainsFunc(s.Other(), func(r string) bool { return strings.Contains(r, c.other) }) {
				t.Errorf("requests: %q", s.Other())
			}
		})
	}
}

func TestBrokenAuthentication(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("AZURE_FEDERATED_TOKEN_FILE", "")
	t.Setenv("AZURE_CLIENT_ID", "")
	_, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	says := kindtest.OpenMistakes(t, "azure_vault, no sign-in", azurevaulttest.Secret)
	id := working().With("client_secret", nil)
	oidc := id.With("use_oidc", true)
	for name, a := range map[string]attrs{
		"nothing":             bare(),
		"no az":               bare().With("use_cli", true),
		"no client secret":    id,
		"wrong client secret": working().With("client_secret", "canary"),
		"other secret file":   working().With("client_secret_file_path", write(t, "canary")),
		"missing file":        id.With("client_secret_file_path", filepath.Join(t.TempDir(), "missing")),
		"empty file":          id.With("client_secret_file_path", write(t, "")),
		"directory":           id.With("client_secret_file_path", t.TempDir()),
		"certificate":         id.With("client_certificate", "canary!"),
		"certificate content": id.With("client_certificate", base64.StdEncoding.EncodeToString([]byte("canary")), "client_certificate_password",
			"canary"),
		"tenant":              working().With("tenant_id", "canary canary"),
		"oidc without token":  oidc,
		"oidc without id":     bare().With("use_oidc", true, "oidc_token", "canary"),
		"oidc request denied": oidc.With("oidc_request_url", "https://ci.test/oidc", "oidc_request_token", "canary"),
		"oidc request broken": oidc.With("oidc_request_url", "https://ci.test/other?token=canary", "oidc_request_token", "canary"),
		"oidc token file":     oidc.With("oidc_token_file_path", filepath.Join(t.TempDir(), "missing")),
		"oidc token refused":  oidc.With("oidc_token", "canary"),
	} {
		t.Run(name, func(t *testing.T) {
			s := service()
			_, err := build(t, s.Start(t), a).Key(t.Context(), nil, stored)
			if says.Error(t, name, err); errors.Is(err, driver.ErrNoKey) {
				t.Errorf("got %v", err)
			}
			if calls := s.Calls(); len(calls) != 0 {
				t.Errorf("calls: %v", calls)
			}
		})
	}
}

func TestCLI(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for az is a shell script")
	}
	key, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$* $TF_ENCRYPTION\" >" + dir + "/asked\n[ -e " + dir +
		"/fail ] && { echo canary >&2; exit 1; }\necho '{\"accessToken\":\"" + azurevaulttest.Token + "\",\"expires_on\":4102444800}'\n"
	if err := os.WriteFile(filepath.Join(dir, "az"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("TF_ENCRYPTION", "canary")
	a := bare().With("use_cli", nil, "subscription_id", "sub")
	client := service().Start(t)
	if got, err := build(t, client, a).Key(t.Context(), nil, stored); err != nil || string(got) != string(key) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	want := "account get-access-token -o json --resource https://vault.azure.net --tenant " + azurevaulttest.Tenant + " --subscription sub \n"
	if err != nil || string(asked) != want {
		t.Errorf("asked %q, %v", asked, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fail"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = build(t, client, a).Key(t.Context(), nil, stored)
	if kindtest.OpenMistakes(t, "azure_vault, az").Error(t, "it fails", err); errors.Is(err, driver.ErrNoKey) {
		t.Errorf("got %v", err)
	}
}
