package gcpkms_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strconv"
	"testing"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/gcpkms/gcpkmstest"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	s := service()
	key, stored := newKey(t, build(t, s.Start(t), working()))
	server := grpc.NewServer(s.ServerOptions()...)
	s.Register(server)
	says := func(code codes.Code) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", strconv.Itoa(int(code)))
			w.Header().Set("Grpc-Message", canary+": the service says too much")
		}
	}
	const (
		noAnswer  = "no answer: Cloud KMS could not be reached, or did not answer in time"
		brokenOff = "unexpected answer: Cloud KMS failed to decrypt with the key " + keyA + " (Internal)"
		notTheAPI = "unexpected answer: Cloud KMS failed to decrypt with the key " + keyA + " (Unknown)"
		stream    = "HTTP/2 has frames in its place; see short body"
		overQuota = "too many calls: Cloud KMS refuses further calls for now"
	)
	encryptiontest.Faults{
		Server: server,
		HTTP2:  true,
		Build: func(t *testing.T, f encryptiontest.Front) encryption.KeyProvider {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(f.CA))
			p := build(t, []option.ClientOption{
				option.WithEndpoint(f.Address),
				option.WithGRPCDialOption(grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}))),
				option.WithGRPCDialOption(grpc.WithConnectParams(grpc.ConnectParams{
					Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond},
					MinConnectTimeout: 20 * time.Second,
				})),
				option.WithGRPCConnectionPool(1),
			}, working())
			gcpkms.SetPatience(p, time.Second)
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
			"nobody listens":           noAnswer + " (connection refused)",
			"reset at once":            noAnswer + " (connection reset)",
			"reset in the body":        brokenOff,
			"closed without an answer": brokenOff,
			"short body":               brokenOff,
			"endless body":             brokenOff,
			"another service":          notTheAPI,

			"hang":             noAnswer,
			"hang in the body": noAnswer,

			"throttled":            overQuota,
			"throttled, once":      overQuota,
			"throttled for a year": overQuota,
			"unavailable":          noAnswer,
			"unavailable, once":    encryptiontest.Works,
			"500 of a proxy":       notTheAPI,
			"503 of a proxy, once": encryptiontest.Works,

			"denied":      "grant the permission cloudkms.cryptoKeyVersions.useToDecrypt on it",
			"disabled":    "it, or the version that is needed, is disabled or destroyed",
			"not found":   "does not know the key " + keyA,
			"another key": "it was encrypted with another key",

			"redirect loop":              notTheAPI,
			"redirect to another origin": notTheAPI,

			"certificate expired":                 noAnswer + " (certificate has expired)",
			"certificate of another host":         noAnswer + " (certificate is valid for)",
			"certificate of an unknown authority": noAnswer + " (certificate signed by unknown authority)",
			"TLS 1.0":                             noAnswer,
			"no TLS":                              noAnswer,
			"handshake breaks off":                noAnswer,
		},
		Cannot: map[string]string{
			"Content-Length too large":        stream,
			"Content-Length too small":        stream,
			"not HTTP":                        stream,
			"malformed status line":           stream,
			"malformed header":                stream,
			"gzip bomb":                       "gRPC has compression of its own, which the client does not ask for",
			"throttled for a year, cancelled": "a used up quota is not waited for",
		},
	}.Run(t)
}
