package kubernetes

import (
	"net/http"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes/kubetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

func TestFaults(t *testing.T) {
	sourcetest.Faults(t, faultHarness(t))
}

func TestCosts(t *testing.T) { sourcetest.Costs(t, faultHarness(t)) }

func faultHarness(t *testing.T) sourcetest.FaultHarness {
	t.Helper()
	const (
		token      = "token-ssssssssssssssssssss"
		lost       = "the connection broke off before the answer was complete"
		notHTTP    = "the connection failed, or the answer is not valid"
		notASecret = "the server's answer for the secret default/tfstate-default-prod is not a secret"
		tooLarge   = "is larger than 8388608 bytes, which no object is"
		redirects  = "the server redirects to another place, which an API server does not do; nothing was sent there"
		late       = "the server did not answer in time"
	)
	var patience time.Duration
	kind := Kind()
	kind.Begin = func(s source.Settings) source.Open {
		r := newRun(s)
		r.patience = patience // instead of two minutes
		return r.open
	}
	return sourcetest.FaultHarness{
		Kind: kind,
		Server: func(t *testing.T, data []byte) http.Handler {
			s := kubetest.New(t)
			s.Token = token
			s.PutSecret("default", "tfstate-default-prod", map[string][]byte{"tfstate": nettest.Gzip(data)})
			return s
		},
		Place: func(_ *testing.T, f *faults.Front) sourcetest.Place {
			patience = f.Patience
			return sourcetest.Place{
				Attrs:    attrs{"secret_suffix": text("prod")},
				Settings: settingsOf(attrs{"host": text(f.URL), "cluster_ca_certificate": text(f.CA), "token": text(token)}),
				Secrets:  []string{token},
			}
		},
		Sees: map[string]string{
			"nobody listens":              "connect: connection refused",
			"reset at once":               "the server ended the connection; check the address, the port, ",
			"reset in the body":           "read: connection reset by peer",
			"reset in the body, once":     "read: connection reset by peer",
			"closed without an answer":    lost,
			"short body":                  lost,
			"Content-Length too large":    lost,
			"Content-Length too small":    notASecret,
			"endless body":                tooLarge,
			"endless header":              notHTTP,
			"endless gzip of nothing":     tooLarge,
			"nested a million deep":       notASecret,
			"301 that names another host": "the server answered 301 Moved Permanently",
			"401 that names another host": "the server did not accept the credentials (401 Unauthorized)",
			"gzip bomb":                   notASecret, // it is not asked for, and not unpacked
			"not HTTP":                    notHTTP,
			"malformed status line":       notHTTP,
			"malformed header":            notHTTP,
			"another service":             notASecret,

			"stall":             late,
			"stall in the body": late,
			"slow drip":         late,

			"429 with Retry-After of a year": late,

			"403":                        `this requires the verb "get" for the resource "secrets"`,
			"500, once":                  "the server answered 500 Internal Server Error",
			"500":                        "the server answered 500 Internal Server Error",
			"503, once":                  "the server answered 503 Service Unavailable",
			"503 with Retry-After, once": faults.Works,
			"429 with Retry-After, once": faults.Works,
			"429 with Retry-After":       "the server answered 429 Too Many Requests",

			"redirect loop":              redirects,
			"redirect to another origin": redirects,
			"redirect to plain http":     redirects,

			"certificate expired": "the server's certificate is not trusted: x509: certificate has expired",
			"certificate of another host": "the server's certificate is not trusted: x509: certificate is valid for 127.0.0.9, not " +
				"127.0.0.1",
			"certificate of an unknown authority": "signed by an unknown authority; if that is expected, set cluster_ca_certificate",
			"TLS 1.0":                             "tls: protocol version not supported",
			"no TLS":                              "the server does not speak TLS; check the port and the scheme",
			"handshake breaks off":                lost,
		},
		Late: []string{"429 with Retry-After of a year"},
	}
}
