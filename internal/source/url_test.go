package source

import (
	"net/url"
	"strconv"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// Promise: Where secrets go
func TestCovers(t *testing.T) {
	tests := []struct {
		base, target string
		want         bool
	}{
		{"https://example.com/acme/", "https://example.com/acme/state", true},
		{"https://example.com/acme", "https://example.com/acme/state", true},
		{"https://example.com/acme/", "https://example.com/acme", true},
		{"https://example.com/acme/state", "https://example.com/acme/state?ref=1#x", true},
		{"https://example.com", "https://example.com/any/thing", true},
		{"https://example.com/", "https://example.com", true},
		{"https://example.com/acme/", "HTTPS://EXAMPLE.COM/acme/state", true},
		{"https://EXAMPLE.com/acme/", "https://example.com/acme/state", true},
		{"https://example.com/acme/", "https://example.com:443/acme/state", true},
		{"https://example.com:443/acme/", "https://example.com/acme/state", true},
		{"http://example.com/", "http://example.com:80/state", true},
		{"ssh://git@example.com/", "ssh://git@example.com:22/acme.git", true},
		{"https://[::1]/", "https://[::1]:443/state", true},
		{"https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/state", true},
		{"https://example.com/acme/", "https://example.com/acme//state", true},
		{"https://example.com/acme/", "https://example.com/acme/..state", true},
		// GitLab takes a project's path as one encoded segment.
		{"https://example.com/", "https://example.com/api/v4/projects/acme%2Finfra/terraform/state/a", true},

		{"https://example.com/api/v4/", "https://example.com/api/v4/projects/acme%2Finfra/terraform/state/a", true},
		{"https://example.com/api/v4", "https://example.com/api/v4/projects/acme%2finfra%2Fsub/terraform/state/a", true},
		{"https://example.com/acme/", "https://example.com/acme/my%20state", true},
		{"https://example.com/acme/", "https://example.com/acme/my state", true},
		{"https://example.com/acme/", "https://example.com/acme/100%25", false}, // which nobody knows how to decode again
		{"https://example.com/projects/acme/infra/", "https://example.com/projects/acme%2Finfra/state", false},
		{"https://example.com/projects/acme/", "https://example.com/projects/acme%2Finfra/state", false},

		// Another host, or something that reads like the same one.
		{"https://example.com/", "https://example.com.evil.io/state", false},
		{"https://example.com/", "https://example.com@evil.io/state", false},
		{"https://example.com/", "https://example.com:443@evil.io/state", false},
		{"https://example.com/", "https://evil.io/example.com/", false},
		{"https://example.com/", "https://evil.io/?https://example.com/", false},
		{"https://example.com/", "https://evil.io#@example.com/", false},
		{"https://example.com/", "https://evilexample.com/", false},
		{"https://example.com/", "https://www.example.com/", false},
		{"https://www.example.com/", "https://example.com/", false},
		{"https://example.com/", "https://example.com./state", false},
		{"https://example.com/", "https://ex\u0430mple.com/", false},              // Cyrillic a
		{"https://kube.example.com/", "https://\u212aube.example.com/", false},    // the Kelvin sign folds to k
		{"https://kube.example.com/", "https://%E2%84%AAube.example.com/", false}, // and encoded
		{"https://example.com/", "https://example\u3002com/", false},              // an ideographic full stop
		{"https://xn--bcher-kva.example/", "https://b\u00fccher.example/", false}, // the same host for some
		{"https://[::1]/", "https://[0:0:0:0:0:0:0:1]/state", false},
		{"https://[::1]/", "https://[::1%25lo]/state", false},
		{"https://[::1]/", "https://[::ffff:1]/", false},
		{"https://127.0.0.1/", "https://0177.0.0.1/", false},
		{"https://127.0.0.1/", "https://2130706433/", false},
		{"https://127.0.0.1/", "https://localhost/", false},

		// Another scheme or port.
		{"https://example.com/", "http://example.com/state", false},
		{"https://example.com/", "http://example.com:443/state", false},
		{"http://example.com/", "https://example.com/state", false},
		{"https://example.com/", "https://example.com:8443/state", false},
		{"https://example.com:8443/", "https://example.com/state", false},
		{"https://example.com/", "https://example.com:0443/state", false},
		{"https://example.com/", "https:example.com/state", false},
		{"https://example.com/", "//example.com/state", false},

		// Another path.
		{"https://example.com/acme/", "https://example.com/acme-x/state", false},
		{"https://example.com/acme", "https://example.com/acme-x", false},
		{"https://example.com/acme/", "https://example.com/", false},
		{"https://example.com/acme/", "https://example.com/ACME/state", false},
		{"https://example.com/a/", "https://example.com/b/a/", false},
		{"https://example.com/a/", "https://example.com//a/", false},
		{"https://example.com/a/", "https://example.com/a/../b", false},
		{"https://example.com/a/", "https://example.com/a/..", false},
		{"https://example.com/a/", "https://example.com/a/./b", false},
		{"https://example.com/a/", "https://example.com/a/..;/b", false},
		{"https://example.com/a/", "https://example.com/a/..;x=1/b", false},
		{"https://example.com/a/", "https://example.com/a/..%2fb", false},
		{"https://example.com/a/", "https://example.com/a%2fb", false},
		{"https://example.com/a/", "https://example.com/a/%2e%2e/b", false},
		{"https://example.com/a/", "https://example.com/a/%2E%2e%2Fb", false},
		{"https://example.com/a/", "https://example.com/a/%252e%252e/b", false},
		{"https://example.com/a/", "https://example.com/a/%25252e%25252e%25252fb", false},
		{"https://example.com/a/", "https://example.com/a/x%2f%2e%2e%2f%2e%2e%2fb", false},
		{"https://example.com/a/", "https://example.com/a/x%2f..%3bb%2fc", false},
		{"https://example.com/a/", "https://example.com/a/..%253bx/b", false},
		{"https://example.com/a/", "https://example.com/a/..%255cb", false},
		{"https://example.com/a/", "https://example.com/a/.%2e/b", false},
		{"https://example.com/a/", `https://example.com/a/..\b`, false},
		{"https://example.com/a/", `https://example.com/a\..\b`, false},
		{"https://example.com/a/", "https://example.com/a/..%5cb", false},
		{"https://example.com/a/", "https://example.com/%61/b", false},
		{"https://example.com/a/", "https://example.com/a/\u2025/b", false}, // a two dot leader
		{"https://example.com/", "https://example.com/a/..%2fb", false},
		{"https://example.com/", "https://example.com/%2e%2e/b", false},
	}
	for _, tt := range tests {
		base, err := ParseBase(tt.base)
		if err != nil {
			t.Fatalf("%s: %v", tt.base, err)
		}
		target, err := url.Parse(tt.target)
		if err != nil {
			t.Fatal(err)
		}
		if got := Covers(base, target); got != tt.want {
			t.Errorf("Covers(%s, %s) = %t", tt.base, tt.target, got)
		}
	}
}

func TestParseBase(t *testing.T) {
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "urls of blocks", "c4n4ry")
	tests := []struct {
		raw   string
		fails bool
	}{
		{"https://state.example.com/acme/", false},
		{"https://state.example.com:8443", false},
		{"ssh://git@example.com/", false},
		{"https://[2001:db8::1]/", false},
		{"", true},
		{"state.example.com/acme", true},
		{"https:state.example.com", true},
		{"https:///acme", true},
		{"https://:443/", true},
		{"https://c4n4ry@example.com/", true},
		{"https://user:c4n4ry@example.com/", true},
		{"ssh://git:c4n4ry@example.com/", true},
		{"https://example.com/?c4n4ry", true},
		{"https://example.com/#c4n4ry", true},
		{"https://example.com/c4n4ry%2f", true},
		{"https://example.com/a/../b", true},
		{`https://example.com/a\b`, true},
		{"https://b\u00fccher.example/", true},
		{"https://example.com/\x7fc4n4ry", true},
		{`https://example.com\@c4n4ry/`, true},
		{"https://example.com:c4n4ry/", true},
	}
	for _, tt := range tests {
		_, err := ParseBase(tt.raw)
		if tt.fails {
			says.Error(t, strconv.Quote(tt.raw), err)
		} else if err != nil {
			t.Errorf("ParseBase(%q): %v", tt.raw, err)
		}
	}
}
