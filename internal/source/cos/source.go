package cos

import (
	"context"
	"net/url"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/objectstore"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

// run is what the sources of one configured provider share: who they are to
// COS, and the connections.
type run struct {
	settings   source.Settings
	connection objectstore.Connection
	web, local objectstore.Web // for STS, and for the metadata service
	metadata   string

	stores memo.Memo[storeKey, *objectstore.Store]
}

type storeKey struct {
	credentials, region string
	accelerate          bool
}

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
	storeKey
	identity identity
	endpoint *url.URL
	object   s3object.Object
	limit    int64
}

func (r *run) open(req source.Request) (source.Source, error) {
	l := &location{
		run: r, limit: req.MaxSize,
		storeKey: storeKey{credentials: req.String("credentials_name"), region: req.String("region"), accelerate: req.Bool("accelerate")},
	}
	s, err := objectstore.Choose(r.settings, credentials(), l.credentials)
	if err != nil {
		return nil, err
	}
	if l.identity, err = newIdentity(s); err != nil {
		return nil, err
	}
	if !objectstore.IsLabel(l.region) {
		return nil, req.Errorf("region", "this cannot be the name of a region")
	}
	if l.endpoint, err = l.findEndpoint(req, s); err != nil {
		return nil, err
	}
	if bucket := req.String("bucket"); len(bucket) < 3 || !objectstore.IsLabel(bucket) {
		return nil, req.Errorf("bucket", "this cannot be the name of a bucket: it has small letters, digits and dashes, and the APPID at its end")
	}
	l.object, err = objectstore.NewObject(req)
	return l, err
}

func (l *location) findEndpoint(req source.Request, s objectstore.Settings) (*url.URL, error) {
	switch text := s.Text("endpoint"); {
	case text == "" && l.accelerate:
		return &url.URL{Scheme: "https", Host: "cos.accelerate.myqcloud.com"}, nil
	case text == "":
		return &url.URL{Scheme: "https", Host: "cos." + l.region + ".myqcloud.com"}, nil
	case l.accelerate:
		return nil, req.Errorf("accelerate", "the credentials have an endpoint, which is another one than that for acceleration")
	default:
		u, err := objectstore.ParseEndpoint(text)
		if err != nil {
			return nil, s.Errorf("endpoint", "%w", err)
		}
		return u, nil
	}
}

func (l *location) String() string { return objectstore.Describe(l.object, "COS") }

// Fetch reads the state.
func (l *location) Fetch(ctx context.Context) (*source.Snapshot, error) {
	store, err := l.stores.Do(ctx, l.storeKey, func(context.Context) (*objectstore.Store, error) {
		keys, err := l.resolve(l.identity, l.region)
		if err != nil {
			return nil, err
		}
		return objectstore.NewStore(objectstore.Place{
			Endpoint: l.endpoint, Region: l.region, Keys: keys, Words: words(), PathStyle: objectstore.IsAddress(l.endpoint), Prefix: "X-Cos-",
		}, l.connection)
	})
	if err != nil {
		return nil, err
	}
	return store.Read(ctx, l.object, l.limit)
}

// words are those of
// https://www.tencentcloud.com/document/product/436/7730
func words() s3object.Words {
	const block = "the cos block of credentials, in the provider block"
	return s3object.Words{
		Store: "Tencent Cloud COS", Block: block,
		Read: "cos:GetObject", Region: "region",
		Reasons: map[string]string{
			"BucketAccelerateNotEnabled": "global acceleration is not enabled for the bucket; leave accelerate out",
			"InvalidSecurityToken":       "the security token is not valid; check it in " + block,
			"ExpiredToken":               "the security token has expired",
			"UserNetworkTooSlow":         "the connection is too slow",
			"AccountArrears":             "the account owes money",
			"UnavailableForLegalReasons": "the account or the bucket is closed",
		},
	}
}
