package source

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// ReadsEnvironment reports whether environment variables may be read for this place.
func (g Grant) ReadsEnvironment() bool { return g.Env != nil }

// Blame prefixes err with the address of the credentials block, and with its url if there are several blocks.
// It returns err unchanged if there is no block, or if err already names one.
func (g Grant) Blame(err error) error {
	if _, names := errors.AsType[*attr.Error](err); err == nil || names || !g.Found {
		return err
	}
	address := g.Address()
	if end := strings.LastIndexByte(address, '['); g.several && end > 0 && strings.HasSuffix(address, "]") {
		address = address[:end]
	}
	if g.several && g.Has("url") {
		address += " with url = " + outside.Quoted(g.String("url"), maxPlace)
	}
	return fmt.Errorf("%s: %w", address, err)
}

// Rights is the advice for credentials that a server refused.
const Rights = "check the username, the password or token, and whether it has expired or lacks rights"

// Credentials decide which server receives which secret. The secrets come from the blocks of one kind inside
// credentials {}, or from the environment. The server is named by a data source, which any module can write.
//
// [unstable.Entry.Resolve] decides which variables may complete a block. This type decides which block is
// used, and which server the variables are meant for:
//
//   - If use of the environment is off, no variable completes a block. A block with a name is never
//     completed.
//   - If the variables have a home, other servers receive only the harmless ones.
//   - A secret variable with neither a home nor a block is an error.
type Credentials struct {
	Table   attr.Table
	Entries []*unstable.Entry
	Others  map[string][]*unstable.Entry // blocks of other kinds, by kind, for error messages
	Env     attr.LookupEnv               // nil if the environment must not be used
	Home    Home

	// CheckURL returns an error for a url that no read can match. Without this check, users would only be
	// told that credentials are missing. CheckURL may be nil.
	CheckURL func(*url.URL) error
}

// For returns a copy of s that follows the credentials rules of kind k.
func (s Settings) For(k Kind) Settings {
	c := &s.Credentials
	c.Table, c.Env, c.Home = k.Credentials, s.LookupEnv, k.Home
	return s
}

// Home says which server the environment variables of a kind are meant for. A kind uses the zero value if its
// variables are only sent to the vendor's own hosts.
type Home struct {
	// Vars are the variables that name the server. The first one that is set and not empty is used. Default
	// is the server if none is set; an empty Default means that the server is unknown.
	Vars    []string
	Default string

	// Attrs are the block attributes that name the server, for kinds whose blocks name it. If a block sets
	// several, the best match is used.
	Attrs []string

	// Compare compares a home, which is the value of Vars or Default, with the server that a read asks for.
	// The server is either the URL of the read or the value of one of Attrs, or an empty string if that value
	// is not a string. If Compare is nil, both are compared as URLs.
	Compare func(home, asked string) Match
}

// Match says how the server of a read relates to the home of the variables.
type Match int

const (
	Undecided   Match = iota // unknown: the variables have no home, or it cannot be compared
	OtherServer              // the variables are meant for another server; only harmless ones are used
	SameServer               // the variables may complete a block for this server
	SamePlace                // the variables are used even without a block
)

// SameServerIf returns SameServer if its argument is true, and OtherServer otherwise. Kinds that only compare
// servers use it.
func SameServerIf(is bool) Match {
	if is {
		return SameServer
	}
	return OtherServer
}

// Grant holds the credentials for one place. If neither a block nor a variable applies to the place, all
// values are absent.
type Grant struct {
	attr.Values
	Found bool // whether there is a block for the place

	several bool // whether there are other blocks of the kind

	// Env is the environment, for variables that no attribute declares. It is nil if variables must not be
	// read for this place.
	Env attr.LookupEnv
}

// NoCredentials returns the fault for a target that no credentials block covers. The block that it suggests
// has the given arguments, and a url that covers little more than target.
func NoCredentials(kind string, target *url.URL, arguments ...string) fault.NoBlock {
	at := fmt.Sprintf("url = %q", narrowest(target))
	return fault.NoBlock{Path: "credentials." + kind, Arguments: append([]string{at}, arguments...)}
}

// narrowest returns the url for a block that covers target. If a block cannot name target itself, it returns
// the nearest folder above that a block can name. The result is escaped, because target may come from
// outside.
func narrowest(target *url.URL) string {
	at := Public(target)
	for path := target.EscapedPath(); strings.Contains(path, "/"); {
		base, err := ParseBase(at)
		if err == nil && Covers(base, target) && len(at) <= maxPlace && outside.Line(at, maxPlace) == at {
			return at
		}
		path = path[:strings.LastIndexByte(path, '/')]
		at = Origin(target) + path + "/"
	}
	return outside.Line(Origin(target), maxPlace) + "/"
}

// For returns the credentials for target. It uses the block whose url covers target, and the one with the
// longest path if there are several. The environment completes the block. Without a block, only variables
// that are meant for target are used. If there is neither a block nor a home, a secret variable is an error:
// if it were ignored, the read would fail with a less helpful error, and if it were used, any address could
// receive the secret.
func (c Credentials) For(target *url.URL) (Grant, error) {
	g, near, err := c.at(target)
	if err != nil || g.Found || near != Undecided {
		return g, err
	}
	if name := unstable.SecretVariable(c.Table, c.Env); name != "" {
		origin := Origin(target)
		or := ""
		if len(c.Home.Vars) > 0 {
			or = "set " + c.Home.Vars[0] + ", or "
		}
		err := fmt.Errorf("%s is set, but no setting says that the variable is for %s; unset the variable. If it is for this server, %sadd "+
			"this to {settings}", name,
			origin, or)
		return g, fault.Known(err, NoCredentials(c.Table.Name, target))
	}
	return g, nil
}

// Uncovered explains why target has no credentials: its block has none to send, only a block of another kind
// covers it, or the nearest blocks differ in one part of the address. It returns an empty string if no block
// explains it.
func (c Credentials) Uncovered(target *url.URL) string {
	covers := func(e *unstable.Entry) bool {
		base, err := c.base(e)
		return err == nil && Covers(base, target)
	}
	if slices.ContainsFunc(c.Entries, covers) {
		return fmt.Sprintf("the %s credentials block for this address contains no credentials that can be sent; complete the block",
			c.Table.Name)
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Others)) {
		if slices.ContainsFunc(c.Others[kind], covers) {
			return fmt.Sprintf("the %s credentials block for this address applies only to the source %[1]s; add a %s credentials block",
				kind, c.Table.Name)
		}
	}
	near := map[string][]string{}
	for _, e := range c.Entries {
		if base, err := c.base(e); err == nil {
			what := differs(base, target)
			near[what] = append(near[what], outside.Line(base.String(), maxPlace))
		}
	}
	const most = 3
	for _, what := range []string{otherPath, otherPort, otherScheme, otherHost} {
		if bases := near[what]; len(bases) > 0 {
			if len(bases) > most {
				bases = append(bases[:most], "others")
			}
			blocks := "block for " + bases[0] + " has"
			if len(bases) > 1 {
				blocks = "blocks for " + strings.Join(bases, " and ") + " have"
			}
			return fmt.Sprintf("no %s credentials block covers %s, because the %s another %s; correct the address or the block, or add "+
				"another block", c.Table.Name, outside.Line(Public(target), maxPlace), blocks, what)
		}
	}
	return ""
}

// OfSibling returns the name of a secret variable that is meant for another place on target's server, or an
// empty string if there is none. The secret is sent to target only if a block covers target.
func (c Credentials) OfSibling(target *url.URL) string {
	if c.Home.near(c.Env, target.String()) != SameServer {
		return ""
	}
	return unstable.SecretVariable(c.Table, c.Env)
}

const (
	otherPath   = "path"
	otherPort   = "port"
	otherScheme = "scheme"
	otherHost   = "host"
)

// differs names the most significant part in which base and target differ.
func differs(base, target *url.URL) string {
	switch {
	case !strings.EqualFold(base.Hostname(), target.Hostname()):
		return otherHost
	case base.Scheme != target.Scheme:
		return otherScheme
	case port(base) != port(target):
		return otherPort
	}
	return otherPath
}

const maxPlace = 300 // size limit of an address in an error message, in bytes

// Redirected works like [Credentials.For], for a place that a server redirects to. A secret variable that is
// not meant for that place is ignored instead of causing an error.
func (c Credentials) Redirected(target *url.URL) (Grant, error) {
	g, _, err := c.at(target)
	return g, err
}

func (c Credentials) at(target *url.URL) (Grant, Match, error) {
	block, err := c.covering(target)
	if err != nil {
		return Grant{}, Undecided, err
	}
	near := c.Home.near(c.Env, target.String())
	if block == nil && near != SamePlace {
		c.Env = nil
	}
	g, err := c.fill(block, block != nil, near)
	return g, near, err
}

// Named returns the credentials from the block called name. An empty name selects the block without a name
// or, if there are no blocks, the environment. Kinds whose blocks name the server use it. choice is the
// argument that selects a block, for error messages.
func (c Credentials) Named(choice, name string) (Grant, error) {
	block, err := c.called(choice, name)
	if err != nil {
		return Grant{}, err
	}
	if name != "" { // the server of a named block may differ from the one that the variables are meant for
		c.Env = nil
	}
	return c.fill(block, block != nil, c.Home.nearBlock(c.Env, block))
}

// Complete returns the values of a document, such as a connection string, that an attribute of g contains or
// names. The environment completes the document as it would complete a block. The document is an entry of the
// table of c. A document from a variable does not count as part of the configuration.
func (c Credentials) Complete(g Grant, attribute string, document *unstable.Entry) (Grant, error) {
	return c.fill(document, g.Found && g.Variable(attribute) == "", c.Home.nearBlock(c.Env, document))
}

// Is reports whether the variables are meant for target.
func (h Home) Is(env attr.LookupEnv, target *url.URL) bool {
	return h.near(env, target.String()) == SamePlace
}

// near returns the best [Match] among the servers in asked.
func (h Home) near(env attr.LookupEnv, asked ...string) Match {
	home, set := env.Get(h.Vars...)
	if !set && h.Default == "" {
		return Undecided
	}
	compare := h.Compare
	if compare == nil {
		compare = nearURL
	}
	near := Undecided
	for _, a := range asked {
		near = max(near, compare(cmp.Or(home, h.Default), a))
	}
	return near
}

// nearBlock returns the [Match] of the server that a block names. It returns SamePlace if the block names no
// server, because the environment may then choose it.
func (h Home) nearBlock(env attr.LookupEnv, block *unstable.Entry) Match {
	var asked []string
	for _, name := range h.Attrs {
		if block != nil && block.Settings[name].IsSet() {
			asked = append(asked, text(block.Settings[name].Value))
		}
	}
	if len(asked) == 0 {
		return SamePlace
	}
	return h.near(env, asked...)
}

func text(v cty.Value) string {
	if v == cty.NilVal || v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return ""
	}
	return v.AsString()
}

// nearURL returns the [Match] of two URLs, for kinds whose home is a URL.
func nearURL(home, asked string) Match {
	h, err := url.Parse(home)
	a, errAsked := url.Parse(asked)
	switch {
	case err != nil || errAsked != nil:
		return OtherServer
	case Covers(h, a) || h.String() == a.String(): // the same URL also matches with encoded slashes, as in GitLab's instructions
		return SamePlace
	case Covers(&url.URL{Scheme: h.Scheme, Host: h.Host}, a):
		return SameServer
	}
	return OtherServer
}

// fill completes block, which may be nil, with the environment of c. found tells whether the block is part of
// the configuration.
func (c Credentials) fill(block *unstable.Entry, found bool, near Match) (Grant, error) {
	if block == nil && c.Env == nil { // no variable is used, so errors need no address
		block = unstable.NewEntry("", c.Table, nil)
	} else if block == nil {
		block = unstable.NewEntry("the environment variables for "+c.Table.Name, c.Table, nil)
	}
	values, err := block.Resolve(c.Table, unstable.Scope{Lookup: c.Env, OtherServer: near == OtherServer, OnlyEnvironment: !found})
	if err != nil {
		return Grant{Found: found}, err
	}
	return Grant{Values: values, Found: found, Env: values.Environment(), several: len(c.Entries) > 1}, nil
}

// covering returns the block whose url covers target, or nil if there is none. If several do, the one with
// the longest path is used.
func (c Credentials) covering(target *url.URL) (*unstable.Entry, error) {
	var best *unstable.Entry
	length := -1
	for _, e := range c.Entries {
		base, err := c.base(e)
		if err != nil {
			return nil, err
		}
		if !Covers(base, target) {
			continue
		}
		switch n := len(strings.TrimSuffix(base.Path, "/")); {
		case n > length:
			best, length = e, n
		case n == length:
			// Choosing one of the two could send the wrong secret.
			return nil, fail(e, "url", errors.New("another block has the same url; remove one of the two blocks"))
		}
	}
	return best, nil
}

// called returns the block called name. If name is empty and there are no blocks, it returns nil. Any other
// missing block is an error.
func (c Credentials) called(choice, name string) (*unstable.Entry, error) {
	var others []string
	var chosen *unstable.Entry
	for _, e := range c.Entries {
		own, err := c.textOf(e, "name")
		switch {
		case err != nil:
			return nil, err
		case own != name && own == "":
			others = append(others, "one without a name")
		case own != name:
			others = append(others, strconv.Quote(own))
		case chosen != nil && name == "":
			return nil, fail(e, "name", fmt.Errorf("another block also has no name; give one of the two blocks a name, and select that block with "+
				"%s", choice))
		case chosen != nil:
			return nil, fail(e, "name", errors.New("another block has the same name; remove one of the two blocks"))
		default:
			chosen = e
		}
	}
	switch {
	case chosen != nil, name == "" && len(others) == 0:
		return chosen, nil
	case name != "":
		err := fmt.Errorf("there is no %s credentials block with the name %q", c.Table.Name, name)
		if len(others) == 0 {
			return nil, fault.With(err, "add a block with this name")
		}
		return nil, fmt.Errorf("%w, only %s; correct the name, or add a block", err, strings.Join(others, " and "))
	}
	slices.Sort(others)
	return nil, fmt.Errorf("all %s credentials blocks have names, so one must be chosen; set %s to %s", c.Table.Name, choice,
		strings.Join(slices.Compact(others), " or "))
}

// textOf returns the string value of one attribute. Errors in other attributes are reported only if the block
// is used. An error in this attribute is reported at once, because the attribute decides which block is used.
func (c Credentials) textOf(e *unstable.Entry, name string) (string, error) {
	s, set := e.Settings[name]
	switch v := s.Value; {
	case !set, v != cty.NilVal && v.IsKnown() && v.IsNull():
		return "", nil
	case v == cty.NilVal || v.Type() != cty.String || !v.IsKnown():
		decoded, err := e.Decode(c.Table, nil)
		if err != nil {
			return "", err
		}
		return decoded.String(name), nil
	default:
		return v.AsString(), nil
	}
}

func (c Credentials) base(e *unstable.Entry) (*url.URL, error) {
	text, err := c.textOf(e, "url")
	if err == nil && text == "" { // Decode may explain why the value is empty
		_, err = e.Decode(c.Table, nil)
	}
	if err != nil {
		return nil, err
	}
	base, err := ParseBase(text)
	if u, failed := url.Parse(text); errors.Is(err, errPath) && failed == nil && !isPlain(u) { // as the URL of a GitLab project by its path
		err = fault.With(err, fmt.Sprintf("set url = %q", narrowest(u)))
	}
	if err == nil && c.CheckURL != nil {
		err = c.CheckURL(base)
	}
	if err != nil {
		return nil, fail(e, "url", err)
	}
	return base, nil
}

func fail(e *unstable.Entry, name string, err error) error {
	return &attr.Error{Address: e.Address, Attr: name, Pos: e.Settings[name].Pos, Err: err}
}
