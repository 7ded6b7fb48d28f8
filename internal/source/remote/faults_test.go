package remote

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/remote/tfetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
)

// What goes wrong may go wrong with a document, of which the first says where the
// service is, or with the state itself.
func TestFaults(t *testing.T) {
	common := map[string]string{
		"500":                            faults.InGolden,
		"429 with Retry-After":           faults.InGolden,
		"429 with Retry-After of a year": faults.InGolden,

		"redirect loop":          faults.InGolden,
		"redirect to plain http": faults.InGolden,

		"certificate of an unknown authority": faults.InGolden,
	}
	for where, at := range map[string]struct {
		path string // a part of it
		sees map[string]string
	}{
		"discovery": {path: "/.well-known/", sees: map[string]string{
			"Content-Length too small":    faults.InGolden,
			"another service":             faults.InGolden,
			"gzip bomb":                   faults.InGolden,
			"endless gzip of nothing":     faults.InGolden,
			"nested a million deep":       faults.InGolden,
			"301 that names another host": faults.InGolden,
			"401 that names another host": faults.InGolden,
			"endless body":                faults.InGolden,
			"403":                         faults.InGolden,
			"redirect to another origin":  faults.InGolden,
		}},
		"state": {path: "/v1/object/", sees: map[string]string{
			"Content-Length too small":    faults.InGolden,
			"another service":             "120116 bytes", // the announced size; how much came depends on the request
			"gzip bomb":                   faults.InGolden,
			"endless gzip of nothing":     faults.InGolden,
			"nested a million deep":       faults.InGolden,
			"301 that names another host": faults.InGolden,
			"401 that names another host": faults.InGolden,
			"endless body":                faults.InGolden,
			"403":                         faults.InGolden,
			"redirect to another origin":  faults.Works, // without the token, which the signed URL needs not
		}},
	} {
		t.Run(where, func(t *testing.T) {
			sees := maps.Clone(common)
			maps.Copy(sees, at.sees)
			h := faultHarness()
			h.At = func(r *http.Request, _ []byte) bool { return strings.Contains(r.URL.Path, at.path) }
			h.Sees, h.Golden = sees, "remote, faults of the "+where
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
