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
		tooSlow  = "; timeout can be raised (after 2 tries)"
		tooLarge = "the file is larger than 1048576 bytes"
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
		Sees: map[string]string{
			"short body":                  brokeOff,
			"Content-Length too small":    faults.Cut,
			"endless body":                tooLarge,
			"endless gzip of nothing":     "unpacking the gzip data: " + tooLarge,
			"nested a million deep":       faults.Other,
			"301 that names another host": "the server answered 301 Moved Permanently",
			"401 that names another host": "the server refused the credentials (401 Unauthorized)",
			"gzip bomb":                   "unpacking the gzip data: " + tooLarge,
			"another service":             "the server answered with a web page (text/html) and not with a file",

			"stall": tooSlow,

			"403":                            "the server refused the credentials (403 Forbidden)",
			"500":                            "the server answered 500 Internal Server Error; try again later, or see its log (after 2 tries)",
			"429 with Retry-After":           "the server answered 429 Too Many Requests; try again later, or see its log (after 2 tries)",
			"429 with Retry-After of a year": "the server answered 429 Too Many Requests; try again later, or see its log (after 2 tries)",

			"redirect loop":              "the server redirected more than 10 times",
			"redirect to another origin": "no credentials were sent to https://127.0.0.1:",
			"redirect to plain http":     "the server redirected us: the answer is at an http address instead of https",

			"certificate of an unknown authority": netfail.UnknownAuthority,
		},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "retry_wait_max ends the wait; TestCancelledWhileWaiting cancels one",
		},
	}
}
