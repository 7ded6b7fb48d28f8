package recognize

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
)

// IsHTTP reports whether text is a URL of http or https.
func IsHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// Server reads the URL of a server: http or https, a host, and at most a path behind it. It is
// nil for anything else, such as one with a password, which errors must not repeat.
func Server(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || !IsHTTP(text) || !isHost(u) || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" {
		return nil
	}
	return u
}

// isHost tells a host and a port from a scheme without its colon, and from a placeholder.
func isHost(u *url.URL) bool {
	_, err := strconv.ParseUint(cmp.Or(u.Port(), "0"), 10, 16)
	name := strings.ToLower(u.Hostname())
	return err == nil && name != "http" && name != "https" && !strings.ContainsAny(name, "<>")
}

// WithScheme makes a URL of a host: of https, which clients would not guess.
func WithScheme(text string) string {
	if text == "" || strings.Contains(text, "://") {
		return text
	}
	return "https://" + text
}

// Endpoint is [Server] for a text that may be the host alone.
func Endpoint(text string) *url.URL { return Server(WithScheme(text)) }

// IsEndpoint reports whether text is one.
func IsEndpoint(text string) bool { return Endpoint(text) != nil }
