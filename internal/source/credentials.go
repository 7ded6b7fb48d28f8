package source

import (
	"errors"
	"net/url"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

// Credentials are the blocks of one kind inside credentials {}. A secret goes
// only to the URLs that its block's url covers, because a data source, which
// any module can write, names the place that is asked.
type Credentials struct {
	Table   config.Table
	Entries []*config.Entry
	Env     config.LookupEnv
}

// For returns the block whose url covers target; of several, the one with the
// longest path. It returns false when there is none.
func (c Credentials) For(target *url.URL) (config.Values, bool, error) {
	var best *config.Entry
	length := -1
	for _, e := range c.Entries {
		u := e.Settings["url"].Value
		if u == cty.NilVal || !u.IsKnown() || u.IsNull() {
			// Decode says what is wrong: without its url, nobody can tell
			// whether this block was meant for target.
			_, err := e.Decode(c.Table, c.Env)
			return config.Values{}, false, err
		}
		base, err := ParseBase(u.AsString())
		if err != nil {
			return config.Values{}, false, &config.Error{Address: e.Address, Attr: "url", Err: err}
		}
		if Covers(base, target) && len(base.Path) > length {
			best, length = e, len(base.Path)
		}
	}
	if best == nil {
		return config.Values{}, false, nil
	}
	v, err := best.Decode(c.Table, c.Env)
	return v, err == nil, err
}

// Covers reports whether target lies at or below base: the same scheme, host
// and port, and base's path as whole segments. A target with dot segments,
// encoded characters or backslashes in its path is never covered, because
// servers disagree on what it names.
func Covers(base, target *url.URL) bool {
	if base.Scheme != target.Scheme || base.Opaque != "" || target.Opaque != "" ||
		!strings.EqualFold(base.Hostname(), target.Hostname()) || port(base) != port(target) {
		return false
	}
	if target.RawPath != "" || strings.ContainsAny(target.EscapedPath(), `%\`) || hasDotSegment(target.Path) {
		return false
	}
	prefix := strings.TrimSuffix(base.Path, "/")
	rest, ok := strings.CutPrefix(target.Path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

func hasDotSegment(p string) bool {
	for s := range strings.SplitSeq(p, "/") {
		if s == "." || s == ".." {
			return true
		}
	}
	return false
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

// Origin is the scheme, host and port of u, as errors name it.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// ParseBase reads the url of a credentials block: scheme, host, optional port
// and path; nothing else, and never a password.
func ParseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("this is not a URL") // url.Error would repeat the text
	case u.Scheme == "" || u.Host == "":
		return nil, errors.New("a URL with scheme and host is required, such as https://git.example.com/acme/")
	case u.User != nil && u.Scheme != "ssh", u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("only scheme, host, port and path belong in this URL")
	case u.RawPath != "" || strings.ContainsAny(u.EscapedPath(), `%\`) || hasDotSegment(u.Path):
		return nil, errors.New("the path must not hold dot segments or encoded characters")
	}
	if _, hasPassword := u.User.Password(); hasPassword {
		return nil, errors.New("a password does not belong in this URL")
	}
	return u, nil
}
