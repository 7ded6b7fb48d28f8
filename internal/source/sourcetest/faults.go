package sourcetest

import (
	"context"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
)

// FaultHarness lets [Faults] put faults between a source that reads over HTTP and its server.
type FaultHarness struct {
	Kind source.Kind

	// Server returns a handler without faults, which sends data to clients with the right credentials.
	Server func(t *testing.T, data []byte) http.Handler

	// Place says how to read from the server at f.URL, trusting f.CA, and with the time limit f.Patience. If
	// the kind follows redirects, f.CA must be trusted for f.Other as well.
	Place func(t *testing.T, f *faults.Front) Place

	// At selects the requests whose responses go wrong. If it is nil, all of them do.
	At func(r *http.Request, body []byte) bool

	// Reads reports whether a request is a read, for methods other than GET and HEAD. It may be nil.
	Reads func(r *http.Request, body []byte) bool

	Sees, Cannot map[string]string // see [faults.Suite]
	Late         []string          // see [faults.Suite]
	SharedWire   bool              // see [faults.Suite]; the tests of web or object run all rows
	Few          bool              // see [faults.Suite]

	// Golden is the group of the golden file of sources that holds the errors that are [faults.InGolden].
	Golden string
}

// Faults runs the table of [faults.Suite] for one kind of source that reads over HTTP.
func Faults(t *testing.T, h FaultHarness) {
	s := h.suite(faultState())
	if h.Golden != "" {
		says := OpenMistakes(t, h.Golden)
		s.Golden = func(t *testing.T, name, text string) { says.Error(t, name, errors.New(text)) }
	}
	s.Run(t)
}

// Costs makes the server's responses larger and checks that the cost of a read grows in proportion. Nothing
// else may run at the same time.
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

// faultState returns a state that does not shrink when it is compressed.
func faultState() []byte {
	noise := make([]byte, 90_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never fails
	return []byte(`{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"x","outputs":{"noise":{"value":"` +
		base64.StdEncoding.EncodeToString(noise) + `","type":"string"}}}`)
}
