package recognize_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// TestServer: URLs of servers, and others.
func TestServer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ http, server bool }{
		"https://a": {true, true}, "http://a:1/b/c": {true, true}, "HTTPS://A": {true, true}, "https://[::1]/": {true, true},
		"https://me@a": {http: true}, "https://me:secret@a": {http: true}, "https://a/?q": {http: true}, "https://a/?": {http: true},
		"https://a/#f": {http: true}, "": {}, "a": {}, "a:80": {}, "ftp://a": {}, "https://": {},
		"https:///b": {}, "https:a": {}, "https://a:65535": {true, true},
		"https://a:65536": {http: true}, "https://https:/10.0.0.1": {http: true}, "https://HTTP//a": {http: true}, "https://<a>": {http: true},
		"https://%": {},
	} {
		if got := recognize.IsHTTP(text); got != want.http {
			t.Errorf("%q is of http: %t", text, got)
		}
		if is := recognize.IsEndpoint(text); is != (recognize.Endpoint(text) != nil) || want.server && !is {
			t.Errorf("%q is an endpoint: %t", text, is)
		}
		if got := recognize.Server(text); (got != nil) != want.server {
			t.Errorf("%q is of a server: %v", text, got)
		}
	}
	for text, want := range map[string]string{"": "", "a": "https://a", "a:80/b": "https://a:80/b", "http://a": "http://a", "x://": "x://"} {
		if got := recognize.WithScheme(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

// TestScheme: addresses, and names of files that look a little like them.
func TestScheme(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"s3://b/k": "s3", "HTTP://h": "HTTP", "1password://v": "1password", "a+b://c": "a+b", "file://": "file",
		"": "", "a": "", "C://x": "", "C:/x": "", "a/b://c": "b", "a:b": "", "://a": "…", "git@h:p": "",
		" https://u:canary@h": "https", "git::https://u:canary@h": "https", "\"https://u:canary@h\"": "https", "u:canary@ ://": "…",
	} {
		if got := recognize.Scheme(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

// TestNamedSecret: no more of a text than how it begins is returned.
func TestNamedSecret(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"pass:canary": "pass:", "key=canary": "key=", "keys.hcl": "", "a/pass:b": ""} {
		if got := recognize.NamedSecret(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
