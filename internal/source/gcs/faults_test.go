package gcs

import (
	"crypto/x509"
	"net/http"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	sourcetest.Faults(t, faultHarness(t))
}

func TestCosts(t *testing.T) { sourcetest.Costs(t, faultHarness(t)) }

func faultHarness(t *testing.T) sourcetest.FaultHarness {
	t.Helper()
	const (
		damaged   = "the answer was damaged on its way: its checksum does not match (after 2 tries)"
		tooLarge  = "the file is larger than 1048576 bytes"
		notGoogle = "the answer is not that of Cloud Storage"
		redirects = "the service redirects to another place (307 Temporary Redirect), which Cloud Storage does not do; nothing was sent there"
	)
	var roots *x509.CertPool
	var patience time.Duration
	kind := Kind()
	kind.Begin = func(s source.Settings) source.Open {
		r := newRun(s)
		r.patience = web.Patience{Timeout: patience / 2, Tries: 1, WaitMax: 100 * time.Millisecond}
		r.roots = roots
		return r.open
	}
	return sourcetest.FaultHarness{
		Kind: kind,
		Server: func(_ *testing.T, data []byte) http.Handler {
			s := gcstest.New("states")
			s.Put("states", object, gcstest.Object{Data: data})
			return s
		},
		Place: func(_ *testing.T, f *faults.Front) sourcetest.Place {
			patience = f.Patience
			roots = web.Authorities([]byte(f.CA))
			return sourcetest.Place{Attrs: place(), Settings: settingsOf(block(f.URL + "/storage/v1/")), Secrets: []string{gcstest.Token}}
		},
		SharedWire: true,
		Sees: map[string]string{
			"short body":                  netfail.BrokeOff + " (after 2 tries)",
			"Content-Length too small":    damaged,
			"endless body":                tooLarge,
			"endless gzip of nothing":     tooLarge,
			"nested a million deep":       damaged,
			"301 that names another host": "the service redirects to another place (301 Moved Permanently)",
			"401 that names another host": "Cloud Storage does not accept the access token (401 Unauthorized)",
			"gzip bomb":                   tooLarge,
			"another service":             notGoogle,

			"403":                            "grant storage.objects.get on the bucket",
			"500":                            "the service answered 500 Internal Server Error; try again later, or see its log (after 2 tries)",
			"429 with Retry-After":           "Cloud Storage gets too many requests (429 Too Many Requests); try again later (after 2 tries)",
			"429 with Retry-After of a year": "Cloud Storage gets too many requests (429 Too Many Requests); try again later (after 2 tries)",

			"redirect loop":              redirects,
			"redirect to another origin": redirects,
			"redirect to plain http":     redirects,
		},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "the longest wait of this test is too short to be waited for; see TestCancelledWait",
		},
	}
}
