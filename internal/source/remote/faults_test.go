package remote

import (
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
	for where, path := range map[string]string{"discovery": "/.well-known/", "state": "/v1/object/"} {
		t.Run(where, func(t *testing.T) {
			h := faultHarness()
			h.At = func(r *http.Request, _ []byte) bool { return strings.Contains(r.URL.Path, path) }
			h.Golden = "remote, faults of the " + where
			h.Sees = map[string]string{"certificate of an unknown authority": faults.InGolden}
			if where == "state" {
				h.Sees["another service"] = "120116 bytes"          // the announced size; how much came depends on the request
				h.Sees["redirect to another origin"] = faults.Works // without the token, which the signed URL needs not
			}
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
