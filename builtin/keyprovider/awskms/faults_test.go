package awskms_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("the faults of networks take seconds")
	}
	faultHarness(t).Run(t)
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
	const (
		noAnswer  = "the connection failed, or the answer is not valid; check the address, and proxies if there are any"
		notAWS    = "the answer is not one of AWS (HTTP status 200)"
		timedOut  = "there was no complete answer in time"
		throttled = "too many requests, even after retries; try again later, or raise max_retries (ThrottlingException)"
		brokeOff  = "the connection broke off before the answer was complete"
		untrusted = "the server's certificate is not trusted: x509: certificate "
	)
	return kindtest.Faults{
		Server: server,
		Build: func(t *testing.T, url, ca string, patience time.Duration) encryption.KeyProvider {
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
			"nobody listens":              "connect: connection refused",
			"reset at once":               "connection reset by peer",
			"reset in the body":           "read: connection reset by peer | the answer is not one of AWS",
			"reset in the body, once":     kindtest.Works,
			"closed without an answer":    brokeOff,
			"short body":                  notAWS,
			"Content-Length too large":    notAWS,
			"Content-Length too small":    notAWS,
			"endless body":                notAWS,
			"endless header":              "the connection failed, or the answer is not valid",
			"endless gzip of nothing":     "there was no complete answer in time",
			"nested a million deep":       "the answer is not one of AWS (HTTP status 200)",
			"301 that names another host": "the answer is not one of AWS (HTTP status 301)",
			"401 that names another host": "the answer is not one of AWS (HTTP status 401)",
			"gzip bomb":                   notAWS,
			"not HTTP":                    noAnswer,
			"malformed status line":       noAnswer,
			"malformed header":            noAnswer,
			"another service":             notAWS,

			"stall":             timedOut,
			"stall in the body": timedOut,
			"slow drip":         timedOut,

			"403":                            "the answer is not one of AWS (HTTP status 403)",
			"500, once":                      kindtest.Works,
			"500":                            "the answer is not one of AWS (HTTP status 500)",
			"503, once":                      kindtest.Works,
			"503 with Retry-After, once":     kindtest.Works,
			"429 with Retry-After, once":     "the answer is not one of AWS (HTTP status 429)",
			"429 with Retry-After":           "the answer is not one of AWS (HTTP status 429)",
			"429 with Retry-After of a year": "the answer is not one of AWS (HTTP status 429)",

			"throttled":            throttled,
			"throttled, once":      kindtest.Works,
			"throttled for a year": throttled,
			"unavailable":          "the service is out of order; try again later (KMSInternalException)",
			"unavailable, once":    kindtest.Works,

			"denied":      "the credentials need kms:Decrypt on this key",
			"disabled":    "the key is disabled (DisabledException)",
			"not found":   "there is no such key; check kms_key_id",
			"another key": "the file was encrypted with another key (IncorrectKeyException)",

			"redirect loop":              "the request failed",
			"redirect to another origin": "the request failed",
			"redirect to plain http":     "the request failed",

			"certificate expired":                 untrusted + "has expired",
			"certificate of another host":         untrusted + "is valid for 127.0.0.9, not 127.0.0.1",
			"certificate of an unknown authority": "signed by an unknown authority; if that is expected, set custom_ca_bundle",
			"TLS 1.0":                             "tls: protocol version not supported",
			"no TLS":                              "the server does not speak TLS; check the port and the scheme",
			"handshake breaks off":                brokeOff,
		},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "the SDK does not wait as it is asked to",
			"throttled for a year, cancelled":           "the SDK does not wait as it is asked to",
		},
		Late: []string{"endless gzip of nothing"},
	}
}
