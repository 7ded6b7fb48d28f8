package remote

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/remote/tfetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
)

// What goes wrong may go wrong with a document, of which the first says where the
// service is, or with the state itself.
func TestFaults(t *testing.T) {
	const nothing = "the answer is not what the API of HCP Terraform has there"
	common := map[string]string{
		"500":                            "500 Internal Server Error",
		"429 with Retry-After":           "429 Too Many Requests",
		"429 with Retry-After of a year": "429 Too Many Requests",

		"redirect loop":          "the server redirected more than 10 times",
		"redirect to plain http": "the server redirected us: the answer is at an http address instead of https",

		"certificate of an unknown authority": netfail.UnknownAuthority + "set client_ca_certificate_pem in the credentials block",
	}
	for where, at := range map[string]struct {
		path string // a part of it
		sees map[string]string
	}{
		"discovery": {path: "/.well-known/", sees: map[string]string{
			"Content-Length too small":    nothing,
			"another service":             nothing,
			"gzip bomb":                   "the answer is longer than any of the API of HCP Terraform",
			"endless gzip of nothing":     "the answer is longer than any of the API of HCP Terraform",
			"nested a million deep":       nothing,
			"301 that names another host": "does not say where its services are: it answered 301 Moved Permanently",
			"401 that names another host": "does not say where its services are: it answered 401 Unauthorized",
			"endless body":                "the answer is longer than any of the API of HCP Terraform",
			"403":                         "does not say where its services are: it answered 403 Forbidden",
			"redirect to another origin":  "and a token for one host is not sent to another",
		}},
		"state": {path: "/v1/object/", sees: map[string]string{
			"Content-Length too small":    "the service says that the state has 120116 bytes, and sent 60058",
			"another service":             "the service says that the state has 120116 bytes, and sent ",
			"gzip bomb":                   "unpacking the gzip data: the file is larger than 1048576 bytes",
			"endless gzip of nothing":     "unpacking the gzip data: the file is larger than 1048576 bytes",
			"nested a million deep":       "the service says that the state has 120116 bytes, and sent 1000000",
			"301 that names another host": "the server answered 301 Moved Permanently",
			"401 that names another host": "refused the token (401 Unauthorized)",
			"endless body":                "the file is larger than 1048576 bytes",
			"403":                         "the state cannot be downloaded: ",
			"redirect to another origin":  faults.Works, // without the token, which the signed URL needs not
		}},
	} {
		t.Run(where, func(t *testing.T) {
			sees := maps.Clone(common)
			maps.Copy(sees, at.sees)
			h := faultHarness()
			h.At = func(r *http.Request, _ []byte) bool { return strings.Contains(r.URL.Path, at.path) }
			h.Sees = sees
			sourcetest.Faults(t, h)
		})
	}
}

func TestCosts(t *testing.T) {
	t.Run("state", func(t *testing.T) { sourcetest.Costs(t, faultHarness()) })
	t.Run("outputs", func(t *testing.T) {
		h := faultHarness()
		h.Server = func(_ *testing.T, _ []byte) http.Handler {
			s := server([]byte(`{"version":4,"serial":1,"outputs":{"a":{"value":["b"],"type":["list","string"]},"c":{"value":"d","type":"string"}}}`))
			s.Tokens[readToken], s.PageSize = tfetest.Outputs, 1
			return s
		}
		place := h.Place
		h.Place = func(t *testing.T, f *faults.Front) sourcetest.Place {
			p := place(t, f)
			p.Attrs = with(p.Attrs, "outputs_only", cty.True)
			return p
		}
		sourcetest.Costs(t, h)
	})
}

func faultHarness() sourcetest.FaultHarness {
	var patience time.Duration
	kind := Kind()
	kind.Begin = func(s source.Settings) source.Open {
		r := newRun(s)
		r.patience = web.Patience{Timeout: patience / 2, Tries: 1, WaitMin: 10 * time.Millisecond, WaitMax: 400 * time.Millisecond}
		return r.open
	}
	return sourcetest.FaultHarness{
		Kind:   kind,
		Server: func(_ *testing.T, data []byte) http.Handler { return server(data) },
		Place: func(_ *testing.T, f *faults.Front) sourcetest.Place {
			patience = f.Patience
			ca := block(strings.TrimPrefix(f.URL, "https://"), f.CA, readToken)
			other := with(block(strings.TrimPrefix(f.Other, "https://"), f.CA, ""), "url", text(f.Other+"/"))
			return sourcetest.Place{
				Attrs:    network(strings.TrimPrefix(f.URL, "https://")),
				Settings: source.Settings{Credentials: blocks(ca, other)},
				Secrets:  []string{readToken},
			}
		},
		SharedWire: true,
	}
}
