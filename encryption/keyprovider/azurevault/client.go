package azurevault

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"
)

const (
	// defaultPatience bounds what a Retry-After header may ask for.
	defaultPatience = 60 * time.Second

	maxAnswer = 1 << 20 // bytes
)

// connect returns the client. It is made once, and not again after a failure
// of one reader: what was cancelled may be tried anew.
func (p *Provider) connect(ctx context.Context) (*azkeys.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client != nil {
		return p.client, nil
	}
	credential := p.access.options.Credential
	if credential == nil {
		var err error
		if credential, err = p.access.open(ctx); err != nil {
			return nil, err
		}
	}
	client, err := azkeys.NewClient(p.vault, credential, &azkeys.ClientOptions{ClientOptions: p.access.clientOptions(p.access.options.Transport)})
	if err != nil {
		return nil, errors.New("the client of the vault cannot be set up")
	}
	p.client = client
	return client, nil
}

func (a access) clientOptions(transport policy.Transporter) policy.ClientOptions {
	if transport == nil {
		transport = a.httpClient()
	}
	return policy.ClientOptions{
		Cloud:     a.cloud,
		Transport: careful{transport},
		Retry:     policy.RetryOptions{RetryDelay: a.retryDelay},
		Telemetry: policy.TelemetryOptions{Disabled: true},
	}
}

// httpClient makes a client that goes through the proxies of the environment
// only if that may be read.
func (a access) httpClient() *http.Client {
	client := &http.Client{CheckRedirect: noRedirect}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok && !a.environment {
		direct := standard.Clone()
		direct.Proxy = nil
		client.Transport = direct
	}
	return client
}

// noRedirect hands back a redirect as the answer. None of the services
// redirects, and what is sent is for one address only.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// careful keeps from the SDK what it does not expect of an answer: more than a
// megabyte, and a challenge on which azkeys would panic.
type careful struct{ policy.Transporter }

func (c careful) Do(request *http.Request) (*http.Response, error) {
	response, err := c.Transporter.Do(request)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxAnswer), response.Body}
	if challenge := response.Header.Get("WWW-Authenticate"); challenge != "" && strings.HasPrefix(challenge, "Bearer") && !wellFormed(challenge) {
		response.Header.Del("WWW-Authenticate")
	}
	return response, nil
}

// wellFormed reports whether the authorization of a challenge is an address
// with a path: azkeys takes what stands after the third slash for the tenant.
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
