package gcpkms_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// canaries sets what Google's libraries would heed of the environment and can
// be kept from.
func canaries(t *testing.T) {
	t.Helper()
	trap := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the environment led to %s%s", r.Host, r.URL.Path)
	}))
	t.Cleanup(trap.Close)
	for name, value := range map[string]string{
		"GOOGLE_CREDENTIALS": "canary", "GOOGLE_OAUTH_ACCESS_TOKEN": "canary",
		"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": "canary", "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT": "canary",
		"GOOGLE_CLOUD_QUOTA_PROJECT": "canary", "GOOGLE_CLOUD_PROJECT": "canary", "GOOGLE_CLOUD_UNIVERSE_DOMAIN": "canary.invalid",
		"GOOGLE_API_USE_MTLS_ENDPOINT": "always", "GOOGLE_API_USE_CLIENT_CERTIFICATE": "true", "EXPERIMENTAL_GOOGLE_API_USE_S2A": "true",
		"GOOGLE_API_GO_EXPERIMENTAL_DISABLE_NEW_AUTH_LIB": "true", "GOOGLE_SDK_GO_LOGGING_LEVEL": "debug",
		"HTTP_PROXY": trap.URL, "HTTPS_PROXY": trap.URL, "https_proxy": trap.URL, "http_proxy": trap.URL,
	} {
		t.Setenv(name, value)
	}
}

// With the environment switched off, what Google's libraries would read of it
// by themselves is not used.
func TestEnvironmentIsSwitchedOff(t *testing.T) {
	s := service()
	key, stored := kindtest.NewKey(t, build(t, s.Start(t), working()))
	home := t.TempDir()
	t.Setenv("HOME", home)
	canaries(t)
	users := service()
	users.Accepts = isUser
	watched := func(s *gcpkmstest.Service) http.RoundTripper {
		return nettest.Everywhere(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if text := fmt.Sprint(r.Header); strings.Contains(text, canary) {
				t.Errorf("the call tells of the environment: %s", text)
			}
			s.ServeHTTP(w, r)
		})).Transport
	}
	says := kindtest.OpenMistakes(t, "gcp_kms, without the environment")
	bare := working().With("access_token", nil)
	external := func(source string) attrs {
		return bare.With("credentials", `{"type":"external_account","audience":"a","subject_token_type":"urn:ietf:params:oauth:token-type:jwt","token_url":"https://sts.googleapis.com/v1/token","credential_source":`+source+`}`)
	}
	for name, c := range map[string]struct {
		attrs     attrs
		env       map[string]string
		transport http.RoundTripper
		refused   bool
	}{
		"token":               {attrs: working(), transport: watched(s)},
		"user":                {attrs: bare.With("credentials", user), transport: watched(users)},
		"impersonation":       {attrs: working().With("impersonate_service_account", "target@p.iam.gserviceaccount.com"), transport: watched(s)},
		"file of environment": {attrs: bare, env: map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "/canary"}, refused: true},
		"metadata":            {attrs: bare, env: map[string]string{"GCE_METADATA_HOST": "canary.invalid"}, refused: true},
		"authorities":         {attrs: working(), env: map[string]string{"SSL_CERT_FILE": "/canary"}, refused: true},
		"boundary": {attrs: bare.With("credentials", user), env: map[string]string{"GOOGLE_AUTH_TRUST_BOUNDARY_ENABLED": "true"},
			refused: true},
		"aws": {attrs: external(`{"environment_id":"aws1","regional_cred_verification_url":"https://sts.{region}.amazonaws.com"}`),
			env: map[string]string{"AWS_REGION": "canary", "AWS_ACCESS_KEY_ID": "canary", "AWS_SECRET_ACCESS_KEY": "canary"}, refused: true},
		"program": {attrs: external(`{"executable":{"command":"touch ` + home + `/canary"}}`),
			env: map[string]string{"GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES": "1"}, refused: true},
		"certificate":       {attrs: external(`{"certificate":{"use_default_certificate_config":true}}`), refused: true},
		"distributed cloud": {attrs: bare.With("credentials", `{"type":"gdch_service_account"}`), refused: true},
		"within":            {attrs: bare.With("credentials", `{"type":"impersonated_service_account","source_credentials":{"type":"external_account","credential_source":{"environment_id":"aws1"}}}`), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "authorities" && (runtime.GOOS == "windows" || runtime.GOOS == "darwin") {
				t.Skip("on this system, Go reads no SSL_CERT_FILE")
			}
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			block := blockOf(t, s)
			if c.transport != nil {
				block = gcpkms.BlockWith(gcpkms.Options{Transport: c.transport})
			}
			got, err := kindtest.Build(t, block, c.attrs, nil).Key(t.Context(), nil, stored)
			switch {
			case c.refused:
				if says.Error(t, name, err); errors.Is(err, driver.ErrNoKey) {
					t.Errorf("got %v", err)
				}
			case err != nil || string(got) != string(key):
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(home, "canary")); err == nil {
		t.Error("the program ran")
	}
	google.Requests()

	// What gcloud keeps in the user's home is no environment.
	dir := filepath.Join(home, ".config", "gcloud")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "application_default_credentials.json"), []byte(user), 0o600); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		for mode, lookup := range map[string]attr.LookupEnv{"off": nil, "on": func(string) (string, bool) { return "", false }} {
			if got, err := buildWith(t, users.Start(t), bare, lookup).Key(t.Context(), nil, stored); err != nil || string(got) != string(key) {
				t.Errorf("%s: %v", mode, err)
			}
		}
	}
	google.Requests()
}

// Keys are sent to Google's own cloud alone: variables lead them nowhere else, and
// credentials of another cloud are an error before anything is sent.
//
// Promise: Where secrets go
func TestAnotherUniverse(t *testing.T) {
	_, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	t.Setenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN", "evil.example")
	s := service()
	var hosts []string
	transport := nettest.Everywhere(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hosts = append(hosts, r.Host)
		s.ServeHTTP(w, r)
	})).Transport
	if _, err := build(t, transport, working()).Key(t.Context(), nil, stored); err != nil || !slices.Equal(hosts, []string{gcpkmstest.Host}) {
		t.Errorf("got %v after asking %q", err, hosts)
	}
	other := working().With("access_token", nil, "credentials", strings.Replace(user, "{", `{"universe_domain":"evil.example",`, 1))
	_, err := build(t, transport, other).Key(t.Context(), nil, stored)
	kindtest.OpenMistakes(t, "gcpkms, another universe").Error(t, "credentials", err)
	if got := google.Requests(); len(got) > 0 || len(hosts) != 1 {
		t.Errorf("asked %q and %q", got, hosts)
	}
}

// The project that pays may be one of the environment, which is harmless.
func TestQuotaProject(t *testing.T) {
	s := service()
	_, stored := kindtest.NewKey(t, build(t, s.Start(t), working()))
	t.Setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "pays")
	var project string
	transport := nettest.Everywhere(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		project = r.Header.Get("X-Goog-User-Project")
		s.ServeHTTP(w, r)
	})).Transport
	if _, err := build(t, transport, working()).Key(t.Context(), nil, stored); err != nil || project != "pays" {
		t.Errorf("got %v, for the project %q", err, project)
	}
}

// A program that gives tokens gets none of our secrets.
func TestProgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	_, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	script := filepath.Join(dir, "program")
	output := filepath.Join(dir, "output")
	write := func(path, content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	answer := `{"version":1,"success":true,"token_type":"urn:ietf:params:oauth:token-type:id_token","id_token":"program-token","expiration_time":4102444800}`
	write(script, "#!/bin/sh\nenv >"+dir+"/env\n[ \"$1\" = fail ] && { echo "+
		"'{\"version\":1,\"success\":false,\"code\":\"canary\",\"message\":\"canary\"}'; exit 0; }\n[ \"$1\" = exit ] && { echo canary >&2; "+
		"exit 1; }\necho '"+answer+"'\n")
	document := func(kv ...string) string {
		executable := map[string]any{"command": script}
		for i := 0; i < len(kv); i += 2 {
			executable[kv[i]] = kv[i+1]
		}
		b, err := json.Marshal(map[string]any{
			"type": "external_account", "audience": "//iam.googleapis.com/audience",
			"subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
			"token_url":          "https://sts.googleapis.com/v1/token", "credential_source": map[string]any{"executable": executable},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	users := service()
	users.Accepts = isUser
	transport := users.Start(t)
	bare := working().With("access_token", nil)
	if _, err := build(t, transport, bare.With("credentials", document())).Key(t.Context(), nil, stored); err == nil {
		t.Error("a program ran without being allowed to")
	}
	t.Setenv("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", "1")
	for _, name := range []string{"TF_ENCRYPTION", "TF_VAR_passphrase", "TF_HTTP_PASSWORD", "GIT_PASSWORD", "STATE_PASSPHRASE"} {
		t.Setenv(name, canary)
	}
	adc := filepath.Join(dir, "adc.json")
	write(adc, document("output_file", output))
	for name, c := range map[string]struct{ attrs, environment string }{
		"configured":         {document("output_file", output), ""},
		"of the environment": {"", adc},
	} {
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", c.environment)
		a := bare
		if c.attrs != "" {
			a = bare.With("credentials", c.attrs)
		}
		if _, err := build(t, transport, a).Key(t.Context(), nil, stored); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		env, err := os.ReadFile(filepath.Join(dir, "env"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"PATH=", "GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE=//iam.googleapis.com/audience\n",
			"GOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE=0\n", "GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE=" + output + "\n"} {
			if text := string(env); strings.Contains(text, canary) || !strings.Contains(text, want) {
				t.Errorf("%s: the program saw %s", name, text)
			}
		}
		os.Remove(filepath.Join(dir, "env"))
	}
	// A token that is still valid spares the run.
	write(output, answer)
	if _, err := build(t, transport, bare.With("credentials", document("output_file", output))).Key(t.Context(), nil, stored); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "env")); err == nil {
		t.Error("the program ran for a token that was there")
	}
	write(output, strings.Replace(answer, "4102444800", "1", 1))
	says := kindtest.OpenMistakes(t, "gcp_kms, a program")
	for _, command := range []string{script + " fail", script + " exit", "", "/nonexistent/canary"} {
		_, err := build(t, transport, bare.With("credentials", document("command", command, "output_file", output))).Key(t.Context(), nil, stored)
		if says.Error(t, fmt.Sprintf("%q", strings.TrimPrefix(command, script)), err); errors.Is(err, driver.ErrNoKey) {
			t.Errorf("%q: %v", command, err)
		}
	}
	impersonated := `{"type":"impersonated_service_account","service_account_impersonation_url":"https://iamcredentials.googleapis.com/x","source_credentials":` + document() + `}`
	_, err := build(t, transport, bare.With("credentials", impersonated)).Key(t.Context(), nil, stored)
	says.Error(t, "within other credentials", err)
	google.Requests()
}

func TestProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	cloudtest.CheckProxies(t, "HTTPS_PROXY", "https_proxy")
}

// TestBehindProxy is run by TestProxyOfTheEnvironment.
func TestBehindProxy(t *testing.T) {
	lookup := kindtest.BehindProxy(t)
	p := buildWith(t, nil, working(), lookup)
	gcpkms.SetPatience(p, 20*time.Second)
	if _, err := p.Key(t.Context(), nil, []byte(`{"ciphertext":"AAAA"}`)); err == nil {
		t.Error("a call with a made-up token was answered")
	}
}
