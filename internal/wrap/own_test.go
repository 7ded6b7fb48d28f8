package wrap

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A plaintext state beside the module is told of: under wrap, Terraform does not look at
// it, and would make everything in it again.
func TestWarnOfOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"a state":          {`{"version":4,"serial":1,"lineage":"l","resources":[]}`, true},
		"an encrypted one": {string(sealed(t, `{"version":4,"serial":1,"lineage":"l"}`)), false},
		"an empty file":    {"", false},
		"none":             {"none", false},
	} {
		dir := t.TempDir()
		if c.text != "none" {
			if err := os.WriteFile(filepath.Join(dir, "terraform.tfstate"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var said strings.Builder
		warnOfOwn(dir, &said)
		if strings.Contains(said.String(), "run init with -encrypt-existing") != c.want || (said.Len() > 0) != c.want {
			t.Errorf("%s: %q", name, said.String())
		}
	}
}

// A refusal names the server, and says whether credentials were sent.
func TestAnswered(t *testing.T) {
	t.Parallel()
	b := &backend{read: endpoint{url: &url.URL{Scheme: "https", Host: "example.com", Path: "/s"}}}
	const none = "401 Unauthorized at https://example.com, and no credentials were sent; set username"
	if got := b.answered(http.StatusUnauthorized); !strings.Contains(got, none) {
		t.Errorf("got %s", got)
	}
	b.authenticates = true
	const wrong = "403 Forbidden at https://example.com; check the credentials of the backend block"
	if got := b.answered(http.StatusForbidden); !strings.HasSuffix(got, wrong) {
		t.Errorf("got %s", got)
	}
	if got := b.answered(http.StatusInternalServerError); got != "the backend answered 500 Internal Server Error" {
		t.Errorf("got %s", got)
	}
}
