package awsauth

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the SDK names files by it
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// The SDK's own chain asks services of the machine. One that never ends its answer
// is not read any further than an answer of AWS may go.
//
// Promise: Cost
func TestEndlessAnswers(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut { // a token of the instance's service, or its refusal
			w.WriteHeader(http.StatusNotFound)
			return
		}
		chunk := bytes.Repeat([]byte(" "), 1<<16)
		for sent.Load() < 1<<30 {
			n, err := w.Write(chunk)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	says := testkit.OpenGolden(t, "../testdata/mistakes.txt", "AWS")
	onMachine(t, server.URL, func(t *testing.T, retrieve func() error) {
		sent.Store(0)
		says.Error(t, t.Name(), retrieve())
		if n := sent.Load(); n == 0 || n > 64<<20 {
			t.Errorf("%d bytes were sent", n)
		}
	})
}

// What the services of the machine answer costs no more than its size allows.
func TestCosts(t *testing.T) {
	const keys = `{"Code":"Success","AccessKeyId":"a","SecretAccessKey":"b","Token":"c","Expiration":"2100-01-01T00:00:00Z"}`
	answers := amplification.NewAnswers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut:
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "100")
			_, _ = io.WriteString(w, "token")
		case strings.HasSuffix(r.URL.Path, "/security-credentials/"):
			_, _ = io.WriteString(w, "role")
		case strings.HasPrefix(r.URL.Path, "/federation/"):
			_, _ = io.WriteString(w, `{"roleCredentials":{"accessKeyId":"a","secretAccessKey":"b","sessionToken":"c","expiration":4102444800000}}`)
		default:
			_, _ = io.WriteString(w, keys)
		}
	}))
	server := httptest.NewServer(answers)
	defer server.Close()
	onMachine(t, server.URL, func(t *testing.T, retrieve func() error) {
		answers.Run(t, func(*testing.T) func() error { return retrieve })
	})
}

// onMachine tests each of the services that give keys to whoever is at the machine or
// signed in there, which are at url, as the only way to some.
func onMachine(t *testing.T, url string, test func(t *testing.T, retrieve func() error)) {
	t.Helper()
	nowhere := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", nowhere)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", nowhere)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_EC2_METADATA_DISABLED"} {
		t.Setenv(name, "")
	}
	for name, c := range map[string]struct {
		container, portal string
		values            map[string]cty.Value
	}{
		"container": {container: url},
		"instance":  {values: map[string]cty.Value{"ec2_metadata_service_endpoint": cty.StringVal(url)}},
		"SSO":       {portal: url},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", c.container)
			if c.portal != "" {
				signedIn(t, c.portal)
			}
			test(t, func() error {
				s, _ := parse(t, c.values)
				s.World, s.attempts, s.OwnEndpoints = world.Here(), 1, false
				cfg, err := s.Load(t.Context())
				if err == nil {
					_, err = s.Retrieve(t.Context(), cfg.Credentials)
				}
				return err
			})
		})
	}
}

// signedIn leaves what "aws sso login" does, for a portal.
func signedIn(t *testing.T, portal string) {
	t.Helper()
	const start = "https://example.com/start"
	home := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(home, ".aws", name)
		if os.MkdirAll(filepath.Dir(path), 0o700) != nil || os.WriteFile(path, []byte(text), 0o600) != nil {
			t.Fatal(path)
		}
		return path
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("AWS_ENDPOINT_URL_SSO", portal)
	t.Setenv("AWS_CONFIG_FILE", write("config", "[default]\nsso_account_id = 1\nsso_role_name = r\nsso_region = us-east-1\n"+
		"sso_start_url = "+start+"\n"))
	write(fmt.Sprintf("sso/cache/%x.json", sha1.Sum([]byte(start))), //nolint:gosec // the name that the SDK looks for
		`{"accessToken":"t","expiresAt":"2100-01-01T00:00:00Z"}`)
}
