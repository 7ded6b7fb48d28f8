package oci

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/objectstore"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

// run is what the sources of one configured provider share: the connections.
type run struct {
	settings   source.Settings
	connection objectstore.Connection

	stores memo.Memo[storeKey, *objectstore.Store]
}

type storeKey struct{ credentials, region, host string }

func start(s source.Settings) source.Open { return newRun(s).open }

func newRun(s source.Settings) *run {
	return &run{settings: s, connection: objectstore.Connection{Proxy: web.Proxies(s.LookupEnv).ProxyFunc()}}
}

// location is a state in a bucket.
type location struct {
	*run
	storeKey
	keys      aws.Credentials
	address   *url.URL
	namespace string
	object    s3object.Object
	limit     int64
}

func (r *run) open(req source.Request) (source.Source, error) {
	l := &location{
		run: r, namespace: req.String("namespace"), limit: req.MaxSize,
		storeKey: storeKey{credentials: req.String("credentials_name"), region: req.String("region")},
	}
	s, err := objectstore.Choose(r.settings, credentials(), l.credentials)
	if err != nil {
		return nil, err
	}
	if l.keys, err = newKeys(s); err != nil {
		return nil, err
	}
	switch {
	case !objectstore.IsLabel(l.region):
		return nil, req.Errorf("region", "this cannot be the name of a region")
	case !objectstore.IsLabel(l.namespace):
		return nil, req.Errorf("namespace", "this cannot be a namespace: it has small letters, digits and dashes")
	}
	l.address = &url.URL{Scheme: "https", Host: "compat.objectstorage." + l.region + ".oraclecloud.com"}
	if text := s.String("endpoint"); text != "" {
		if l.address, err = objectstore.ParseEndpoint(text); err != nil {
			return nil, s.Errorf("endpoint", "%w", err)
		}
	}
	if !objectstore.IsAddress(l.address) {
		l.address.Host = l.namespace + "." + l.address.Host
	}
	l.host = l.address.Host
	if l.object, err = newObject(req); err != nil {
		return nil, err
	}
	l.object.CustomerKey, err = customerKey(s)
	if err == nil && l.object.CustomerKey != nil && l.address.Scheme != "https" {
		err = s.Errorf("sse_customer_key", "it would be sent as it is; use an endpoint with https")
	}
	return l, err
}

func newKeys(s objectstore.Settings) (aws.Credentials, error) {
	say := s.String
	if !s.Has("access_key") && !s.Has("secret_key") {
		say = s.Variable
	}
	keys := objectstore.Keys(say("access_key"), say("secret_key"), "")
	switch {
	case keys.AccessKeyID == "" && keys.SecretAccessKey == "":
		return keys, s.Errorf("", "there is no Customer Secret Key; set access_key and secret_key in an oci block of credentials, in the provider block, or the variables OCI_S3_ACCESS_KEY and OCI_S3_SECRET_KEY")
	case keys.SecretAccessKey == "":
		return keys, s.Errorf("secret_key", "access_key needs secret_key")
	case keys.AccessKeyID == "":
		return keys, s.Errorf("access_key", "secret_key needs access_key")
	}
	if err := objectstore.CheckKeys(keys); err != nil {
		return keys, s.Errorf("access_key", "%w", err)
	}
	return keys, nil
}

const customerKeySize = 32 // bytes, for AES-256

func customerKey(s objectstore.Settings) ([]byte, error) {
	text := s.Text("sse_customer_key")
	if text == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != customerKeySize {
		return nil, s.Errorf("sse_customer_key", "32 bytes in base64 are required")
	}
	return key, nil
}

// bucketName is what the backend takes.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func newObject(req source.Request) (s3object.Object, error) {
	o := s3object.Object{Bucket: req.String("bucket"), Version: req.String("version_id")}
	if len(o.Bucket) > 256 || !bucketName.MatchString(o.Bucket) {
		return o, req.Errorf("bucket", "this cannot be the name of a bucket: it has letters, digits, dashes and underscores")
	}
	prefix, key := req.String("workspace_key_prefix"), req.String("key")
	switch {
	case strings.HasPrefix(prefix, "/") || strings.Contains(prefix, "//"):
		return o, req.Errorf("workspace_key_prefix", "it must not begin with / or hold //")
	case strings.HasPrefix(key, "/") || strings.HasSuffix(key, "/") || strings.Contains(key, "//"):
		return o, req.Errorf("key", "it must not begin or end with / or hold //")
	}
	o.Key = key
	if req.Workspace != "" && req.Workspace != "default" {
		o.Key = path.Join(prefix, req.Workspace, key)
	}
	if err := s3object.CheckKey(o.Key); err != nil {
		return o, req.Errorf("key", "%w", err)
	}
	return o, nil
}

func (l *location) String() string {
	text := fmt.Sprintf("object %q in the bucket %q of the namespace %q of Oracle Object Storage", l.object.Key, l.object.Bucket, l.namespace)
	if l.object.Version != "" {
		text += fmt.Sprintf(", version %q", l.object.Version)
	}
	return text
}

// Fetch reads the state.
func (l *location) Fetch(ctx context.Context) (*source.Snapshot, error) {
	store, err := l.stores.Do(ctx, l.storeKey, func(context.Context) (*objectstore.Store, error) {
		keys := func(context.Context) (aws.Credentials, error) { return l.keys, nil }
		return objectstore.NewStore(objectstore.Place{
			Endpoint: l.address, Region: l.region, Keys: aws.CredentialsProviderFunc(keys), Words: words(), PathStyle: true,
		}, l.connection)
	})
	if err != nil {
		return nil, err
	}
	return store.Read(ctx, l.object, l.limit)
}

// words are those of
// https://docs.oracle.com/en-us/iaas/Content/API/References/apierrors.htm
func words() s3object.Words {
	const block = "the oci block of credentials, in the provider block"
	return s3object.Words{
		Store: "Oracle Object Storage", Block: block,
		Read: "OBJECT_READ", Region: "region", CustomerKey: "sse_customer_key",
		Reasons: map[string]string{
			"NoSuchBucket":                  "there is no such bucket in the namespace and the region, or the user may not read in it: Oracle answers both alike; the policy must allow to read objects in its compartment",
			"BucketNotFound":                "there is no such bucket in the namespace and the region, or the user may not read in it: Oracle answers both alike; the policy must allow to read objects in its compartment",
			"NamespaceNotFound":             "there is no such namespace in the region",
			"NotAuthenticated":              "the Customer Secret Key is not valid; check it in " + block,
			"NotAuthorizedOrNotFound":       "the object is not there, or the user may not read it: Oracle answers both alike",
			"BucketNotAuthorizedOrNotFound": "the bucket is not there, or the user may not read in it: Oracle answers both alike",
		},
	}
}
