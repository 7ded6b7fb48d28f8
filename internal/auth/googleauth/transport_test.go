package googleauth

import (
	"net/http"
	"runtime"
	"testing"
)

// With the environment off, a connection that authorities of a variable have
// verified is refused, and so is every proxy.
func TestDirectTransport(t *testing.T) {
	t.Setenv("SSL_CERT_FILE", "/of/a/stranger")
	direct, ok := DirectTransport().(*http.Transport)
	if !ok || direct.Proxy != nil {
		t.Fatal("it goes through a proxy")
	}
	refuses := direct.TLSClientConfig.VerifyConnection != nil
	if heeded := runtime.GOOS != "windows" && runtime.GOOS != "darwin"; refuses != heeded {
		t.Errorf("it refuses connections: %v", refuses)
	}
}
