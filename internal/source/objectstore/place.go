package objectstore

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3object"
)

var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// IsLabel reports whether s can be one label of a host name. A data source,
// which any module can write, names buckets and regions, and they become parts
// of the host that gets signed requests: anything else could make it another
// host.
func IsLabel(s string) bool { return len(s) <= 63 && label.MatchString(s) }

// ParseEndpoint reads the URL of a service, or its host alone. It comes from the
// provider block or the environment, never from a data source.
func ParseEndpoint(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("a host is required, or the URL of one, such as https://store.example.com")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

// IsAddress reports whether u names its host by an IP address, before which no
// bucket can be put.
func IsAddress(u *url.URL) bool { return net.ParseIP(u.Hostname()) != nil }

// NewObject is where the backends oss and cos keep the state that req asks for.
func NewObject(req source.Request) (s3object.Object, error) {
	o := s3object.Object{Bucket: req.String("bucket"), Version: req.String("version_id")}
	prefix, key := req.String("prefix"), req.String("key")
	switch {
	case strings.HasPrefix(prefix, "/") || strings.HasPrefix(prefix, "./"):
		return o, req.Errorf("prefix", "it must not begin with / or ./")
	case strings.HasPrefix(key, "/") || strings.HasSuffix(key, "/"):
		return o, req.Errorf("key", "it must not begin or end with /")
	}
	workspace := req.Workspace
	if workspace == "default" {
		workspace = ""
	}
	o.Key = path.Join(prefix, workspace, key)
	if err := s3object.CheckKey(o.Key); err != nil {
		return o, req.Errorf("key", "%w", err)
	}
	return o, nil
}

// Describe names o in a bucket of a store for people.
func Describe(o s3object.Object, store string) string {
	text := fmt.Sprintf("object %q in the %s bucket %q", o.Key, store, o.Bucket)
	if o.Version != "" {
		text += fmt.Sprintf(", version %q", o.Version)
	}
	return text
}
