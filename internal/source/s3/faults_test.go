package s3

import (
	"net/http"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/faults"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

func TestFaults(t *testing.T) {
	const (
		moved     = "the bucket is elsewhere, and nothing was sent there; it was asked for in the region eu-west-1: check region"
		untrusted = "the TLS certificate is not trusted; custom_ca_bundle names others to trust"
		lost      = "the connection broke off, or the answer is not valid; check the endpoint and proxies if there are any"
		late      = "there was no complete answer in time"
		strange   = "an answer that is not of S3, with the HTTP status "
	)
	sourcetest.Faults(t, sourcetest.FaultHarness{
		Kind: hasty(),
		Server: func(t *testing.T, data []byte) http.Handler {
			s := stored(t, data)
			s.Token = "canary-token"
			return s
		},
		Place: func(t *testing.T, f *faults.Front) sourcetest.Place {
			b := block(f.URL).with("token", "canary-token").with("custom_ca_bundle", file(t, f.CA))
			return place(asks(), settings(nil, b))
		},
		Sees: map[string]string{
			"nobody listens":           "the connection failed: connection refused",
			"reset at once":            "the connection failed: connection reset by peer",
			"reset in the body":        "the connection failed: connection reset by peer",
			"reset in the body, once":  sourcetest.Works,
			"closed without an answer": lost,
			"short body":               lost,
			"Content-Length too large": lost,
			"Content-Length too small": sourcetest.Cut, // S3 sends checksums where it has them, and then it is noticed
			"endless body":             "the file is larger than 1048576 bytes",
			"gzip bomb":                sourcetest.Works, // no compression is asked for
			"not HTTP":                 lost,
			"malformed status line":    lost,
			"malformed header":         lost,
			"another service":          strange + "200",

			"stall":             late,
			"stall in the body": late,
			"slow drip":         late,

			"403":                            strange + "403",
			"500, once":                      sourcetest.Works,
			"500":                            strange + "500",
			"503, once":                      sourcetest.Works,
			"503 with Retry-After, once":     sourcetest.Works,
			"429 with Retry-After, once":     sourcetest.Works,
			"429 with Retry-After":           strange + "429",
			"429 with Retry-After of a year": strange + "429",

			"redirect loop":              moved,
			"redirect to another origin": moved,
			"redirect to plain http":     moved,

			"certificate expired":                 untrusted,
			"certificate of another host":         untrusted,
			"certificate of an unknown authority": untrusted,
			"TLS 1.0":                             lost,
			"no TLS":                              "the server does not speak TLS; is the endpoint right?",
			"handshake breaks off":                lost,
		},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "the SDK does not wait as it is asked to",
		},
	})
}
