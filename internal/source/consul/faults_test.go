package consul

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/consul/consultest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
)

func TestFaults(t *testing.T) {
	sourcetest.Faults(t, faultHarness(t))
}

// Promise: Cost (answers of every API, plans, locks, git)
func TestCosts(t *testing.T) { sourcetest.Costs(t, faultHarness(t)) }

func faultHarness(t *testing.T) sourcetest.FaultHarness {
	t.Helper()
	const (
		notConsul = "the answer is not a key of Consul's key-value store; check the address"
		redirects = "the server redirects to another place, which Consul does not do for keys; nothing was sent there"
	)
	var timeout time.Duration
	return sourcetest.FaultHarness{
		Kind: hurried(&timeout),
		Server: func(t *testing.T, data []byte) http.Handler {
			s := consultest.NewHandler()
			s.Tokens = map[string]consultest.Policy{"token-" + canary: reader(t)}
			s.Put("network", data)
			return s
		},
		Place: func(t *testing.T, f *faults.Front) sourcetest.Place {
			timeout = f.Patience / 2
			return sourcetest.Place{
				Attrs: attrs{"path": text("network")},
				Settings: settingsOf(attrs{"address": text(f.URL), "ca_file": text(file(t, f.CA)), "access_token": text("token-" + canary),
					"http_auth": text("u:" + canary)}),
				Secrets: []string{canary},
			}
		},
		SharedWire: true,
		Sees: map[string]string{
			"Content-Length too small":    notConsul,
			"endless body":                meter.TooLarge(1 << 20).Error(),
			"endless gzip of nothing":     meter.TooLarge(1 << 20).Error(),
			"nested a million deep":       notConsul,
			"301 that names another host": redirects,
			"401 that names another host": "the server did not accept the user name and password (401 Unauthorized)",
			"gzip bomb":                   meter.TooLarge(1 << 20).Error(),
			"another service":             notConsul,

			"403":                            "what the token needs is a policy with",
			"500":                            "the server answered 500 Internal Server Error",
			"429 with Retry-After":           "the server answered 429 Too Many Requests",
			"429 with Retry-After of a year": "the server answered 429 Too Many Requests",

			"redirect loop":              redirects,
			"redirect to another origin": redirects,
			"redirect to plain http":     redirects,

			"certificate of an unknown authority": netfail.UnknownAuthority + "set ca_file",
		},
		Cannot: map[string]string{
			"429 with Retry-After of a year, cancelled": "the longest wait ends first; TestCancelledWhileWaiting cancels one",
		},
	}
}

// file writes a file and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
