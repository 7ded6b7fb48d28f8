package kindtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/probe"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
)

// Faults is the test harness for a key provider that uses a service over HTTP. The test stands between the two, and
// simulates one network failure per row.
type Faults struct {
	Server http.Handler // the service; it only needs to support reads
	Hosts  []string     // host names that the client uses, besides 127.0.0.1

	// Build creates the key provider for the service at url, such as https://127.0.0.1:12345. It must trust ca, which
	// is in PEM format, give up after patience, and wait only briefly between tries.
	Build func(t *testing.T, url, ca string, patience time.Duration) driver.KeyProvider

	Stored json.RawMessage // the stored metadata of a key
	Key    []byte          // the key

	// At selects the requests whose responses go wrong; nil selects all.
	At func(r *http.Request, body []byte) bool

	// Reads reports whether a request is one that a read makes: Decrypt, or a request to sign in.
	Reads func(r *http.Request, body []byte) bool

	// Throttled, Unavailable, Denied, Disabled, NotFound and AnotherKey are service responses, in the service's own
	// format. A response that the service does not have is nil.
	Throttled, Unavailable, Denied, Disabled, NotFound, AnotherKey http.HandlerFunc

	Secrets []string // secrets in the configuration, which must not leak

	// Sees maps row names to the message users see, where it differs from the default. The message is a part of the
	// error, [Works] or [InGolden]. If the system's report depends on when a reset arrives, the possible parts are
	// separated by " | ". Cannot maps row names to the reason why the fault cannot affect this key provider, or why the
	// test does not wait for its end. The test names the rows that are missing in both.
	Sees, Cannot map[string]string

	// Late names the rows, in addition to the stalls, that end only when this key provider's time limit expires. The
	// time limit is long in all other rows. In these rows, it starts at a fraction of a second, and is doubled until
	// the fault is seen.
	Late []string
}

const (
	Works    = faults.Works    // a fault does not matter, or is over at the next try
	InGolden = faults.InGolden // the golden has the whole text, with DURATION in place of each duration
)

var duration = regexp.MustCompile(`\b[\d.]+(ms|s)\b`)

// Run runs one subtest per fault, and compares the texts of the rows that are [InGolden]. With -short, it runs only the
// faults handled by the key provider's own code, and not the faults handled by the HTTP client.
//
// net/http logs unsolicited server data to the standard logger, and the data may contain a part of a key. A program
// that gets keys from services should silence that logger, as the provider and this test do.
func (h Faults) Run(t *testing.T, golden *testkit.Golden) {
	s := h.suite()
	s.Golden = func(t *testing.T, name, text string) {
		golden.Error(t, name, errors.New(duration.ReplaceAllString(text, "DURATION")))
	}
	s.Run(t)
}

// RunCosts makes the service responses grow in each way their format allows. The memory and time they cost must not
// grow faster than their size. Nothing else may run at the same time. With -short, RunCosts tries only a sample.
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

// checkNoKey checks that an error wraps ErrNoKey if and only if the service refuses the key. An error that wraps
// ErrNoKey makes the next method try.
func checkNoKey(t *testing.T, err error, refusal bool) {
	t.Helper()
	if errors.Is(err, encryption.ErrNoKey) != refusal {
		t.Errorf("it wraps ErrNoKey: %t, want %t: %v", !refusal, refusal, err)
	}
	if len(err.Error()) > 1000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}
