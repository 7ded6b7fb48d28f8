package googleauth

import (
	"net/http"
	"os"
	"runtime"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// With the environment off, a connection that authorities of a variable have
// verified is refused, and so is every proxy. Otherwise, both are the machine's.
func TestTransport(t *testing.T) {
	t.Setenv("SSL_CERT_FILE", "/of/a/stranger")
	heeded := runtime.GOOS != "windows" && runtime.GOOS != "darwin"
	for w, off := range map[world.World]bool{{}: true, world.Here(): false, world.For(os.LookupEnv, true): false} {
		made := transport(w).(*http.Transport)
		if (made.Proxy == nil) != off || (made.TLSClientConfig.VerifyConnection != nil) != (off && heeded) || !made.DisableKeepAlives {
			t.Errorf("off: %t; it goes through a proxy: %t", off, made.Proxy != nil)
		}
	}
}
