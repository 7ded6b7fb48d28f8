package object

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/auth"
	endpoints "github.com/aws/smithy-go/endpoints" // the name of this package is transport
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/net/http/httpproxy"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const (
	answerTimeout = 30 * time.Second // limit from a request to the start of its response
	nearTimeout   = 2 * time.Second  // limit for connecting to a service on this machine's network
	maxAttempts   = 5                // attempts to send a request after temporary errors
)

// Network holds the settings for connections to stores, and to the services that return keys for them. Zero
// values mean the defaults. If Proxy is nil, no proxy is used.
type Network struct {
	Env   attr.LookupEnv // nil if the environment must not be used
	Proxy func(*url.URL) (*url.URL, error)
	Roots *x509.CertPool // nil means the system's certificates

	// Writes allows requests that write. Sources only read.
	Writes bool

	Attempts int           // how often one request is attempted
	MaxWait  time.Duration // longest wait between attempts
	Timeout  time.Duration // limit from a request to the start of its response
	Patience time.Duration // limit for reading one object; see [Patience]

	// Metadata is the URL of the service that returns an instance's keys. If it is empty, the vendor's
	// default is used.
	Metadata string

	Exposed *netfail.Exposed // other services that were called without encryption for one credentials block
}

func (n Network) transport() *http.Transport {
	t := web.Transport(world.For(n.Env, true), &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: n.Roots}, new(httpproxy.Config))
	if n.Proxy != nil {
		t.Proxy = func(r *http.Request) (*url.URL, error) { return n.Proxy(r.URL) }
	}
	return t
}

// Wire returns a client for a service that returns temporary keys. If near is true, the service either is on
// this machine's network or does not exist, so the client uses no proxy and has a short connection timeout.
func (n Network) Wire(near bool) web.Wire {
	t := n.transport()
	t.DisableKeepAlives = true // requests are rare
	if near {
		t.Proxy, t.DialContext = nil, (&net.Dialer{Timeout: nearTimeout}).DialContext
	}
	p := web.Patience{Timeout: answerTimeout, Tries: 2, WaitMin: 500 * time.Millisecond, WaitMax: 2 * time.Second}
	if n.MaxWait > 0 {
		p.WaitMin, p.WaitMax = n.MaxWait, n.MaxWait
	}
	return web.Wire{Patience: p, Transport: t}
}

// Place is a store other than Amazon S3 itself, with the keys for it.
type Place struct {
	Endpoint  *url.URL // URL of the store, without the bucket
	PathStyle bool     // whether the bucket is part of the path instead of the host
	Region    string   // region for which requests are signed
	Keys      aws.CredentialsProvider

	// Prefix is the prefix of the vendor's own headers, such as "X-Oss-". It is set for stores that send
	// these headers to S3 clients, too.
	Prefix string
}

// NewClient returns a client. It does not send anything or read the environment.
func NewClient(p Place, n Network) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint:       aws.String(p.Endpoint.String()),
		EndpointResolverV2: host{p.Endpoint, p.PathStyle},
		UsePathStyle:       p.PathStyle,
		Region:             p.Region,
		Credentials:        p.Keys,
		RetryMaxAttempts:   cmp.Or(n.Attempts, maxAttempts),
		Logger:             logging.Nop{},
		APIOptions:         []func(*middleware.Stack) error{awsauth.AnonymousClient},

		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}, func(o *s3.Options) {
		Restrict(o, n.transport(), n)
		o.HTTPClient = translator{o.HTTPClient, p.Prefix}
	})
}

// Restrict makes a client use transport within the limits of n, and not follow redirects. Unless n.Writes is
// set, the client refuses to send requests that write.
func Restrict(o *s3.Options, transport *http.Transport, n Network) {
	transport.ResponseHeaderTimeout = cmp.Or(n.Timeout, answerTimeout)
	wire := http.RoundTripper(web.Brief{Next: transport})
	if !n.Writes {
		wire = web.ReadOnly{Next: wire}
	}
	o.HTTPClient = &http.Client{Transport: wire, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	if r, ok := retry.AddWithMaxBackoffDelay(o.Retryer, cmp.Or(n.MaxWait, retry.DefaultMaxBackoff)).(aws.RetryerV2); ok { // always true
		o.Retryer = retryer{r}
	}
	o.ClientLogMode = 0
	o.UseARNRegion = false
	o.DisableMultiRegionAccessPoints = true
	o.DisableLogOutputChecksumValidationSkipped = true
}

// retryer keeps the SDK from repeating a request after a TLS error.
type retryer struct{ aws.RetryerV2 }

func (r retryer) IsErrorRetryable(err error) bool {
	return !netfail.IsTLS(err) && r.RetryerV2.IsErrorRetryable(err)
}

// host resolves endpoints without AWS's own rules, under which some bucket names lead to other hosts and
// other requests.
type host struct {
	endpoint  *url.URL
	pathStyle bool
}

func (h host) ResolveEndpoint(_ context.Context, p s3.EndpointParameters) (endpoints.Endpoint, error) {
	u := *h.endpoint
	if bucket := aws.ToString(p.Bucket); h.pathStyle {
		u.Path = "/" + bucket
	} else {
		u.Host = bucket + "." + u.Host
	}
	// Paths are signed exactly as they are sent. By default, the SDK would encode them a second time, as
	// services other than S3 require.
	var how, properties smithy.Properties
	smithyhttp.SetDisableDoubleEncoding(&how, true)
	smithyhttp.SetSigV4SigningName(&how, "s3")
	smithyhttp.SetSigV4SigningRegion(&how, aws.ToString(p.Region))
	auth.SetAuthOptions(&properties, []*auth.Option{{SchemeID: auth.SchemeIDSigV4, SignerProperties: how}})
	return endpoints.Endpoint{URI: u, Properties: properties}, nil
}

// translator copies the vendor's headers about versions and deletions to headers with S3's names.
type translator struct {
	next   s3.HTTPClient
	prefix string
}

func (t translator) Do(req *http.Request) (*http.Response, error) {
	resp, err := t.next.Do(req)
	if err == nil && t.prefix != "" {
		for _, name := range []string{"Version-Id", "Delete-Marker"} {
			if own := resp.Header.Get(t.prefix + name); own != "" && resp.Header.Get("X-Amz-"+name) == "" {
				resp.Header.Set("X-Amz-"+name, own)
			}
		}
	}
	return resp, err
}
