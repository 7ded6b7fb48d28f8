package azurerm

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
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
	var client *http.Client
	var patience time.Duration
	patient := kind(nil)
	patient.Begin = func(s source.Settings) source.Open {
		open := kind(client).Begin(s)
		return func(req source.Request) (source.Source, error) {
			src, err := open(req)
			if l, ok := src.(*location); ok {
				l.timeout = patience // timeout_seconds are whole ones
			}
			return src, err
		}
	}
	return sourcetest.FaultHarness{
		Kind: patient,
		Server: func(_ *testing.T, data []byte) http.Handler {
			s := azuretest.New("tfstate")
			s.Put("tfstate", "network.tfstate", azuretest.Blob{Data: data})
			return s
		},
		Place: func(t *testing.T, f *faults.Front) sourcetest.Place {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(f.CA))
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
			t.Cleanup(transport.CloseIdleConnections)
			client = &http.Client{
				Transport:     transport,
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			}
			patience = f.Patience
			block := withKey().with("blob_endpoint", f.URL+"/"+azuretest.Account)
			return sourcetest.Place{Attrs: place(), Settings: settings(block), Secrets: []string{azuretest.Key, canary}}
		},
		Sees: map[string]string{
			"nobody listens":           faults.InGolden,
			"short body":               netfail.BrokeOff + " (after 3 tries)",
			"Content-Length too small": faults.Cut,
			"nested a million deep":    faults.Other,
		},
		Golden: "azurerm, faults",
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "the SDK does not wait for longer than a minute; TestCancelledWhileWaiting cancels " +
				"such a wait",
		},
	}
}
