package azureauth

import (
	"net/http"
	"runtime"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// With the environment off, a connection that authorities of a variable have
// verified is refused, and so is every proxy.
func TestHTTPClient(t *testing.T) {
	t.Setenv("SSL_CERT_FILE", "/of/a/stranger")
	if client := HTTPClient(world.Here()); client.Transport != nil {
		t.Errorf("with the environment on, it has the transport %v", client.Transport)
	}
	direct, ok := HTTPClient(world.World{}).Transport.(*http.Transport)
	if !ok || direct.Proxy != nil {
		t.Fatal("it goes through a proxy")
	}
	refuses := direct.TLSClientConfig.VerifyConnection != nil
	if heeded := runtime.GOOS != "windows" && runtime.GOOS != "darwin"; refuses != heeded {
		t.Errorf("it refuses connections: %v", refuses)
	}
}
