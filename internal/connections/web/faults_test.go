package web

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
)

// TestFaults runs all rows on the wire that kinds share. Theirs are those in
// which they have a say.
//
// Promise: Cost
// Promise: Verified connections
// Promise: Whole answers
func TestFaults(t *testing.T) {
	t.Parallel()
	const (
		limit    = 1 << 20
		password = "password-ssssssssssssssss"
	)
	want := []byte(`{"data": "` + strings.Repeat("data ", 20_000) + `"}`)
	faults.Suite{
		Server: func(*testing.T) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, sent, _ := r.BasicAuth(); sent != password {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				_, _ = w.Write(want)
			})
		},
		Want: want,
		Client: func(t *testing.T, f *faults.Front) faults.Client {
			from, err := url.Parse(f.URL + "/file")
			if err != nil {
				t.Fatal(err)
			}
			transport := Transport(world.World{}, &tls.Config{RootCAs: Authorities([]byte(f.CA)), MinVersion: tls.VersionTLS12}, Proxies(nil))
			t.Cleanup(transport.CloseIdleConnections)
			wire := Wire{
				Patience:  Patience{Timeout: f.Patience / 2, Tries: 1, WaitMin: time.Millisecond, WaitMax: 100 * time.Millisecond},
				Transport: transport,
				Authorize: func(r *http.Request) error { r.SetBasicAuth("reader", password); return nil },
				Trust:     "set ca_file",
			}
			return faults.Client{Secrets: []string{password}, Ask: func(ctx context.Context) (data []byte, err error) {
				err = wire.Get(ctx, from, nil, func(resp *http.Response) (err error) {
					if resp.StatusCode != http.StatusOK {
						return Final("the server answered %s", Status(resp.StatusCode))
					}
					data, err = ReadBody(resp, limit, io.Discard)
					return err
				})
				return data, err
			}}
		},
		Reads: func(r *http.Request, _ []byte) bool { return r.Method == http.MethodGet },
		Check: func(t *testing.T, err error, _ bool) {
			t.Helper()
			if _, missing := source.IsMissing(err); missing {
				t.Errorf("got %v: a read that failed does not show that there is no state", err)
			}
		},
		Golden: testkit.OpenGolden(t, "../testdata/mistakes.txt", "faults", password).Check,
		Sees: map[string]string{
			"short body":               faults.InGolden,
			"Content-Length too small": faults.Cut,
			"nested a million deep":    faults.Other,
			"another service":          faults.Other,

			"certificate of an unknown authority": netfail.UnknownAuthority + "set ca_file",
		},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "the longest wait ends first",
		},
	}.Run(t)
}

// How long a try may take is said, and what raises it.
func TestLate(t *testing.T) {
	says := testkit.OpenGolden(t, "../testdata/mistakes.txt", "late")
	for name, attr := range map[string]string{"no attribute": "", "an attribute": "timeout"} {
		w := Wire{Patience: Patience{Timeout: 90 * time.Second, Attr: attr}}
		says.Error(t, name, w.reason(context.DeadlineExceeded))
	}
}
