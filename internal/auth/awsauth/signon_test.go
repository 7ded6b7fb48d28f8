package awsauth

import (
	"crypto/sha1" //nolint:gosec // how the SDK names its cache
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// TestSingleSignOn: the token of a profile of the code goes to AWS, whatever
// endpoints variables name.
//
// Promise: Where secrets go
func TestSingleSignOn(t *testing.T) {
	var asked nettest.Log[string]
	trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Note(r.Host + " " + r.Header.Get("X-Amz-Sso_bearer_token"))
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(trap.Close)
	home := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(home, ".aws", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const token = `{"accessToken":"canary","refreshToken":"canary","clientId":"c","clientSecret":"canary","expiresAt":"`
	cached := func(name, expires string) {
		sum := sha1.Sum([]byte(name)) //nolint:gosec // how the SDK names its cache
		write("sso/cache/"+hex.EncodeToString(sum[:])+".json", token+expires+`"}`)
	}
	cached("https://start.test", "2999-01-01T00:00:00Z")
	cached("old", "2001-01-01T00:00:00Z")
	const role = "sso_account_id = 1\nsso_role_name = r\n"
	config := write("config", "[profile portal]\nsso_start_url = https://start.test\nsso_region = eu-west-1\n"+role+
		"[profile session]\nsso_session = old\n"+role+"[sso-session old]\nsso_start_url = https://start.test\nsso_region = eu-west-1\n")
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("AWS_CA_BUNDLE", "")
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SSO", "AWS_ENDPOINT_URL_SSO_OIDC", "AWS_ENDPOINT_URL_SIGNIN"} {
		t.Setenv(name, trap.URL)
	}
	table := attr.Table{Name: "x", Attrs: append(CredentialAttrs("X"), NetworkAttrs("x", attr.Attr{
		Name: "endpoints", Attrs: []attr.Attr{{Name: "sts", Type: cty.String}}})...)}
	for profile, want := range map[string]string{"portal": "portal.sso.eu-west-1.amazonaws.com", "session": "oidc.eu-west-1.amazonaws.com"} {
		before := len(asked.All())
		v, err := unstable.NewEntry("x", table, map[string]cty.Value{
			"profile": cty.StringVal(profile), "shared_config_files": cty.ListVal([]cty.Value{cty.StringVal(config)}),
			"https_proxy": cty.StringVal(trap.URL), "max_retries": cty.NumberIntVal(1), "no_proxy": cty.StringVal("127.0.0.1"),
		}).Decode(table, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(v, "eu-west-1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(t.Context()); err == nil {
			t.Errorf("%s: the trap gave credentials", profile)
		}
		if got := asked.All()[before:]; len(got) == 0 || strings.TrimSpace(got[0]) != want+":443" {
			t.Errorf("%s: asked %q, not %s", profile, got, want)
		}
	}
}
