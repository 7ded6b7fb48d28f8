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
			"short body": netfail.BrokeOff + " (after 2 tries)",
		},
		Golden: "gcs, faults",
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "the longest wait of this test is too short to be waited for; see TestCancelledWait",
		},
	}
}
