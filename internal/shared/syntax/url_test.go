package syntax_test

import (
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// TestServer: URLs of servers, and others.
func TestServer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ http, server bool }{
		"https://a": {true, true}, "http://a:1/b/c": {true, true}, "HTTPS://A": {true, true}, "https://[::1]/": {true, true},
		"https://me@a": {http: true}, "https://me:secret@a": {http: true}, "https://a/?q": {http: true}, "https://a/?": {http: true},
		"https://a/#f": {http: true}, "": {}, "a": {}, "a:80": {}, "ftp://a": {}, "https://": {}, "https:///b": {}, "https:a": {}, "https://%": {},
	} {
		if got := syntax.IsHTTP(text); got != want.http {
			t.Errorf("%q is of http: %t", text, got)
		}
		if got := syntax.Server(text); (got != nil) != want.server {
			t.Errorf("%q is of a server: %v", text, got)
		}
	}
	for text, want := range map[string]string{"": "", "a": "https://a", "a:80/b": "https://a:80/b", "http://a": "http://a", "x://": "x://"} {
		if got := syntax.WithScheme(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

// TestDomains: labels, and names made of them.
func TestDomains(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63)
	domain := strings.Repeat("a.", 126) + "a"
	for text, want := range map[string]struct{ label, domain bool }{
		"a": {true, true}, "a-1": {true, true}, "1": {true, true}, long: {true, true}, long + "a": {false, true}, "a.b": {false, true},
		domain: {false, true}, domain + "a": {}, "": {}, "-a": {}, "a-": {}, "A": {}, "a_b": {}, "a..b": {}, ".a": {}, "a.": {}, "a-.b": {},
		"a.-b": {}, "a\n": {}, "a/b": {},
	} {
		if got := syntax.IsLabel(text); got != want.label {
			t.Errorf("%q is a label: %t", text, got)
		}
		if got := syntax.IsDomain(text); got != want.domain {
			t.Errorf("%q is a domain: %t", text, got)
		}
	}
}
