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

// maxKey is the maximum length of a key, in bytes:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
const maxKey = 1024

// otherBucket matches names that do not belong to general purpose buckets. They belong either to directory
// buckets, for which the SDK first requests a session, or to other services. Some of these services run
// programs that belong to the bucket's owner:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
var otherBucket = lazyregexp.New(`--[a-z0-9]{1,3}-s3$`)

// bucketName also matches the names of old buckets, which may be longer and have capital letters.
var bucketName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]+$`)

// CheckBucket returns an error if name cannot be the name of a bucket. The name becomes part of a host or a
// path.
func CheckBucket(name string) error {
	if name == "" {
		return errors.New("the name of the bucket is empty; check whether a variable is empty")
	}
	switch scheme := recognize.Scheme(name); {
	case scheme != "" && !strings.HasPrefix(scheme, "http"):
		return fmt.Errorf("this is a URL, not the name of a bucket; remove %s:// and the path after the name", outside.Line(scheme, 20))
	case scheme == "" && strings.Contains(strings.TrimRight(name, "/"), "/"):
		return errors.New("the name of a bucket cannot contain a slash; move the part after the slash to the path of the state in the bucket")
	}
	if len(name) > 255 || !bucketName.MatchString(name) || strings.Contains(name, "..") {
		return errors.New("this is not a valid bucket name; use two or more letters, digits, dashes and dots, without a path")
	}
	if otherBucket.MatchString(name) {
		return errors.New("directory buckets, Object Lambda and Outposts are not supported; use a general purpose bucket")
	}
	return nil
}

// CheckKey returns an error for a key that a server could mistake for another object's key.
func CheckKey(key string) error {
	switch {
	case key == "":
		return errors.New("the key of the object is empty; check whether a variable is empty")
	case len(key) > maxKey:
		return errors.New("the whole key, with the workspace in it, is longer than 1024 bytes; shorten the key")
	case recognize.Scheme(key) != "":
		return errors.New("this is a URL, not the key of an object; set the path of the object in its bucket")
	case strings.HasPrefix(key, "/") || strings.HasSuffix(key, "/"):
		return errors.New("the key begins or ends with a slash; remove the slash")
	case slices.ContainsFunc(strings.Split(key, "/"), func(part string) bool { return part == "." || part == ".." }):
		return errors.New("the key has a part that is . or .., so servers and proxies would use another path; remove that part")
	}
	return nil
}

// IsBucketLabel reports whether s can be the name of a bucket, for stores that give each bucket a host.
func IsBucketLabel(s string) bool { return len(s) >= 3 && syntax.IsLabel(s) }

// ParseEndpoint parses the URL of a service without a path, or just its host. The text comes from the
// provider block or the environment, never from a data source.
func ParseEndpoint(text string) (*url.URL, error) {
	u := recognize.Endpoint(text)
	if u == nil || u.Path != "" && u.Path != "/" {
		return nil, errors.New("this is neither a host nor the URL of a host; set a URL like https://store.example.com")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

// Endpoint returns the URL in an attribute of g, or the usual URL if the attribute is not set.
func Endpoint(g source.Grant, attr, usual string) (*url.URL, error) {
	u, err := ParseEndpoint(cmp.Or(g.String(attr), usual))
	if err != nil {
		return nil, g.Errorf(attr, "%w", err)
	}
	return u, nil
}

// IsAddress reports whether the host of u is an IP address, so that it cannot be prefixed with a bucket.
func IsAddress(u *url.URL) bool { return net.ParseIP(u.Hostname()) != nil }

// Below returns the key where the oss and cos backends store the state that req asks for.
func Below(req source.Request) (key string, err error) {
	key = path.Join(req.String("prefix"), req.OtherWorkspace(), req.String("key"))
	if err := CheckKey(key); err != nil {
		return "", req.Errorf("key", "%w", err)
	}
	return key, nil
}
