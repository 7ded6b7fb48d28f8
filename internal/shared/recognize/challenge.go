package recognize

import "github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"

// Digest is the scheme that no client here speaks.
const Digest = "digest"

// Challenge is the scheme, in lower case, that a server asks for in its headers
// WWW-Authenticate, of which each may name several: the easiest of them, "" for one that is
// not known.
func Challenge(headers []string) string {
	for _, scheme := range []struct {
		name string
		asks *lazyregexp.Regexp
	}{{"bearer", bearer}, {"basic", basic}, {Digest, digest}} {
		for _, header := range headers {
			if scheme.asks.MatchString(header) {
				return scheme.name
			}
		}
	}
	return ""
}

var (
	bearer = lazyregexp.New(`(?i)(^|, *)bearer\b`)
	basic  = lazyregexp.New(`(?i)(^|, *)basic\b`)
	digest = lazyregexp.New(`(?i)(^|, *)digest\b`)
)
