package oss

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/objectstore"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

// run is what the sources of one configured provider share: who they are to
// OSS, and the connections.
type run struct {
	settings   source.Settings
	connection objectstore.Connection
	web, local objectstore.Web // for STS, and for the metadata service
	metadata   string

	stores memo.Memo[storeKey, *objectstore.Store]
}

type storeKey struct{ credentials, region string }

func start(s source.Settings) source.Open { return newRun(s).open }

func newRun(s source.Settings) *run {
	const wait = 500 * time.Millisecond
	return &run{
		settings:   s,
		connection: objectstore.Connection{Proxy: web.Proxies(s.LookupEnv).ProxyFunc()},
		web:        objectstore.Web{Proxies: s.LookupEnv, FirstWait: wait},
		local:      objectstore.Web{FirstWait: wait, Near: true},
		metadata:   metadata,
	}
}

// location is a state in a bucket.
type location struct {
	*run
	identity    identity
	credentials string   // as the data source names them; may be empty
	endpoint    *url.URL // nil for the one of the region
	region      string   // "" for the one of the profile
	object      s3object.Object
	limit       int64
}

func (r *run) open(req source.Request) (source.Source, error) {
	l := &location{run: r, credentials: req.String("credentials_name"), region: req.String("region"), limit: req.MaxSize}
	s, err := objectstore.Choose(r.settings, credentials(), l.credentials)
	if err != nil {
		return nil, err
	}
	if l.identity, err = newIdentity(s); err != nil {
		return nil, err
	}
	if text := s.Text("endpoint"); text != "" {
		if l.endpoint, err = objectstore.ParseEndpoint(text); err != nil {
			return nil, s.Errorf("endpoint", "%w", err)
		}
		l.endpoint.Host = compatible(l.endpoint.Host)
	}
	if l.region == "" && l.identity.profile == "" {
		return nil, req.Errorf("region", "the region of the bucket is required, such as eu-central-1; ALICLOUD_REGION can name it as well")
	}
	if l.region != "" && !objectstore.IsLabel(l.region) {
		return nil, req.Errorf("region", "this cannot be the name of a region")
	}
	if bucket := req.String("bucket"); len(bucket) < 3 || !objectstore.IsLabel(bucket) {
		return nil, req.Errorf("bucket", "this cannot be the name of a bucket: it has 3 to 63 small letters, digits and dashes")
	}
	l.object, err = objectstore.NewObject(req)
	return l, err
}

// compatible is the name under which a host of OSS speaks S3.
func compatible(host string) string {
	if strings.HasPrefix(host, "oss-") && strings.HasSuffix(host, ".aliyuncs.com") {
		return "s3." + host
	}
	return host
}

func (l *location) String() string { return objectstore.Describe(l.object, "OSS") }

// Fetch reads the state.
func (l *location) Fetch(ctx context.Context) (*source.Snapshot, error) {
	store, err := l.stores.Do(ctx, storeKey{l.credentials, l.region}, func(context.Context) (*objectstore.Store, error) {
		return l.connect()
	})
	if err != nil {
		return nil, err
	}
	return store.Read(ctx, l.object, l.limit)
}

func (l *location) connect() (*objectstore.Store, error) {
	signer, err := l.resolve(l.identity)
	if err != nil {
		return nil, err
	}
	region, endpoint := cmp.Or(l.region, signer.region), l.endpoint
	if !objectstore.IsLabel(region) {
		return nil, errors.New("the profile has no region_id that can be the name of a region; set region to that of the bucket")
	}
	if endpoint == nil {
		endpoint = &url.URL{Scheme: "https", Host: "s3.oss-" + region + ".aliyuncs.com"}
	}
	return objectstore.NewStore(objectstore.Place{
		Endpoint: endpoint, Region: region, Keys: signer.keys, Words: words(), PathStyle: objectstore.IsAddress(endpoint), Prefix: "X-Oss-",
	}, l.connection)
}

// words are those of
// https://www.alibabacloud.com/help/en/oss/support/http-status-code-403
func words() s3object.Words {
	const block = "the oss block of credentials, in the provider block"
	return s3object.Words{
		Store: "Alibaba Cloud OSS", Block: block,
		Read: "oss:GetObject", ReadVersion: "oss:GetObjectVersion", Region: "region",
		Reasons: map[string]string{
			"UserDisable":                "the account is closed, or owes money",
			"InvalidSecurityToken":       "the security token is not valid; check it in " + block,
			"SecurityTokenExpired":       "the security token has expired",
			"KmsServiceNotEnabled":       "the key of KMS that the object is encrypted with cannot be used",
			"AccessForbidden":            "access is forbidden by a rule of the bucket",
			"NoSuchVersionId":            "the object has no such version",
			"InvalidVersionId":           "the version is not one that OSS knows",
			"SecondLevelDomainForbidden": "OSS was asked with the bucket in the path, which it refuses; check the endpoint in " + block,
		},
	}
}
