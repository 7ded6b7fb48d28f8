package openbao_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// Promise: Fallbacks
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("the faults of networks take seconds")
	}
	t.Parallel()
	faultHarness(t).Run(t)
}

func TestCosts(t *testing.T) { faultHarness(t).RunCosts(t) }

func faultHarness(t *testing.T) kindtest.Faults {
	t.Helper()
	s, base, key, stored := sealed(t)
	says := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { answer(status, `{"errors":["`+text+` canary"]}`)(w, r) }
	}
	const (
		notTheAPI = "its answer does not come from OpenBao or Vault; check address"
		redirects = "it redirects, which is not followed unless disable_redirects = false"
	)
	return kindtest.Faults{
		Server: s,
		Build: func(t *testing.T, url, ca string, patience time.Duration) driver.KeyProvider {
			p := build(t, base.With("address", url, "ca_cert_pem", ca, "client_timeout", patience.String(), "max_retries", 1), nil)
			openbao.SetRetryWait(p, time.Millisecond)
			return p
		},
		Stored: stored,
		Key:    key,
		Reads: func(r *http.Request, _ []byte) bool {
			return r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/v1/transit/decrypt/")
		},
		Throttled:   says(429, "request path rate limit quota exceeded"),
		Unavailable: says(503, "Vault is sealed"),
		Denied:      says(403, "permission denied"),
		Disabled:    says(400, "ciphertext or signature version is disallowed by policy (too old)"),
		NotFound:    says(400, "encryption key not found"),
		AnotherKey:  says(400, "cipher: message authentication failed"),
		Secrets:     []string{"canary", "vault:v1:"},
		Sees: map[string]string{
			"403":                         "its answer does not come from OpenBao or Vault (status 403); check address and any proxy",
			"reset in the body":           notTheAPI,
			"reset in the body, once":     notTheAPI,
			"short body":                  notTheAPI,
			"Content-Length too large":    notTheAPI,
			"Content-Length too small":    notTheAPI,
			"endless body":                kindtest.Works, // no more is read than the key takes
			"endless gzip of nothing":     "does not answer within ",
			"nested a million deep":       "its answer does not come from OpenBao or Vault",
			"301 that names another host": "it redirects, which is not followed",
			"401 that names another host": "its answer does not come from OpenBao or Vault (status 401)",
			"gzip bomb":                   notTheAPI,
			"another service":             notTheAPI,

			"stall":             "does not answer within ",
			"stall in the body": "does not answer within ",
			"slow drip":         "does not answer within ",

			"500":                            "cannot answer now (status 500)",
			"429 with Retry-After":           "gets too many requests (status 429)",
			"429 with Retry-After of a year": "does not answer within ",

			"throttled":            "gets too many requests (status 429)",
			"throttled for a year": "does not answer within ",
			"unavailable":          "cannot answer now (status 503): it may be sealed",

			"denied":      "denies the request (status 403)",
			"disabled":    "its version of the key is disabled (min_decryption_version)",
			"not found":   "there is no such key",
			"another key": "the key is another one, or the metadata in the file was changed",

			"redirect loop":              redirects,
			"redirect to another origin": redirects,
			"redirect to plain http":     redirects,

			"certificate of an unknown authority": netfail.UnknownAuthority + "set ca_cert_file",
		},
		Late: []string{"endless gzip of nothing", "429 with Retry-After of a year", "throttled for a year"},
	}
}
