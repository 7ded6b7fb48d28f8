package object

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// maxKey is the largest length of a key, in bytes:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
const maxKey = 1024

// otherBucket matches names that do not belong to general purpose buckets, but to directory buckets,
// for which the SDK first requests a session, or to other services, some of which run programs of their
// owners:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
var otherBucket = lazyregexp.New(`--[a-z0-9]{1,3}-s3$`)

// bucketName also matches names of old buckets, which may be longer and have capitals.
var bucketName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]+$`)

// CheckBucket returns an error for a text that cannot be the name of a bucket, which becomes part of
// a host or a path.
func CheckBucket(name string) error {
	if name == "" {
		return errors.New("the name of a bucket is required; is a variable empty?")
	}
	switch scheme := recognize.Scheme(name); {
	case scheme != "" && !strings.HasPrefix(scheme, "http"):
		return fmt.Errorf("the name of a bucket is required, without %s:// before it and a path behind it", outside.Line(scheme, 20))
	case scheme == "" && strings.Contains(strings.TrimRight(name, "/"), "/"):
		return errors.New("the name of a bucket has no slash; what follows it belongs in the path of the state in the bucket")
	}
	if len(name) > 255 || !bucketName.MatchString(name) || strings.Contains(name, "..") {
		return errors.New("this cannot be the name of a bucket: two or more letters, digits, dashes and dots are required, and no path")
	}
	if otherBucket.MatchString(name) {
		return errors.New("directory buckets, Object Lambda and Outposts are not read from")
	}
	return nil
}

// CheckKey returns an error for a key that a server could take for the key of another object.
func CheckKey(key string) error {
	switch {
	case key == "":
		return errors.New("the key of an object is required")
	case len(key) > maxKey:
		return errors.New("with the workspace it has more than 1024 bytes, which no key has")
	case recognize.Scheme(key) != "":
		return errors.New("this is a URL, and the path of the object in its bucket is required")
	case strings.HasPrefix(key, "/") || strings.HasSuffix(key, "/"):
		return errors.New("it must not begin or end with a slash; leave that out")
	case slices.ContainsFunc(strings.Split(key, "/"), func(part string) bool { return part == "." || part == ".." }):
		return errors.New("it must not hold . or .. as a part: servers and proxies would read it as another one")
	}
	return nil
}

// IsBucketLabel reports whether s can be the name of a bucket of a store whose buckets all
// have hosts.
func IsBucketLabel(s string) bool { return len(s) >= 3 && syntax.IsLabel(s) }

// ParseEndpoint parses the URL of a service without a path, or its host alone. The text comes from the
// provider block or the environment, never from a data source.
func ParseEndpoint(text string) (*url.URL, error) {
	u := recognize.Endpoint(text)
	if u == nil || u.Path != "" && u.Path != "/" {
		return nil, errors.New("a host is required, or the URL of one, such as https://store.example.com")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

// Endpoint returns the URL in an attribute of g, and the usual URL if it is absent.
func Endpoint(g source.Grant, attr, usual string) (*url.URL, error) {
	u, err := ParseEndpoint(cmp.Or(g.String(attr), usual))
	if err != nil {
		return nil, g.Errorf(attr, "%w", err)
	}
	return u, nil
}

// IsAddress reports whether the host of u is an IP address, so that no bucket can be put before it.
func IsAddress(u *url.URL) bool { return net.ParseIP(u.Hostname()) != nil }

// Below returns the key at which the backends oss and cos keep the state that req requests.
func Below(req source.Request) (key string, err error) {
	key = path.Join(req.String("prefix"), req.OtherWorkspace(), req.String("key"))
	if err := CheckKey(key); err != nil {
		return "", req.Errorf("key", "%w", err)
	}
	return key, nil
}
