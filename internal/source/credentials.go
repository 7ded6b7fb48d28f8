package source

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// Credentials are the blocks of one kind inside credentials {}. A secret goes
// only to the URLs that its block's url covers, because a data source, which
// any module can write, names the place that is asked.
type Credentials struct {
	Table   attr.Table
	Entries []*attr.Entry
	Env     attr.LookupEnv
}

// For returns the block whose url covers target; of several, the one with the
// longest path. It returns false when there is none.
func (c Credentials) For(target *url.URL) (attr.Values, bool, error) {
	var best *attr.Entry
	length := -1
	for _, e := range c.Entries {
		base, err := c.base(e)
		if err != nil {
			return attr.Values{}, false, err
		}
		if !Covers(base, target) {
			continue
		}
		switch n := len(strings.TrimSuffix(base.Path, "/")); {
		case n > length:
			best, length = e, n
		case n == length:
			// Guessing which one was meant would send the wrong secret.
			return attr.Values{}, false, fail(e, fmt.Errorf("%s has the same url; one block is enough", best.Address))
		}
	}
	if best == nil {
		return attr.Values{}, false, nil
	}
	v, err := best.Decode(c.Table, c.Env)
	return v, err == nil, err
}

// Named returns the block whose name is name; "" stands for the block without
// one. It serves kinds whose blocks say themselves which server is asked. choice
// is what the data source calls such a block in, for errors.
//
// The environment fills the block without a name alone: the others may be for
// another server than the one that the variables are meant for. Where there are
// no blocks at all, what is returned comes from the environment, and found is
// false.
func (c Credentials) Named(choice, name string) (v attr.Values, found bool, err error) {
	var others []string
	var chosen *attr.Entry
	for _, e := range c.Entries {
		own, err := c.nameOf(e)
		switch {
		case err != nil:
			return attr.Values{}, false, err
		case own != name:
			others = append(others, strconv.Quote(own))
		case chosen != nil:
			return attr.Values{}, false, &attr.Error{Address: e.Address, Attr: "name", Err: fmt.Errorf("%s has the same name; one block is enough", chosen.Address)}
		default:
			chosen = e
		}
	}
	env := c.Env
	if name != "" {
		env = nil
	}
	switch {
	case chosen != nil:
		v, err = chosen.Decode(c.Table, env)
		return v, err == nil, err
	case name != "":
		return attr.Values{}, false, fmt.Errorf("no %s block of credentials, in the provider block, has the name %q", c.Table.Name, name)
	case len(others) > 0:
		return attr.Values{}, false, fmt.Errorf("every %s block of credentials has a name; set %s to one of %s", c.Table.Name, choice, strings.Join(others, ", "))
	}
	v, err = attr.NewEntry("the environment variables", c.Table, nil).Decode(c.Table, env)
	return v, false, err
}

// nameOf reads the name alone: what else is wrong with a block harms only those
// who use it.
func (c Credentials) nameOf(e *attr.Entry) (string, error) {
	s, set := e.Settings["name"]
	switch v := s.Value; {
	case !set, v != cty.NilVal && v.IsKnown() && v.IsNull():
		return "", nil
	case v == cty.NilVal || v.Type() != cty.String || !v.IsKnown():
		// Without its name, nobody can tell whether this block was meant.
		decoded, err := e.Decode(c.Table, nil)
		if err != nil {
			return "", err
		}
		return decoded.String("name"), nil
	default:
		return v.AsString(), nil
	}
}

func (c Credentials) base(e *attr.Entry) (*url.URL, error) {
	u := e.Settings["url"].Value
	if u == cty.NilVal || u.Type() != cty.String || !u.IsKnown() || u.IsNull() {
		// Without its url, nobody can tell whether this block was meant for
		// the target. Decode says what is wrong with it.
		if _, err := e.Decode(c.Table, nil); err != nil {
			return nil, err
		}
		return nil, fail(e, errors.New("a string is required"))
	}
	base, err := ParseBase(u.AsString())
	if err != nil {
		return nil, fail(e, err)
	}
	return base, nil
}

func fail(e *attr.Entry, err error) error {
	return &attr.Error{Address: e.Address, Attr: "url", Pos: e.Settings["url"].Pos, Err: err}
}

// Covers reports whether target lies at or below base: the same scheme, host
// and port, and base's path as whole segments. Hosts are compared as written,
// but for the case of ASCII letters: a trailing dot, another spelling of an IP
// address or letters beyond ASCII never match, because resolvers and servers
// disagree on what they name. For the same reason a path with dot segments or
// backslashes is never covered, and one with encoded characters only by a base
// without a path: whatever it names, it is on that host.
func Covers(base, target *url.URL) bool {
	return sameOrigin(base, target) && !escapes(target.Path) &&
		(isRoot(base) || isPlain(target) && isBelow(base.Path, target.Path))
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

// escapes reports whether some server may read the decoded path p as one that
// leaves its folder. "..;" is a way up for servers that strip parameters.
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

// Origin is the scheme, host and port of u, as errors name it.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// ParseBase reads the url of a credentials block: scheme, host, optional port
// and path; nothing else, and never a password.
func ParseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("this is not a URL") // url.Error would repeat the text
	}
	_, hasPassword := u.User.Password()
	switch {
	case u.Scheme == "" || u.Hostname() == "":
		return nil, errors.New("a URL with scheme and host is required, such as https://state.example.com/acme/")
	case hasPassword:
		return nil, errors.New("a password does not belong in this URL")
	case u.User != nil && u.Scheme != "ssh", u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("only scheme, host, port and path belong in this URL")
	case !isASCII(u.Hostname()):
		return nil, errors.New("write an international host name in its ASCII form, which begins with xn--")
	case !isPlain(u) || escapes(u.Path):
		return nil, errors.New("the path must not hold dot segments, backslashes or encoded characters")
	}
	return u, nil
}
