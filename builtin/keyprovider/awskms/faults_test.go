package awskms_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// Promise: Fallbacks
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("the faults of networks take seconds")
	}
	faultHarness(t).Run(t, kindtest.OpenMistakes(t, "awskms, faults"))
}

func TestCosts(t *testing.T) { faultHarness(t).RunCosts(t) }

func faultHarness(t *testing.T) kindtest.Faults {
	t.Helper()
	server := standard(t)
	key, stored := wrapped(t, server, static())
	says := func(status int, code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			w.Header().Set("X-Amzn-ErrorType", code)
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"__type":"com.amazonaws.kms#%s","message":%q}`, code, awskmstest.Leak)
		}
	}
	return kindtest.Faults{
		Server: server,
		Build: func(t *testing.T, url, ca string, patience time.Duration) driver.KeyProvider {
			t.Setenv("AWS_ENDPOINT_URL_KMS", url)
			p := provider(t, static().With("custom_ca_bundle", write(t, ca)))
			awskms.SetPatience(p, patience/2, time.Millisecond)
			return p
		},
		Stored: stored,
		Key:    key,
		Reads: func(r *http.Request, _ []byte) bool {
			return r.Method == http.MethodPost && r.Header.Get("X-Amz-Target") == "TrentService.Decrypt"
		},
		Throttled:   says(400, "ThrottlingException"),
		Unavailable: says(500, "KMSInternalException"),
		Denied:      says(400, "AccessDeniedException"),
		Disabled:    says(400, "DisabledException"),
		NotFound:    says(400, "NotFoundException"),
		AnotherKey:  says(400, "IncorrectKeyException"),
		Secrets:     []string{"canary", "AKIASTATIC"},
		Sees: map[string]string{
			"reset in the body":        netfail.Ended + " | (HTTP status 200)",
			"short body":               kindtest.InGolden,
			"Content-Length too large": kindtest.InGolden,
			"endless gzip of nothing":  netfail.NoAnswer,

			"certificate of an unknown authority": netfail.UnknownAuthority + "set custom_ca_bundle",
		},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "the SDK does not wait as it is asked to",
			"throttled for a year, cancelled":           "the SDK does not wait as it is asked to",
		},
		Late: []string{"endless gzip of nothing"},
	}
}
