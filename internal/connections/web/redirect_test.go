package web

import (
	"net/url"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// A server may lead to another one, but to nothing that is less protected, and to
// no URL that says who asks.
func TestMayLead(t *testing.T) {
	says := testkit.OpenGolden(t, "../testdata/mistakes.txt", "redirects")
	for _, tt := range []struct {
		from, to string
		may      bool
	}{
		{"https://a", "https://b/x?y", true},
		{"http://a", "http://b", true},
		{"http://a", "https://b", true},
		{"https://a", "http://a", false},
		{"https://a", "ftp://a", false},
		{"http://a", "file:///a", false},
		{"https://a", "https:opaque", false},
		{"https://a", "https:///x", false},
		{"https://a", "https://user@b", false},
	} {
		from, err := url.Parse(tt.from)
		if err != nil {
			t.Fatal(err)
		}
		to, err := url.Parse(tt.to)
		if err != nil {
			t.Fatal(err)
		}
		err = MayLead(from, to)
		if !tt.may {
			says.Error(t, tt.from+" to "+tt.to, err)
		} else if err != nil {
			t.Errorf("%s to %s: got %v", tt.from, tt.to, err)
		}
	}
}
