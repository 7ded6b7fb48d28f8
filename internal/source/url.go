package source

import (
	"errors"
	"net/url"
	"strings"
)

// Covers reports whether target is at or below base: scheme, host and port are the same, and target's path
// starts with the segments of base's path.
//
// Hosts are compared as written, except that the case of ASCII letters is ignored. A trailing dot, another
// spelling of an IP address and non-ASCII letters never match, because resolvers and servers disagree about
// them. For the same reason, a path with dot segments or backslashes is never covered, whether they are
// encoded or not. Paths are compared in their encoded form, in which an encoded slash does not end a segment.
func Covers(base, target *url.URL) bool {
	return sameOrigin(base, target) && !escapes(target.Path) &&
		(isRoot(base) || isBelow(base.EscapedPath(), target.EscapedPath()) && staysBelow(target.Path))
}

// staysBelow reports whether the path p has no dot segments or backslashes, no matter how often a server
// decodes it.
func staysBelow(p string) bool {
	for isASCII(p) && !escapes(p) {
		decoded, err := url.PathUnescape(p)
		if err != nil || decoded == p {
			return err == nil
		}
		p = decoded
	}
	return false
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Opaque == "" && b.Opaque == "" &&
		a.Hostname() != "" && isASCII(a.Hostname()) && isASCII(b.Hostname()) &&
		strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func isRoot(u *url.URL) bool { return u.Path == "" || u.Path == "/" }

func isPlain(u *url.URL) bool { return !strings.Contains(u.EscapedPath(), "%") }

func isBelow(base, path string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(base, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// escapes reports whether a server may find dot segments in the decoded path p. Servers that strip parameters
// read "..;" as "..".
func escapes(p string) bool {
	for s := range strings.SplitSeq(p, "/") {
		if s, _, _ = strings.Cut(s, ";"); s == "." || s == ".." {
			return true
		}
	}
	return strings.Contains(p, `\`)
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > '~' }) < 0
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	switch u.Scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	case "ssh":
		return "22"
	}
	return ""
}

// Public returns u without its user, query and fragment, which may be secret.
func Public(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// Origin returns the scheme, host and port of u, for error messages.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

const aBase = "https://state.example.com/acme/"

// asURL returns the end of an error message that explains how to write an scp-style address such as
// git@host:path as a URL. It returns an empty string for any other text.
func asURL(raw string) string {
	if strings.Contains(raw, "://") || !strings.Contains(raw, "@") {
		return ""
	}
	return ". In a git credentials block, write git@HOST:PATH as ssh://HOST/PATH"
}

var errPath = errors.New("the path contains a dot segment (. or ..), a backslash or an encoded character")

// ParseBase parses the url of a credentials block. It may have a scheme, a host, a port, a path and, for ssh,
// a user. Anything else, in particular a password, is an error.
func ParseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("this is not a URL; write a URL like " + aBase + asURL(raw)) // err would repeat the URL
	}
	_, hasPassword := u.User.Password()
	switch {
	case u.Scheme == "" || u.Hostname() == "":
		return nil, errors.New("the URL has no scheme or no host; write a URL like " + aBase + asURL(raw))
	case hasPassword:
		return nil, errors.New("the URL contains a password; remove it, and set the credentials in other arguments")
	case u.User != nil && u.Scheme != "ssh", u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("the URL has more parts than a scheme, a host, a port and a path; remove the other parts")
	case !isASCII(u.Hostname()):
		return nil, errors.New("the host name is not ASCII; write its xn-- form")
	case !isPlain(u) || escapes(u.Path):
		return nil, errPath
	}
	return u, nil
}
