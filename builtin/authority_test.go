package builtin_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

const serviceVariable = "STATECRYPT_TEST_SERVICE"

// TestAuthoritiesOfKeyServices: Go trusts the authorities that SSL_CERT_FILE
// names. With the environment off, that is an error before anything is sent. A
// process reads the variable once, so this test runs itself in another.
//
// Promise: use_environment = false
func TestAuthoritiesOfKeyServices(t *testing.T) {
	if service := os.Getenv(serviceVariable); service != "" {
		askKeyServices(t, service)
		return
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("on this system, Go reads no SSL_CERT_FILE")
	}
	t.Parallel()
	var seen nettest.Log[string]
	service := nettest.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Note(r.Header.Get("X-Vault-Token") + r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusForbidden)
	}))
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, []byte(nettest.PEM(service.Certificate())), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestAuthoritiesOfKeyServices$")
	cmd.Env = append(os.Environ(), serviceVariable+"="+service.URL, "SSL_CERT_FILE="+authority, "AWS_CA_BUNDLE=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	got := strings.Join(seen.Requests(), "\n")
	if strings.Contains(got, "OFF") || !strings.Contains(got, "ON-openbao") || !strings.Contains(got, "ON-aws_kms") {
		t.Errorf("the service got\n%s", got)
	}
}

// askKeyServices asks with secrets that say whether the environment is on.
func askKeyServices(t *testing.T, service string) {
	for kind, settings := range map[string]string{
		"openbao": `key_name = "k"
			max_retries = 0
			address     = "` + service + `"
			token       = "SECRET"`,
		"aws_kms": `kms_key_id = "k"
			key_spec    = "AES_256"
			region      = "eu-west-1"
			max_retries = 1
			access_key  = "SECRET"
			secret_key  = "x"
			endpoints { kms = "` + service + `" }`,
	} {
		text := `key_provider "` + kind + `" "x" {
			` + settings + `
		}
		method "aes_gcm" "x" { keys = key_provider.` + kind + `.x }
		state { method = method.aes_gcm.x }`
		for mode, environment := range map[string][]encryption.Layer{"ON": {encryption.Environment(variables())}, "OFF": nil} {
			code := encryption.Code(strings.Replace(text, "SECRET", mode+"-"+kind, 1), "code")
			enc, err := encryption.Load(builtin.Registry(), append([]encryption.Layer{code}, environment...)...)
			if err != nil {
				t.Fatal(err)
			}
			_, err = enc.State().Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"x"}`))
			if err == nil || strings.Contains(err.Error(), "SSL_CERT_FILE") != (mode == "OFF") {
				t.Errorf("%s, the environment is %s: got %v", kind, mode, err)
			}
		}
	}
}
