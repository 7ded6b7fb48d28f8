package recognize

import (
	"slices"
	"strings"
)

// Unsupported describes schemes that no client here supports.
const Unsupported = "an authentication that is not supported, such as Digest or NTLM"

// Challenge returns the scheme that a server asks for in its WWW-Authenticate headers, each of
// which may name several: "bearer" or else "basic", if it is among them; [Unsupported] for digest,
// ntlm and negotiate; and "" for any other.
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
