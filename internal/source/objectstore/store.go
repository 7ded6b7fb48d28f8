package objectstore

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/auth"
	endpoints "github.com/aws/smithy-go/endpoints" // which calls itself transport
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3object"
)

// Place is a store, and who asks it.
type Place struct {
	Endpoint *url.URL // without the bucket
	Region   string   // that requests are signed for
	Keys     aws.CredentialsProvider
	Words    s3object.Words

	// PathStyle puts the bucket into the path, and not before the host.
	PathStyle bool

	// Prefix begins the vendor's own headers, such as "X-Oss-".
	Prefix string
}

// Connection is how stores are reached.
type Connection struct {
	Proxy func(*url.URL) (*url.URL, error)

	CA                         []byte        // nil for the system's
	Attempts                   int           // zero is as many as is usual, as for the others
	MaxWait, Timeout, Patience time.Duration // see [s3object.Options] and [s3object.Store]
}

// Store asks one place.
type Store struct {
	object s3object.Store
	keys   aws.CredentialsProvider
}

// NewStore makes a store. It sends nothing yet.
func NewStore(p Place, c Connection) (*Store, error) {
	client, err := s3object.NewClient(s3object.Options{
		Endpoint: p.Endpoint.String(), Region: p.Region, PathStyle: p.PathStyle, Credentials: p.Keys,
		CA: c.CA, Proxy: c.Proxy, Attempts: c.Attempts, MaxWait: c.MaxWait, Timeout: c.Timeout,
	})
	if err != nil {
		return nil, err
	}
	o := client.Options()
	o.EndpointResolverV2 = host{p.Endpoint, p.PathStyle}
	o.HTTPClient = translator{o.HTTPClient, p.Prefix}
	return &Store{s3object.Store{Client: s3.New(o), Words: p.Words, Patience: c.Patience}, p.Keys}, nil
}

// Read reads an object. The keys are asked for first, so that their errors are
// told apart from those of the store.
func (s *Store) Read(ctx context.Context, o s3object.Object, limit int64) (*source.Snapshot, error) {
	if _, err := s.keys.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("there are no keys for %s: %w", s.object.Words.Store, err)
	}
	return s.object.Read(ctx, o, limit)
}

// host takes the place of AWS's own rules, by which some names of buckets lead
// to other hosts and other calls.
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
	// Paths are signed as they are sent. The SDK would encode them once more,
	// as services other than S3 want it.
	var how, properties smithy.Properties
	smithyhttp.SetDisableDoubleEncoding(&how, true)
	smithyhttp.SetSigV4SigningName(&how, "s3")
	smithyhttp.SetSigV4SigningRegion(&how, aws.ToString(p.Region))
	auth.SetAuthOptions(&properties, []*auth.Option{{SchemeID: auth.SchemeIDSigV4, SignerProperties: how}})
	return endpoints.Endpoint{URI: u, Properties: properties}, nil
}

// translator knows the vendor's names of the headers that matter, for stores
// that use those to S3's clients too.
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
