package kubernetes

import (
	"net/http"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
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
			"reset in the body, once":     netfail.Ended,
			"Content-Length too small":    notASecret,
			"endless body":                tooLarge,
			"endless gzip of nothing":     tooLarge,
			"nested a million deep":       notASecret,
			"301 that names another host": "the server answered 301 Moved Permanently",
			"401 that names another host": "the server did not accept the credentials (401 Unauthorized)",
			"gzip bomb":                   notASecret, // it is not asked for, and not unpacked
			"another service":             notASecret,

			"stall":             late,
			"stall in the body": late,
			"slow drip":         late,

			"429 with Retry-After of a year": late,

			"403":                  `this requires the verb "get" for the resource "secrets"`,
			"500, once":            "the server answered 500 Internal Server Error",
			"500":                  "the server answered 500 Internal Server Error",
			"503, once":            "the server answered 503 Service Unavailable",
			"429 with Retry-After": "the server answered 429 Too Many Requests",

			"redirect loop":              redirects,
			"redirect to another origin": redirects,
			"redirect to plain http":     redirects,

			"certificate of an unknown authority": netfail.UnknownAuthority + "set cluster_ca_certificate",
		},
		Late: []string{"429 with Retry-After of a year"},
	}
}
