package recognize

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

var (
	scheme      = lazyregexp.New(`[A-Za-z0-9+.-]+$`)
	namedSecret = lazyregexp.New(`^(pass|env|literal|key|secret|token|password|passphrase)[:=]`)
)

// Scheme returns the scheme of an address that stands in place of a name or a path, such as s3 in
// s3://bucket/key, also behind other characters. It returns "" for a name or a path. Errors must
// not repeat an address, which may contain a password.
func Scheme(text string) string {
	before, _, isURL := strings.Cut(text, "://")
	if !isURL || len(before) == 1 { // a drive of Windows
		return ""
	}
	return cmp.Or(scheme.FindString(before), "…")
}

// NamedSecret is how a secret begins that is named, in the place of the name of a file, as
// other programs do, such as pass: in pass:SECRET. It is "" for a name.
func NamedSecret(text string) string { return namedSecret.FindString(text) }

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
