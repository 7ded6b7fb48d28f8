package recognize

import (
	"slices"
	"strings"
)

// Unsupported describes authentication schemes that we do not support.
const Unsupported = "an authentication that is not supported, such as Digest or NTLM"

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
