package s3

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Endpoints of ~/.aws/config are for the identities that are in the home, or in the
// environment: a secret of the code goes to AWS, or to where the code says. The reads run in
// a process of their own, because the SDK looks for the home once.
//
// Promise: Where secrets go
func TestSecretsBesideTheHome(t *testing.T) {
	const own = "s3.eu-west-1.amazonaws.com:443"
	keys := objecttest.Strings("access_key", "AKIATEST", "secret_key", "canary-secret", "token", "canary-token")
	for name, c := range map[string]struct {
		block attrs
		env   []string
		want  string // who is asked; "" is the endpoint of the home
	}{
		"keys":                    {block: keys, want: own},
		"keys, named":             {block: keys.With("name", "a"), want: own},
		"keys, and a profile":     {block: keys.With("profile", "other"), want: own},
		"a customer's key":        {block: objecttest.Strings(customerKeyAttr, customerKey(1), "profile", "other"), want: own},
		"a profile":               {block: objecttest.Strings("profile", "other")},
		"keys of the home":        {block: objecttest.Strings()},
		"keys of the environment": {block: objecttest.Strings(), env: []string{"AWS_ACCESS_KEY_ID=AKIAENV", "AWS_SECRET_ACCESS_KEY=canary"}},
	} {
		if os.Getenv("S3_TEST_READS") == name {
			asks, block := asks(), c.block.With("https_proxy", os.Getenv("S3_TEST_PROXY")).With("max_retries", 1).With("use_path_style", true)
			if _, named := block["name"]; named {
				asks = asks.With("credentials_name", block["name"])
			}
			for _, env := range []attr.LookupEnv{os.LookupEnv, nil} {
				if _, err := read(t, asks, settings(env, block)); err == nil {
					t.Error("it was read")
				}
			}
		}
		if os.Getenv("S3_TEST_READS") != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var asked nettest.Log[string]
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Note(r.Host)
				w.WriteHeader(http.StatusForbidden)
			}))
			t.Cleanup(server.Close)
			home := t.TempDir()
			if err := os.Mkdir(filepath.Join(home, ".aws"), 0o700); err != nil {
				t.Fatal(err)
			}
			const profile = "aws_access_key_id = AKIAHOME\naws_secret_access_key = canary\nendpoint_url = "
			config := "[default]\n" + profile + server.URL + "/\n[profile other]\n" + profile + server.URL + "/\n"
			if err := os.WriteFile(filepath.Join(home, ".aws", "config"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSecretsBesideTheHome$")
			cmd.Env = append(os.Environ(), append(c.env, "HOME="+home, "AWS_CONFIG_FILE=", "AWS_SHARED_CREDENTIALS_FILE=",
				"S3_TEST_READS="+name, "S3_TEST_PROXY="+server.URL)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			want := cmp.Or(c.want, strings.TrimPrefix(server.URL, "http://"))
			if all := asked.All(); !slices.Equal(all, []string{want, want}) {
				t.Errorf("asked %q, not %s twice", all, want)
			}
		})
	}
}
