package recognize

import "strings"

// Digest is the scheme that no client here speaks.
const Digest = "digest"

// Challenge is the scheme, in lower case, that a server asks for in its headers
// WWW-Authenticate, of which each may name several: the easiest of them, "" for one that is
// not known.
func Challenge(headers []string) string {
	all := strings.ReplaceAll(strings.ToLower(","+strings.Join(headers, ",")), " ", "")
	for _, scheme := range []string{"bearer", "basic", Digest} {
		if strings.Contains(all, ","+scheme) {
			return scheme
		}
	}
	return ""
}
