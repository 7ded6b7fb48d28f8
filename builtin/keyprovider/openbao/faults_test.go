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
	faultHarness(t).Run(t, kindtest.OpenMistakes(t, "openbao, faults"))
}

func TestCosts(t *testing.T) { faultHarness(t).RunCosts(t) }

func faultHarness(t *testing.T) kindtest.Faults {
	t.Helper()
	s, base, key, stored := sealed(t)
	says := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { answer(status, `{"errors":["`+text+` canary"]}`)(w, r) }
	}
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
			"reset in the body":        kindtest.InGolden,
			"reset in the body, once":  kindtest.InGolden,
			"short body":               kindtest.InGolden,
			"Content-Length too large": kindtest.InGolden,
			"endless body":             kindtest.Works, // no more is read than the key takes

			"stall":             kindtest.InGolden,
			"stall in the body": kindtest.InGolden,
			"slow drip":         kindtest.InGolden,

			"certificate of an unknown authority": netfail.UnknownAuthority + "set ca_cert_file",
		},
		Late: []string{"endless gzip of nothing", "429 with Retry-After of a year", "throttled for a year"},
	}
}
