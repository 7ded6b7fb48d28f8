package sourcetest

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
)

// FaultHarness lets [Faults] stand between a kind that reads over HTTP and its
// server.
type FaultHarness struct {
	Kind source.Kind

	// Server makes the faithful server, which gives data to whoever has the
	// credentials.
	Server func(t *testing.T, data []byte) http.Handler

	// Place says how to ask the server at f.URL, trusting f.CA, and with a limit of
	// f.Patience. If redirects are followed, f.CA is trusted for f.Other as well.
	Place func(t *testing.T, f *faults.Front) Place

	// At chooses the requests whose answers go wrong, nil all of them.
	At func(r *http.Request, body []byte) bool

	// Reads reports whether a request other than GET and HEAD reads. It may be
	// nil.
	Reads func(r *http.Request, body []byte) bool

	Sees, Cannot map[string]string // see [faults.Suite]
	Late         []string          // see [faults.Suite]
	SharedWire   bool              // see [faults.Suite]; web or object run all rows
	Few          bool              // see [faults.Suite]
}

// Faults runs the table of [faults.Suite] on one kind that reads over HTTP.
func Faults(t *testing.T, h FaultHarness) { h.suite(faultState()).Run(t) }

// Costs has the answers of the server grow, and what they cost must grow as they
// do. Nothing else may run meanwhile.
func Costs(t *testing.T, h FaultHarness) { h.suite([]byte(`{"version":4,"serial":1}`)).RunCosts(t) }

func (h FaultHarness) suite(data []byte) faults.Suite {
	return faults.Suite{
		Options: faults.Options{At: h.At},
		Server:  func(t *testing.T) http.Handler { return h.Server(t, data) },
		Want:    data,
		Client: func(t *testing.T, f *faults.Front) faults.Client {
			p := h.Place(t, f)
			s := p.Open(t, h.Kind, maxSize)
			return faults.Client{Secrets: p.Secrets, Ask: func(ctx context.Context) ([]byte, error) {
				snap, err := s.Fetch(ctx)
				if err != nil {
					return nil, err
				}
				return snap.Data, nil
			}}
		},
		Reads: func(r *http.Request, body []byte) bool {
			return r.Method == http.MethodGet || r.Method == http.MethodHead || h.Reads != nil && h.Reads(r, body)
		},
		Strays: true,
		Check:  func(t *testing.T, err error, _ bool) { checkNotMissing(t, err) },
		Sees:   h.Sees,
		Cannot: h.Cannot,
		Late:   h.Late,

		SharedWire: h.SharedWire, Few: h.Few,
	}
}

// faultState is a state that does not become small when it is packed.
func faultState() []byte {
	noise := make([]byte, 90_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never fails
	return []byte(`{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"x","outputs":{"noise":{"value":"` +
		base64.StdEncoding.EncodeToString(noise) + `","type":"string"}}}`)
}
