package openbao_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// odd are texts that mean something in a URL, or to a server, with whether they can be a
// name. A path may have slashes, too.
var odd = map[string]bool{
	"a": true, "a b": true, "a#b": true, "a?b=c": true, "a%2fb": true, "%2e%2e": true, "a+b": true, "a;b": true, "a..b": true, "...": true,
	"ä/b": false, "a/b": false, "..": false, ".": false, "../../tenant-b/transit": false, "a/../b": false, "a/..": false, "a//b": false,
	"a/./b": false, `..\x`: false, "a\nb": false, "a\x7fb": false, "/": false, "a\xff": false, "": false,
}

// TestPathsOnTheWire: what becomes a part of a path arrives as that, below the path of the
// address; what could lead elsewhere is an error before anything is sent. The error does
// not show it: anything may be a secret in the wrong place.
//
// Promise: Where secrets go
func TestPathsOnTheWire(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.RequestURI
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	stored := json.RawMessage(`{"ciphertext":"dmF1bHQ6djE6eA=="}`)
	for text, isName := range odd {
		isPath := isName || slices.Contains([]string{"ä/b", "a/b"}, text)
		jwt := attrs{"jwt": str("canary-jwt"), "mount_path": str(text)}
		for name, c := range map[string]struct {
			value cty.Value
			fits  bool
			want  []string
		}{
			"key_name":            {str(text), isName, []string{"transit", "decrypt", text}},
			"transit_engine_path": {str(text), isPath, append(strings.Split(text, "/"), "decrypt", "k")},
			"auth_jwt":            {cty.ObjectVal(jwt), isPath, append(append([]string{"auth"}, strings.Split(text, "/")...), "login")},
		} {
			a := attrs{}.With("address", server.URL+"/base", "key_name", "k", "max_retries", 0, name, c.value)
			if name != "auth_jwt" {
				a = a.With("token", "canary-token")
			}
			p, err := tryBuild(a, nil)
			if !c.fits {
				if err == nil || strings.Contains(err.Error(), "canary") || len(text) > 2 && strings.Contains(err.Error(), text) {
					t.Errorf("%s = %q: got %v", name, text, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s = %q: %v", name, text, err)
				continue
			}
			if _, err := p.Key(t.Context(), nil, stored); err == nil {
				t.Fatal("a teapot gave a key")
			}
			want := append([]string{"", "base", "v1"}, c.want...)
			var got []string
			for segment := range strings.SplitSeq(<-asked, "/") {
				plain, err := url.PathUnescape(segment)
				if err != nil || strings.ContainsAny(segment, "?#") {
					t.Errorf("%s = %q: %q is sent", name, text, segment)
				}
				got = append(got, plain)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s = %q: %q is sent, want %q", name, text, got, want)
			}
		}
	}
	select {
	case more := <-asked:
		t.Errorf("asked for %s as well", more)
	default:
	}
}
