package consul

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

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
			"certificate of an unknown authority": faults.InGolden,
		},
		Golden: "consul, faults",
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
