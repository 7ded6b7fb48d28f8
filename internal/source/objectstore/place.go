package objectstore

import (
	"errors"
	"net"
	"net/url"
	"path"
	"regexp"
	"strings"
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

// Join is where the backends oss and cos keep the state of a workspace.
func Join(prefix, workspace, key string) string {
	if workspace == "" || workspace == "default" {
		return path.Join(prefix, key)
	}
	return path.Join(prefix, workspace, key)
}
