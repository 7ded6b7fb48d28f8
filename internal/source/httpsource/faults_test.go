package httpsource

import (
	"net/http"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
)

func TestFaults(t *testing.T) {
	sourcetest.Faults(t, faultHarness(t))
}

func TestCosts(t *testing.T) { sourcetest.Costs(t, faultHarness(t)) }

func faultHarness(t *testing.T) sourcetest.FaultHarness {
	t.Helper()
	const (
		brokeOff = netfail.BrokeOff + " (after 2 tries)"
		tooSlow  = netfail.NoAnswer + " within "
	)
	return sourcetest.FaultHarness{
		Kind: Kind(),
		Server: func(_ *testing.T, data []byte) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if _, password, _ := req.BasicAuth(); password != "password-"+canary {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				w.Header().Set("ETag", `"1"`)
				_, _ = w.Write(data)
			})
		},
		Place: func(_ *testing.T, f *faults.Front) sourcetest.Place {
			ca := attrs{"client_ca_certificate_pem": cty.StringVal(f.CA)}
			r := at(f.URL+"/state", block(f.URL, ca, everything()), block(f.Other, ca)).with("retry_max", cty.NumberIntVal(1)).
				with("timeout", cty.StringVal((f.Patience / 2).String())) // of one of two tries
			return sourcetest.Place{Attrs: r.source, Settings: r.settings(), Secrets: []string{canary}}
		},
		SharedWire: true,
		Golden:     "http, faults",
		Sees: map[string]string{
			"short body":               brokeOff,
			"Content-Length too small": faults.Cut,
			"nested a million deep":    faults.Other,

			"stall": tooSlow,

			"certificate of an unknown authority": faults.InGolden,
		},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "retry_wait_max ends the wait; TestCancelledWhileWaiting cancels one",
		},
	}
}
