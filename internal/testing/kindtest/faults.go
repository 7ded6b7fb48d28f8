package kindtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/probe"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
)

// Faults is the harness of a key provider that asks a service over HTTP. The
// test stands between the two and makes go wrong what goes wrong on networks, row
// by row.
type Faults struct {
	Server http.Handler // the service; it may allow nothing but what a read needs
	Hosts  []string     // that the client asks for; 127.0.0.1 does not have to be here

	// Build makes the key provider that asks the service at url, such as
	// https://127.0.0.1:12345, and trusts ca, which is in PEM format. It gives up
	// after patience, and waits between tries are short.
	Build func(t *testing.T, url, ca string, patience time.Duration) driver.KeyProvider

	Stored json.RawMessage // what a file holds of a key
	Key    []byte          // the key

	// At chooses the requests whose answers go wrong, nil all of them.
	At func(r *http.Request, body []byte) bool

	// Reads reports whether a request is one that a read makes: Decrypt, and
	// what it takes to be let in.
	Reads func(r *http.Request, body []byte) bool

	// Throttled, Unavailable, Denied, Disabled, NotFound and AnotherKey are
	// answers of the service, in its own form. One that it does not have is nil.
	Throttled, Unavailable, Denied, Disabled, NotFound, AnotherKey http.HandlerFunc

	Secrets []string // what stands in the configuration; it must not come out

	// Sees is what the user sees of each fault, by the name of its row, if that is
	// not what is usual for it: a part of the error, or [Works]. If the moment of a
	// reset decides what the system reports, the parts that may be seen stand with
	// " | " between them. Cannot says why a fault cannot befall this key provider,
	// or why its end is not waited for. The test names the rows that should be in
	// one of the two and are not.
	Sees, Cannot map[string]string

	// Late names the rows that nothing but the patience of this key provider ends,
	// besides the stalls. It is long in all other rows. In these it is a fraction
	// of a second, and is doubled until the fault is seen.
	Late []string
}

// Works is what is seen when a fault does not matter, or is over with the next
// try.
const Works = faults.Works

// Run runs the tests as subtests of t, one for each fault. With -short, it runs
// those that the key provider's own code decides, and not what a client of HTTP
// does by itself.
//
// net/http writes to the standard logger what a server sends without being
// asked, which may be part of a key. A program that asks services for keys
// should switch that logger off, as the provider and this test do.
func (h Faults) Run(t *testing.T) { h.suite().Run(t) }

// RunCosts has the answers of the service grow in each way that their format has.
// What they cost in memory and time must grow as they do. Nothing else may run
// meanwhile; with -short, it is a sample.
func (h Faults) RunCosts(t *testing.T) { h.suite().RunCosts(t) }

func (h Faults) suite() faults.Suite {
	return faults.Suite{
		Options: faults.Options{Hosts: h.Hosts, At: h.At},
		Server:  func(*testing.T) http.Handler { return h.Server },
		Want:    h.Key,
		Client: func(t *testing.T, f *faults.Front) faults.Client {
			provider := h.Build(t, f.URL, f.CA, f.Patience)
			return faults.Client{
				Ask:     func(ctx context.Context) ([]byte, error) { return provider.Key(ctx, nil, bytes.Clone(h.Stored)) },
				Secrets: append(probe.Spellings(h.Secrets), probe.Spellings([]string{string(h.Key)})...),
			}
		},
		Service: &faults.Service{
			Throttled: h.Throttled, Unavailable: h.Unavailable,
			Denied: h.Denied, Disabled: h.Disabled, NotFound: h.NotFound, AnotherKey: h.AnotherKey,
		},
		Reads:  h.Reads,
		Check:  checkNoKey,
		Sees:   h.Sees,
		Cannot: h.Cannot,
		Late:   h.Late,
		Alone:  true,
	}
}

// checkNoKey: an error that wraps ErrNoKey has the next method tried. That is
// right if the service refuses the key, and nowhere else.
func checkNoKey(t *testing.T, err error, refusal bool) {
	t.Helper()
	if errors.Is(err, encryption.ErrNoKey) != refusal {
		t.Errorf("it wraps ErrNoKey: %t, want %t: %v", !refusal, refusal, err)
	}
	if len(err.Error()) > 1000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}
