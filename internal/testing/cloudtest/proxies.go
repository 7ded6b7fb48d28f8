package cloudtest

import (
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// CheckProxies runs TestBehindProxy of the same package twice, with a proxy in the given environment variables. It
// checks that the proxy is used with the environment on, and not used with the environment off.
// STATECRYPT_TEST_ENVIRONMENT tells TestBehindProxy which case it is: "on" or "off".
//
// Each case runs in a separate process, because Go reads the proxy variables only once per process.
func CheckProxies(t *testing.T, variables ...string) {
	t.Helper()
	for mode, want := range map[string]bool{"on": true, "off": false} {
		var asked atomic.Bool
		proxy := nettest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Store(true)
			w.WriteHeader(http.StatusForbidden)
		}))
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestBehindProxy$") //nolint:gosec // this test binary
		cmd.Env = append(os.Environ(), "STATECRYPT_TEST_ENVIRONMENT="+mode)
		for _, name := range variables {
			cmd.Env = append(cmd.Env, name+"="+proxy)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", mode, err, out)
		}
		if asked.Load() != want {
			t.Errorf("with the environment %s, the proxy was asked: %t", mode, !want)
		}
	}
}
