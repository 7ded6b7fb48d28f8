package awskms_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// canaries sets all that the SDK would heed of the environment. It leads to a
// server that nobody may ask.
func canaries(t *testing.T) {
	t.Helper()
	trap := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the environment led to %s%s", r.Host, r.URL.Path)
	}))
	t.Cleanup(trap.Close)
	profiles := write(t, "[default]\naws_access_key_id = AKIACANARY\naws_secret_access_key = canary\nendpoint_url = "+trap.URL+
		"\n[profile canary]\naws_access_key_id = AKIACANARY\naws_secret_access_key = canary\n")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIACANARY", "AWS_SECRET_ACCESS_KEY": "canary", "AWS_SESSION_TOKEN": "canary",
		"AWS_PROFILE": "canary", "AWS_DEFAULT_PROFILE": "canary", "AWS_CONFIG_FILE": profiles, "AWS_SHARED_CONFIG_FILE": profiles,
		"AWS_SHARED_CREDENTIALS_FILE": profiles,
		"AWS_REGION":                  "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
		"AWS_ENDPOINT_URL": trap.URL, "AWS_ENDPOINT_URL_KMS": trap.URL, "AWS_ENDPOINT_URL_STS": trap.URL,
		"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
		"AWS_USE_FIPS_ENDPOINT":               "true", "AWS_USE_DUALSTACK_ENDPOINT": "true",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": trap.URL, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "canary",
		"AWS_EC2_METADATA_SERVICE_ENDPOINT": trap.URL, "AWS_EC2_METADATA_DISABLED": "true", "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE": "canary",
		"AWS_ROLE_ARN": "arn:aws:iam::1:role/canary", "AWS_WEB_IDENTITY_TOKEN": "canary", "AWS_WEB_IDENTITY_TOKEN_FILE": profiles,
		"AWS_ROLE_SESSION_NAME": "canary",
		"AWS_CA_BUNDLE":         "/nonexistent", "AWS_RETRY_MODE": "canary", "AWS_MAX_ATTEMPTS": "canary", "AWS_DEFAULTS_MODE": "canary",
		"AWS_SDK_UA_APP_ID": "canary",
		"AWS_EXECUTION_ENV": "canary", "AWS_LAMBDA_FUNCTION_NAME": "canary", "_X_AMZN_TRACE_ID": "canary",
		"HTTP_PROXY": trap.URL, "HTTPS_PROXY": trap.URL, "http_proxy": trap.URL, "https_proxy": trap.URL, "NO_PROXY": "", "no_proxy": "",
	} {
		t.Setenv(name, value)
	}
}

// seen is a server that looks at the header of requests before it passes them
// on.
func seen(t *testing.T, server http.Handler) string {
	t.Helper()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text := fmt.Sprint(r.Header); strings.Contains(strings.ToLower(text), "canary") {
			t.Errorf("the request tells of the environment: %s", text)
		}
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// With the environment switched off, nothing of it is used, neither by us nor
// by the SDK: the arguments, the shared files and the instance are left.
//
// Promise: use_environment = false (AWS, Azure, Google)
func TestEnvironmentIsSwitchedOff(t *testing.T) {
	server, sts := standard(t), awskmstest.NewSTS(t)
	metadata, _ := instanceMetadata(t, "token")
	key, stored := wrapped(t, server, static())
	canaries(t)
	token := write(t, "token-of-file")
	profiles := write(t, `[default]
endpoint_url = `+seen(t, server)+`
services = here
[profile team]
aws_access_key_id = AKIATEAM
aws_secret_access_key = secret
services = here
[profile chained]
role_arn = `+reader+`
source_profile = team
services = here
external_id = x
duration_seconds = 1200
[profile web]
role_arn = `+reader+`
web_identity_token_file = `+token+`
services = here
[profile instance]
role_arn = `+reader+`
credential_source = Ec2InstanceMetadata
services = here
[profile elsewhere]
role_arn = `+reader+`
credential_source = Environment
[profile container]
role_arn = `+reader+`
credential_source = EcsContainer
[profile browser]
sso_start_url = https://example.com/start
sso_region = eu-west-1
sso_account_id = 1
sso_role_name = reader
[profile device]
role_arn = `+reader+`
source_profile = team
mfa_serial = arn:aws:iam::1:mfa/me
[services here]
kms =
  endpoint_url = `+seen(t, server)+`
sts =
  endpoint_url = `+sts.URL+`
`)
	says := kindtest.OpenMistakes(t, "aws_kms, profiles")
	files := anonymous().With("shared_config_files", []string{profiles}).With("ec2_metadata_service_endpoint", metadata)
	for name, c := range map[string]struct {
		attrs attrs
		key   string // the access key that signs; "" if there is none
	}{
		"access key":           {static().With("shared_config_files", []string{profiles}), "AKIASTATIC"},
		"profile":              {files.With("profile", "team"), "AKIATEAM"},
		"profile with a role":  {files.With("profile", "chained"), "ASIAAssumeRole"},
		"role of a token file": {files.With("profile", "web"), "ASIAAssumeRoleWithWebIdentity"},
		"instance":             {files, "ASIAINSTANCE"},
		"role of the instance": {files.With("profile", "instance"), "ASIAAssumeRole"},
		"role":                 {files.With("profile", "team").With("assume_role", attrs{}.With("role_arn", reader)), "ASIAAssumeRole"},
		"web identity": {files.With("profile", "team").With("assume_role_with_web_identity",
			attrs{}.With("role_arn", reader).With("web_identity_token", "token")), "ASIAAssumeRoleWithWebIdentity"},
		"instance left alone": {files.With("skip_metadata_api_check", true), ""},
		"named environment":   {files.With("profile", "elsewhere"), ""},
		"named container":     {files.With("profile", "container"), ""},
		"browser":             {files.With("profile", "browser"), ""},
		"device":              {files.With("profile", "device"), ""},
		"no such profile":     {files.With("profile", "another"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			server.Requests()
			p, err := build(t, c.attrs, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Key(t.Context(), nil, stored)
			requests := server.Requests()
			if c.key == "" {
				if says.Error(t, name, err); errors.Is(err, driver.ErrNoKey) || len(requests) > 0 {
					t.Errorf("got %v after %v", err, requests)
				}
				return
			}
			if err != nil || !bytes.Equal(got, key) {
				t.Fatalf("the key did not come back: %v", err)
			}
			if r := requests[0]; len(requests) != 1 || r.AccessKey != c.key || r.Region != "eu-west-1" {
				t.Errorf("got requests %+v", requests)
			}
		})
	}
	if _, err := build(t, static().With("region", nil), nil); err == nil {
		t.Error("the region of the environment is read")
	}
	for host, a := range map[string]attrs{
		"kms.eu-west-1.amazonaws.com":      static(),
		"kms.eu-west-1.api.aws":            static().With("use_dualstack_endpoint", true),
		"kms-fips.eu-west-1.amazonaws.com": static().With("use_fips_endpoint", true),
	} {
		refusing := &proxy{}
		front := httptest.NewServer(refusing)
		t.Cleanup(front.Close)
		p, err := build(t, a.With("max_retries", 1).With("https_proxy", front.URL).With("shared_config_files", []string{write(t, "")}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Key(t.Context(), nil, stored); err == nil || refusing.take() != "CONNECT "+host+":443" {
			t.Errorf("%s was not asked: %v", host, err)
		}
	}
}

// The same settings heed the environment where it is on, so that the test above
// can fail.
func TestEnvironmentIsSwitchedOn(t *testing.T) {
	server := standard(t)
	_, stored := wrapped(t, server, static())
	for name, file := range map[string]string{"AWS_SHARED_CONFIG_FILE": "", "AWS_CONFIG_FILE": "", "AWS_SHARED_CREDENTIALS_FILE": ""} {
		t.Run(name, func(t *testing.T) {
			file = write(t, "[default]\naws_access_key_id = AKIAFILE\naws_secret_access_key = canary\n")
			t.Setenv("AWS_CONFIG_FILE", os.DevNull)
			t.Setenv(name, file)
			if _, err := provider(t, anonymous()).Key(t.Context(), nil, stored); err != nil {
				t.Fatal(err)
			}
			if r := server.Requests(); len(r) != 1 || r[0].AccessKey != "AKIAFILE" {
				t.Errorf("got requests %+v", r)
			}
		})
	}
}

// A program that a profile names gets none of our secrets, and its own settings
// only where the environment is on.
func TestEnvironmentOfPrograms(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	server, sts := standard(t), awskmstest.NewSTS(t)
	key, stored := wrapped(t, server, static())
	saw := write(t, "")
	program := write(t, "env >'"+saw+"'\necho '{\"Version\":1,\"AccessKeyId\":\"AKIAPROGRAM\",\"SecretAccessKey\":\"canary\","+
		"\"SessionToken\":\"canary\"}'\n")
	files := anonymous().With("shared_config_files", []string{write(t, `[default]
credential_process = sh "`+program+`"
endpoint_url = `+server.URL+`
[profile role]
role_arn = `+reader+`
source_profile = default
endpoint_url = `+server.URL+`
`)}).With("endpoints", attrs{}.With("sts", sts.URL))
	for _, name := range []string{"TF_ENCRYPTION", "TF_VAR_passphrase", "TF_HTTP_PASSWORD", "GIT_PASSWORD", "STATE_PASSPHRASE", "TOFU_X"} {
		t.Setenv(name, "canary")
	}
	t.Setenv("VENDOR_SETTING", "of-the-user")
	for name, c := range map[string]struct {
		attrs  attrs
		lookup attr.LookupEnv
		key    string
	}{
		"on":             {files, os.LookupEnv, "AKIAPROGRAM"},
		"off":            {files, nil, "AKIAPROGRAM"},
		"role, on":       {files.With("profile", "role"), os.LookupEnv, "ASIAAssumeRole"},
		"role, off":      {files.With("profile", "role"), nil, "ASIAAssumeRole"},
		"of AWS_PROFILE": {files, func(name string) (string, bool) { return os.LookupEnv(name) }, "ASIAAssumeRole"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "of AWS_PROFILE" {
				t.Setenv("AWS_PROFILE", "role")
			}
			if err := os.WriteFile(saw, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := build(t, placed(c.attrs), c.lookup)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.Key(t.Context(), nil, stored); err != nil || !bytes.Equal(got, key) {
				t.Fatalf("the key did not come back: %v", err)
			}
			if r := server.Requests(); len(r) != 1 || r[0].AccessKey != c.key {
				t.Errorf("got requests %+v", r)
			}
			env, err := os.ReadFile(saw)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(env); strings.Contains(text, "canary") || !strings.Contains(text, "PATH=") ||
				strings.Contains(text, "VENDOR_SETTING=") != (c.lookup != nil) {
				t.Errorf("the program saw %s", text)
			}
		})
	}

	// Keys in the environment go before the program, as the SDK has it.
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary")
	if _, err := provider(t, files).Key(t.Context(), nil, stored); err != nil {
		t.Fatal(err)
	}
	if r := server.Requests(); len(r) != 1 || r[0].AccessKey != "AKIAENV" {
		t.Errorf("got requests %+v", r)
	}
}

// instanceMetadata serves the role of an EC2 instance, with this session token,
// and counts the requests.
func instanceMetadata(t *testing.T, token string) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch {
		case strings.HasSuffix(r.URL.Path, "/api/token"):
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
			fmt.Fprint(w, "token")
		case strings.HasSuffix(r.URL.Path, "/security-credentials/"):
			fmt.Fprint(w, "role")
		case strings.HasSuffix(r.URL.Path, "/security-credentials/role"):
			fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":"ASIAINSTANCE","SecretAccessKey":"canary","Token":%q,"Expiration":%q}`,
				token, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}
