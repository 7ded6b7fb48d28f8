package recognize

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

var (
	scheme      = lazyregexp.New(`[A-Za-z0-9+.-]+$`)
	namedSecret = lazyregexp.New(`^(pass|env|literal|key|secret|token|password|passphrase)[:=]`)
)

// Scheme returns the scheme of a URL that was set instead of a name or path, such as s3 in s3://bucket/key.
// Other characters may precede the scheme. It returns an empty string if text is not a URL, or "…" if nothing
// before :// can be a scheme. Errors must not repeat the URL itself, because it may contain a password.
func Scheme(text string) string {
	before, _, isURL := strings.Cut(text, "://")
	if !isURL || len(before) == 1 { // a single letter is a Windows drive
		return ""
	}
	return cmp.Or(scheme.FindString(before), "…")
}

// NamedSecret returns the prefix of a secret that was set instead of a file name, in the notation of other
// programs, such as pass: in pass:SECRET. It returns an empty string for any other text.
func NamedSecret(text string) string { return namedSecret.FindString(text) }

// IsHTTP reports whether text is an http or https URL.
func IsHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// Server parses a server URL: http or https, a host and an optional path. It returns nil for any other text,
// such as a URL with a password, which errors must not repeat.
func Server(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || !IsHTTP(text) || !isHost(u) || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" {
		return nil
	}
	return u
}

// isHost reports whether a URL has a valid port and a plausible host. Implausible hosts are http and https,
// from a URL with a missing colon, and placeholders in angle brackets.
func isHost(u *url.URL) bool {
	_, err := strconv.ParseUint(cmp.Or(u.Port(), "0"), 10, 16)
	name := strings.ToLower(u.Hostname())
	return err == nil && name != "http" && name != "https" && !strings.ContainsAny(name, "<>")
}

// WithScheme returns text with https:// in front, unless text is empty or already has a scheme.
func WithScheme(text string) string {
	if text == "" || strings.Contains(text, "://") {
		return text
	}
	return "https://" + text
}

// Endpoint works like [Server], but also accepts an address without a scheme and uses https for it.
func Endpoint(text string) *url.URL { return Server(WithScheme(text)) }

// IsEndpoint reports whether [Endpoint] accepts text.
func IsEndpoint(text string) bool { return Endpoint(text) != nil }

// Unsupported describes authentication schemes that we do not support.
const Unsupported = "an unsupported authentication method (for example Digest or NTLM)"

// Challenge returns the authentication scheme that a server requests in its WWW-Authenticate headers, each of
// which may list several. It returns "bearer" if the headers list it, otherwise "basic" if they list that,
// [Unsupported] for digest, ntlm or negotiate, or an empty string for all others.
func Challenge(headers []string) string {
	all := strings.ReplaceAll(strings.ToLower(","+strings.Join(headers, ",")), " ", "")
	asks := func(scheme string) bool { return strings.Contains(all, ","+scheme) }
	switch {
	case asks("bearer"):
		return "bearer"
	case asks("basic"):
		return "basic"
	case slices.ContainsFunc([]string{"digest", "ntlm", "negotiate"}, asks):
		return Unsupported
	}
	return ""
}
