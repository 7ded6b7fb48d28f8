package gcpkms_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

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
	s := service()
	key, stored := kindtest.NewKey(t, build(t, s.Start(t), working()))
	server := s.Server()
	says := func(code codes.Code) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", strconv.Itoa(int(code)))
			w.Header().Set("Grpc-Message", canary+": the service says too much")
		}
	}
	const (
		noAnswer  = "no answer from Cloud KMS: "
		brokenOff = "unexpected answer: Cloud KMS failed to decrypt with the key " + keyA + " (Internal)"
		notTheAPI = "unexpected answer: Cloud KMS failed to decrypt with the key " + keyA + " (Unknown)"
		stream    = "HTTP/2 has frames in its place; see short body"
		overQuota = "too many calls: Cloud KMS refuses further calls for now"
	)
	return kindtest.Faults{
		Server: server,
		HTTP2:  true,
		Build: func(t *testing.T, url, ca string, patience time.Duration) encryption.KeyProvider {
			p := build(t, dial(url, ca), working())
			gcpkms.SetPatience(p, patience/2) // of several tries
			return p
		},
		Stored: stored,
		Key:    key,
		Reads: func(r *http.Request, _ []byte) bool {
			return r.Method == http.MethodPost && r.URL.Path == "/google.cloud.kms.v1.KeyManagementService/Decrypt"
		},
		Throttled:   says(codes.ResourceExhausted),
		Unavailable: says(codes.Unavailable),
		Denied:      says(codes.PermissionDenied),
		Disabled:    says(codes.FailedPrecondition),
		NotFound:    says(codes.NotFound),
		AnotherKey:  says(codes.InvalidArgument),
		Secrets:     []string{canary, gcpkmstest.Token},
		Sees: map[string]string{
			"403":                         "an answer that is not of Cloud KMS came back (HTTP status 403); check any proxy",
			"401 that names another host": "does not accept the credentials",
			"301 that names another host": "(Unknown)",
			"nested a million deep":       "a quota of the project is used up",
			"endless header":              "(Internal)",
			"reset at once":               noAnswer + netfail.NotReached + ": connection reset",
			"reset in the body":           brokenOff,
			"reset in the body, once":     brokenOff,
			"closed without an answer":    brokenOff,
			"short body":                  brokenOff,
			"endless body":                brokenOff,
			"another service":             notTheAPI,
			"not HTTP":                    noAnswer,
			"malformed status line":       noAnswer,
			"malformed header":            noAnswer,

			"slow drip": noAnswer,

			"500, once":                      notTheAPI,
			"500":                            notTheAPI,
			"429 with Retry-After":           noAnswer,
			"429 with Retry-After of a year": noAnswer,

			"throttled":            overQuota,
			"throttled, once":      overQuota,
			"throttled for a year": overQuota,
			"unavailable":          noAnswer,

			"denied":      "grant the permission cloudkms.cryptoKeyVersions.useToDecrypt on it",
			"disabled":    "it, or the version that is needed, is disabled or destroyed",
			"not found":   "does not know the key " + keyA,
			"another key": "it was encrypted with another key",

			"redirect loop":              notTheAPI,
			"redirect to another origin": notTheAPI,
			"redirect to plain http":     notTheAPI,

			"certificate expired":  noAnswer + netfail.NotTrusted + ": certificate has expired",
			"TLS 1.0":              noAnswer,
			"no TLS":               noAnswer,
			"handshake breaks off": noAnswer,
		},
		Cannot: map[string]string{
			"Content-Length too large":        stream,
			"Content-Length too small":        stream,
			"endless gzip of nothing":         "as the gzip bomb",
			"gzip bomb":                       "gRPC has compression of its own, and there is no code for it here",
			"throttled for a year, cancelled": "a used up quota is not waited for",
		},
		Late: []string{ // Unavailable is asked for again until the time is up
			"nobody listens", "reset at once", "not HTTP", "malformed status line", "malformed header",
			"429 with Retry-After", "429 with Retry-After of a year", "unavailable",
			"certificate expired", "certificate of another host", "certificate of an unknown authority",
			"TLS 1.0", "no TLS", "handshake breaks off",
		},
	}
}

// An answer may say that it has two gigabytes, and send them.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	_, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	var sent atomic.Int64
	front := faults.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		_, err := w.Write([]byte{0, 0x7f, 0xff, 0xff, 0xff})
		zeros := make([]byte, 64<<10)
		for err == nil && r.Context().Err() == nil && sent.Load() < 64<<20 {
			_, err = w.Write(zeros)
			sent.Add(int64(len(zeros)))
		}
	}), faults.Options{HTTP2: true})
	p := build(t, dial(front.URL, front.CA), working())
	_, err := p.Key(t.Context(), nil, stored)
	if err == nil || errors.Is(err, encryption.ErrNoKey) || !strings.Contains(err.Error(), "Cloud KMS") {
		t.Errorf("got %v", err)
	}
	if taken := sent.Load() >> 20; taken > 16 {
		t.Errorf("it took %d MiB of it", taken)
	}
}

// dial is how to reach a server that ca trusts.
func dial(url, ca string) []option.ClientOption {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(ca))
	return []option.ClientOption{
		option.WithEndpoint(strings.TrimPrefix(url, "https://")),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}))),
		option.WithGRPCDialOption(grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond},
			MinConnectTimeout: 20 * time.Second,
		})),
		option.WithGRPCConnectionPool(1),
	}
}
