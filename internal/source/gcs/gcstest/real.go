package gcstest

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
)

// StartReal starts fake-gcs-server with the given buckets, and returns its origin. The server is stopped at the end of
// the test. If it has not been built, the test is skipped; build it with make .tools/bin/fake-gcs-server.
func StartReal(t *testing.T, buckets ...string) (origin string) {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_FAKE_GCS")
	data := t.TempDir()
	for _, bucket := range buckets {
		if err := os.Mkdir(filepath.Join(data, bucket), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	address := "127.0.0.1:" + nettest.Port(t)
	args := []string{"-backend", "memory", "-data", data, "-scheme", "http", "-host", "127.0.0.1", "-port", address[len("127.0.0.1:"):],
		"-public-host", address, "-log-level", "warn"}
	servertest.Start(t, program, args).Await(t, func() bool {
		resp, err := http.Get("http://" + address + "/_internal/healthcheck") //nolint:noctx // only in a test
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	return "http://" + address
}
