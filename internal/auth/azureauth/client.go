package azureauth

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/trust"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const maxAnswer = 1 << 20 // the maximum size of a response, in bytes

// ClientOptions returns the options for Azure clients. Responses are truncated after a megabyte.
func (a Access) ClientOptions() policy.ClientOptions {
	transport := a.Transport
	if transport == nil {
		transport = HTTPClient(a.world)
	}
	return policy.ClientOptions{
		Cloud:     a.Cloud.Configuration,
		Transport: limitedTransport{transport},
		Retry:     policy.RetryOptions{RetryDelay: a.RetryDelay},
		Telemetry: policy.TelemetryOptions{Disabled: true},
	}
}

// HTTPClient returns a client that uses the environment's proxies only if the environment may be read.
func HTTPClient(w world.World) *http.Client {
	client := &http.Client{CheckRedirect: noRedirect}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok && !w.ReadsEnvironment() {
		direct := standard.Clone()
		direct.Proxy = nil
		direct.TLSClientConfig = trust.Config(world.World{}, direct.TLSClientConfig)
		client.Transport = direct
	}
	return client
}

// noRedirect makes a client return redirects instead of following them. No Azure service redirects, and
// requests are meant for a single address.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// limitedTransport protects the SDK from responses of more than a megabyte, from deep nesting and from
// malformed challenges.
type limitedTransport struct{ policy.Transporter }

func (t limitedTransport) Do(request *http.Request) (*http.Response, error) {
	response, err := t.Transporter.Do(request)
	if lookup, ok := errors.AsType[*net.DNSError](err); ok && lookup.IsNotFound {
		err = unknownHost{err}
	}
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		response.Body = outside.Limit(response.Body, maxAnswer)
	} else {
		response.Body = Refusal(response.Body)
	}
	if challenge := response.Header.Get("WWW-Authenticate"); challenge != "" && strings.HasPrefix(challenge,
		"Bearer") && !wellFormed(challenge) {
		response.Header.Del("WWW-Authenticate")
	}
	return response, nil
}

// unknownHost is the error for a host that does not exist. There is no point in trying again.
type unknownHost struct{ error }

func (e unknownHost) Unwrap() error { return e.error }

// NonRetriable tells the SDK not to retry.
func (unknownHost) NonRetriable() {}

// Refusal returns the body of an error response, truncated after a megabyte or where it is nested too deeply.
// The SDK indents the JSON of each error response, which would turn kilobytes of brackets into hundreds of
// megabytes.
func Refusal(body io.ReadCloser) io.ReadCloser {
	return &shallow{ReadCloser: outside.Limit(body, maxAnswer)}
}

type shallow struct {
	io.ReadCloser
	depth int
}

const maxDepth = 16 // the maximum nesting depth of an error response; Azure's have three levels

func (s *shallow) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	for i, c := range p[:n] {
		switch c {
		case '{', '[':
			s.depth++
		case '}', ']':
			s.depth--
		}
		if s.depth > maxDepth {
			return i, io.EOF
		}
	}
	return n, err
}

// wellFormed reports whether the authorization in a challenge is a URL with a path. Azkeys uses the text
// after the third slash as the tenant.
func wellFormed(challenge string) bool {
	for part := range strings.FieldsSeq(challenge) {
		if address, ok := strings.CutPrefix(part, "authorization="); ok && address != `""` {
			u, err := url.Parse(strings.Trim(address, `",`))
			if err != nil || u.Scheme != "https" || u.Host == "" || strings.Count(address, "/") < 3 {
				return false
			}
		}
	}
	return true
}
