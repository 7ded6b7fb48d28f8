package azureauth

import (
	"errors"
	"net"
	"net/http"
	"runtime"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	azruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

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

// A host that is not there is not tried again: the SDK would wait for seconds in between.
func TestUnknownHost(t *testing.T) {
	for notFound, want := range map[bool]int{true: 1, false: 2} {
		tries := 0
		options := Access{Transport: transport(func(*http.Request) (*http.Response, error) {
			tries++
			return nil, &net.DNSError{Err: "no answer", Name: "nowhere.test", IsNotFound: notFound}
		}), RetryDelay: 1}.ClientOptions()
		options.Retry.MaxRetries = 1
		client := azruntime.NewPipeline("test", "v1", azruntime.PipelineOptions{}, &options)
		request, err := azruntime.NewRequest(t.Context(), http.MethodGet, "https://nowhere.test/")
		if err == nil {
			_, err = client.Do(request) //nolint:bodyclose // there is none
		}
		if _, isDNS := errors.AsType[*net.DNSError](err); !isDNS || tries != want {
			t.Errorf("not found %v: got %v after %d tries", notFound, err, tries)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) Do(request *http.Request) (*http.Response, error) { return f(request) }

var _ policy.Transporter = transport(nil)
