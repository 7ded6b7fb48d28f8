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
	const token = "token-ssssssssssssssssssss"
	late := errPatience.Error()
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
			"reset in the body, once": netfail.Ended,

			"stall":             late,
			"stall in the body": late,
			"slow drip":         late,

			"429 with Retry-After of a year": late,

			"500, once": faults.InGolden,
			"503, once": faults.InGolden,

			"certificate of an unknown authority": faults.InGolden,
		},
		Golden: "kubernetes, faults",
		Late:   []string{"429 with Retry-After of a year"},
	}
}
