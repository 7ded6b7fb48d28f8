package trust_test

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/trust"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const address = "STATECRYPT_TEST_SERVER"

// TestAuthoritiesOfVariables: Go trusts the authorities that SSL_CERT_FILE names.
// With the environment off, that is an error before anything is sent. A process
// reads the variable once, so the connections are made in one of its own.
func TestAuthoritiesOfVariables(t *testing.T) {
	if server := os.Getenv(address); server != "" {
		connect(t, server)
		return
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("on this system, Go reads no SSL_CERT_FILE")
	}
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestAuthoritiesOfVariables$")
	cmd.Env = append(os.Environ(), address+"="+server.URL, "SSL_CERT_FILE="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if n := asked.Load(); n != 2 { // with the environment, and without verification
		t.Errorf("%d requests arrived, want 2", n)
	}
}

func connect(t *testing.T, server string) {
	for name, c := range map[string]struct {
		world      world.World
		unverified bool
		refused    bool
	}{
		"the environment is on":  {world: world.Here()},
		"the environment is off": {refused: true},
		"nothing is verified":    {unverified: true},
	} {
		config := trust.Config(c.world, &tls.Config{InsecureSkipVerify: c.unverified})
		client := http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		response, err := client.Get(server)
		if _, refused := errors.AsType[*trust.Error](err); refused != c.refused || !refused && err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		if err == nil {
			response.Body.Close()
		}
	}
}
