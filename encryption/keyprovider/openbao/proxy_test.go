package openbao_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/openbao"
)

// Go reads the variables for proxies once in a process, so each case runs in
// one of its own.
func TestProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]bool{"on": true, "off": false} {
		var asked atomic.Bool
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Store(true)
			w.WriteHeader(http.StatusForbidden)
		}))
		t.Cleanup(proxy.Close)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestBehindProxy$") //nolint:gosec // this test binary
		cmd.Env = append(os.Environ(), "STATECRYPT_TEST_ENVIRONMENT="+mode)
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "BAO_HTTP_PROXY", "VAULT_PROXY_ADDR"} {
			cmd.Env = append(cmd.Env, name+"="+proxy.URL)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", mode, err, out)
		}
		if asked.Load() != want {
			t.Errorf("with the environment %s, the proxy was asked: %t", mode, !want)
		}
	}
}

// TestBehindProxy is run by TestProxyOfTheEnvironment.
func TestBehindProxy(t *testing.T) {
	lookups := map[string]attr.LookupEnv{"on": func(string) (string, bool) { return "", false }, "off": nil}
	lookup, ok := lookups[os.Getenv("STATECRYPT_TEST_ENVIRONMENT")]
	if !ok {
		t.Skip("another test runs this one")
	}
	block := openbao.Block()
	a := with(nil, "address", "http://bao.invalid", "key_name", "k", "token", "t", "max_retries", 0)
	values, err := attr.NewEntry("key_provider.openbao.x", block.Table, a).Decode(block.Table, lookup)
	if err != nil {
		t.Fatal(err)
	}
	p, err := block.Build(values)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Key(t.Context(), nil, []byte(`{"ciphertext":"dmF1bHQ6djE6AAAA"}`)); err == nil {
		t.Error("a server that is not there has answered")
	}
}
