package web

import (
	"net/url"
	"strings"
	"testing"
)

// A server may lead to another one, but to nothing that is less protected, and to
// no URL that says who asks.
func TestMayLead(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"https://a", "https://b/x?y", ""},
		{"http://a", "http://b", ""},
		{"http://a", "https://b", ""},
		{"https://a", "http://a", "http address instead of https"},
		{"https://a", "ftp://a", "neither http nor https"},
		{"http://a", "file:///a", "neither http nor https"},
		{"https://a", "https:opaque", "neither http nor https"},
		{"https://a", "https:///x", "neither http nor https"},
		{"https://a", "https://user@b", "a user name or password"},
	} {
		from, err := url.Parse(tt.from)
		if err != nil {
			t.Fatal(err)
		}
		to, err := url.Parse(tt.to)
		if err != nil {
			t.Fatal(err)
		}
		if err := MayLead(from, to); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s to %s: got %v, want %q", tt.from, tt.to, err, tt.want)
		}
	}
}
