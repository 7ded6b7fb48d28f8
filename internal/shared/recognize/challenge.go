package recognize

import (
	"slices"
	"strings"
)

// Unsupported stands for schemes that no client here speaks.
const Unsupported = "an authentication that is not supported, such as Digest or NTLM"

// Challenge is the scheme, in lower case, that a server asks for in its headers
// WWW-Authenticate, of which each may name several: the easiest of them, [Unsupported], or ""
// for one that is not known.
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
