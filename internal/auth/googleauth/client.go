package googleauth

import (
	"encoding/json"
	"net/http"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/httptransport"
)

// tokenTimeout is that of the SDK's own client for tokens.
const tokenTimeout = 30 * time.Second

// once closes each connection after its request. Tokens last for an hour, and the SDK
// closes no connection by itself.
type once struct{ next http.RoundTripper }

func (o once) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Close = true
	return o.next.RoundTrip(request)
}

// standardTransport is what the SDK sends requests for tokens through.
func standardTransport() http.RoundTripper {
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		return standard.Clone()
	}
	return http.DefaultTransport // a program's own
}

// bearer is a client that sends requests with tokens of creds. If the environment may
// be read, it is the one that the SDK would make for impersonation.
func (a Access) bearer(creds *auth.Credentials) (*http.Client, error) {
	if !a.World.ReadsEnvironment() {
		return &http.Client{Transport: once{Bearer{creds, DirectTransport()}}}, nil
	}
	options := &httptransport.Options{Credentials: creds, Logger: Silence(), UniverseDomain: a.Universe}
	if a.Universe == "" {
		options.InternalOptions = &httptransport.InternalOptions{SkipUniverseDomainValidation: true}
	}
	client, err := httptransport.NewClient(options)
	if err == nil {
		client.Transport = once{client.Transport}
	}
	return client, err
}

// hasCertificate reports whether credentials are those of a certificate.
func hasCertificate(document []byte) bool {
	var f file
	if json.Unmarshal(document, &f) != nil {
		return false
	}
	return f.hasCertificate() || f.Inner != nil && hasCertificate(f.Inner)
}
