package all

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// oddSegments are texts that mean something in a URL, or to whoever reads one.
var oddSegments = []string{
	"a b", "a#b", "a?b=c", "a%2fb", "%2e%2e", "a..b", "a+b;c", "a&b", "a/b", "..", "../../x", "a/../b", "a/.", `a\..\b`, "a\nb",
}

// TestSegments: whatever text of a data source becomes a part of the path of a request
// arrives as it is, and as no more than that. It is an error, before anything is sent, if
// it could lead elsewhere. The name of a workspace is checked where it is read.
//
// Promise: Where secrets go
func TestSegments(t *testing.T) {
	for _, k := range Kinds() {
		if slices.Contains([]string{"file", "git", "http", "pg"}, k.Name) { // the first and the last have no URL, the others all of it
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			a := arenaOf(k, policies(t)[k.Name])
			usual, err := a.requested(t, a.where(a.asked))
			if len(usual) == 0 {
				t.Fatalf("nothing is asked: %v", err)
			}
			for _, at := range textsOf(k.Attrs, a.where(a.asked)) {
				for _, text := range oddSegments {
					a.checkSegments(t, at, text, usual)
				}
			}
		})
	}
}

// segmentAttr is a text of a data source, which may stand in a block.
type segmentAttr struct {
	block, name, value string
}

func textsOf(declared []attr.Attr, where attrs) (found []segmentAttr) {
	for _, d := range declared {
		switch value, set := where[d.Name]; {
		case d.Type == cty.String && d.Name != "hostname":
			old := ""
			if set && !value.IsNull() {
				old = value.AsString()
			} else if d.Default != cty.NilVal {
				old = d.Default.AsString()
			}
			found = append(found, segmentAttr{name: d.Name, value: old})
		case d.Attrs != nil && set:
			for _, inner := range textsOf(d.Attrs, value.AsValueMap()) {
				inner.block = d.Name
				found = append(found, inner)
			}
		}
	}
	return found
}

func (s segmentAttr) in(where attrs, text string) attrs {
	if s.block == "" {
		return with(where, s.name, text)
	}
	out := with(where)
	block := out[s.block].AsValueMap()
	block[s.name] = cty.StringVal(text)
	out[s.block] = cty.ObjectVal(block)
	return out
}

var requestLine = regexp.MustCompile(`(?m)^[A-Z]+ (\S+) HTTP/1\.1\r?$`)

// requested are the paths that a read asks for, decoded and as they were sent. The first
// of them is of a state.
func (a arena) requested(t *testing.T, where attrs) (paths []*url.URL, err error) {
	t.Helper()
	a.watch.take()
	for name, value := range a.proxies {
		t.Setenv(name, value)
	}
	s := source.Settings{LookupEnv: func(name string) (string, bool) { v, ok := a.proxies[name]; return v, ok }}
	s.Credentials.Env, s.Credentials.Table = s.LookupEnv, a.kind.Credentials
	s.Credentials.Entries = []*unstable.Entry{unstable.NewEntry("credentials."+a.kind.Name, a.kind.Credentials, a.own(a.asked))}
	values, err := unstable.NewEntry("data.x", a.kind.Table, where).Decode(a.kind.Table, nil)
	if err != nil {
		return nil, err
	}
	src, err := a.kind.Start(s)(source.Request{Values: values, Workspace: a.workspace(), MaxSize: 1 << 20})
	if err != nil {
		return nil, err
	}
	_, err = src.Fetch(context.WithoutCancel(t.Context()))
	for _, line := range requestLine.FindAllStringSubmatch(a.watch.take(), -1) {
		u, e := url.ParseRequestURI(line[1])
		if e != nil {
			t.Errorf("%q is sent", line[1])
			continue
		}
		if !strings.HasPrefix(u.Path, "/.well-known/") {
			paths = append(paths, u)
		}
	}
	return paths, err
}

func (a arena) checkSegments(t *testing.T, at segmentAttr, text string, usual []*url.URL) {
	t.Helper()
	got, err := a.requested(t, at.in(a.where(a.asked), text))
	if len(got) == 0 {
		if err == nil {
			t.Errorf("%s = %q: nothing is asked, and all is well", at.name, text)
		}
		return
	}
	want := usual[0].Path
	before, after, isPart := want, "", false
	if at.value != "" {
		before, after, isPart = strings.Cut(want, at.value)
	}
	path := got[0].Path
	for segment := range strings.SplitSeq(got[0].EscapedPath(), "/") {
		if plain, err := url.PathUnescape(segment); err != nil || plain == "." || plain == ".." {
			t.Errorf("%s = %q: %s is sent", at.name, text, got[0].RequestURI())
		}
	}
	hasDots := slices.ContainsFunc(strings.Split(text, "/"), func(s string) bool { return s == "." || s == ".." })
	switch {
	case isPart && hasDots: // as the backends do, some kinds shorten them away
		if !strings.HasPrefix(path, before) {
			t.Errorf("%s = %q: %s is sent, which is not below %s", at.name, text, path, before)
		}
	case isPart && path != before+text+after, !isPart && path != want && !strings.Contains(path, text):
		t.Errorf("%s = %q: %s is sent as %s, instead of %s", at.name, text, got[0].RequestURI(), path, before+text+after)
	}
}
