package awskms_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

const reader = "arn:aws:iam::111122223333:role/reader"

// Each way to credentials, and what it may cost: nothing, or one call of STS.
//
// Promise: Where secrets go
func TestCredentials(t *testing.T) {
	server, sts := standard(t), awskmstest.NewSTS(t)
	key, stored := wrapped(t, server, static())
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	profiles := write(t, `[default]
aws_access_key_id = AKIADEFAULT
aws_secret_access_key = canary-default
[profile team]
aws_access_key_id = AKIATEAM
aws_secret_access_key = canary-team
[profile chained]
role_arn = `+reader+`
source_profile = team
`)
	token := write(t, "canary-token-of-file")
	role := attrs{}.With("role_arn", reader)
	environment := map[string]string{"AWS_ACCESS_KEY_ID": "AKIAENV", "AWS_SECRET_ACCESS_KEY": "canary-env",
		"AWS_SESSION_TOKEN": "canary-session"}
	files := anonymous().With("shared_config_files", []string{profiles})
	for name, c := range map[string]struct {
		attrs attrs
		env   map[string]string
		key   string // the access key that signs
		calls string // of STS
	}{
		"access key":                  {static(), nil, "AKIASTATIC", ""},
		"access key over environment": {static(), environment, "AKIASTATIC", ""},
		"access key over profile": {static().With("profile", "team").With("shared_config_files", []string{profiles}), nil, "AKIASTATIC",
			""},
		"environment":              {anonymous(), environment, "AKIAENV", ""},
		"default profile":          {files, nil, "AKIADEFAULT", ""},
		"profile":                  {files.With("profile", "team"), nil, "AKIATEAM", ""},
		"profile over environment": {files.With("profile", "team"), environment, "AKIATEAM", ""},
		"profile of environment":   {files, map[string]string{"AWS_PROFILE": "team"}, "AKIATEAM", ""},
		"file of environment":      {anonymous(), map[string]string{"AWS_CONFIG_FILE": profiles}, "AKIADEFAULT", ""},
		"profile with a role":      {files.With("profile", "chained"), nil, "ASIAAssumeRole", "AssumeRole by AKIATEAM"},
		"role":                     {static().With("assume_role", role), nil, "ASIAAssumeRole", "AssumeRole by AKIASTATIC"},
		"role over a profile":      {files.With("assume_role", role), nil, "ASIAAssumeRole", "AssumeRole by AKIADEFAULT"},
		"web identity": {anonymous().With("assume_role_with_web_identity", role.With("web_identity_token", "canary-token")),
			nil, "ASIAAssumeRoleWithWebIdentity", "AssumeRoleWithWebIdentity by "},
		"web identity of a file": {anonymous().With("assume_role_with_web_identity", role.With("web_identity_token_file", token)), nil,
			"ASIAAssumeRoleWithWebIdentity", "AssumeRoleWithWebIdentity by "},
		"web identity over environment": {anonymous().With("assume_role_with_web_identity", role.With("web_identity_token", "canary-token")),
			environment, "ASIAAssumeRoleWithWebIdentity", "AssumeRoleWithWebIdentity by "},
		"web identity with environment": {anonymous().With("assume_role_with_web_identity", attrs{}.With("duration", "15m")),
			map[string]string{"AWS_ROLE_ARN": reader, "AWS_WEB_IDENTITY_TOKEN_FILE": token}, "ASIAAssumeRoleWithWebIdentity",
			"AssumeRoleWithWebIdentity by "},
		"web identity of environment": {anonymous(), map[string]string{"AWS_ROLE_ARN": reader, "AWS_WEB_IDENTITY_TOKEN_FILE": token},
			"ASIAAssumeRoleWithWebIdentity", "AssumeRoleWithWebIdentity by "},
		"web identity, then role": {anonymous().With("assume_role_with_web_identity",
			role.With("web_identity_token", "canary-token")).With("assume_role", role), nil, "ASIAAssumeRole",
			"AssumeRoleWithWebIdentity by ; AssumeRole by ASIAAssumeRoleWithWebIdentity"},
		"access key over a web identity": {static().With("assume_role_with_web_identity", role.With("web_identity_token", "canary-token")),
			nil, "AKIASTATIC", ""},
		"allowed account": {static().With("allowed_account_ids", []string{"1", "111122223333"}), nil, "AKIASTATIC",
			"GetCallerIdentity by AKIASTATIC"},
		"not a forbidden account": {static().With("forbidden_account_ids", []string{"1"}), nil, "AKIASTATIC",
			"GetCallerIdentity by AKIASTATIC"},
		"no validation, whatever is asked": {static().With("skip_credentials_validation", false).With("skip_requesting_account_id", false), nil,
			"AKIASTATIC", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			p := provider(t, c.attrs)
			for range 2 {
				if got, err := p.Key(t.Context(), nil, stored); err != nil || !bytes.Equal(got, key) {
					t.Errorf("the key did not come back: %v", err)
				}
			}
			for _, r := range server.Requests() {
				if r.AccessKey != c.key || r.Operation != "Decrypt" {
					t.Errorf("got request %+v", r)
				}
			}
			var calls []string
			for _, call := range sts.Requests() {
				calls = append(calls, call.Action+" by "+call.AccessKey)
			}
			if got := strings.Join(calls, "; "); got != c.calls {
				t.Errorf("got calls of STS %q", got)
			}
		})
	}
}

// Everything that the block of a role says reaches STS.
func TestAssumeRole(t *testing.T) {
	server, sts := standard(t), awskmstest.NewSTS(t)
	_, stored := wrapped(t, server, static())
	role := attrs{}.With("role_arn", reader).With("session_name", "s").With("external_id", "e").With("duration", "20m").
		With("policy", "{}").With("policy_arns", []string{"arn:aws:iam::aws:policy/ReadOnlyAccess"}).With("transitive_tag_keys", []string{"team"})
	role["tags"] = pairs("team", "x")
	// The endpoint without a scheme would be https, so it is tried with one.
	a := static().With("endpoints", attrs{}.With("sts", sts.URL)).With("sts_region", "us-east-1").With("assume_role", role)
	if _, err := provider(t, a).Key(t.Context(), nil, stored); err != nil {
		t.Fatal(err)
	}
	call := sts.Requests()[0]
	for field, want := range map[string]string{
		"RoleArn": reader, "RoleSessionName": "s", "ExternalId": "e", "DurationSeconds": "1200", "Policy": "{}",
		"PolicyArns.member.1.arn": "arn:aws:iam::aws:policy/ReadOnlyAccess", "TransitiveTagKeys.member.1": "team",
		"Tags.member.1.Key": "team", "Tags.member.1.Value": "x",
	} {
		if got := call.Form.Get(field); got != want {
			t.Errorf("%s = %q", field, got)
		}
	}
	if call.Region != "us-east-1" {
		t.Errorf("signed for %q", call.Region)
	}
	if r := server.Requests(); r[0].Token != "session-of-AssumeRole" || r[0].Region != "eu-west-1" {
		t.Errorf("got request %+v", r[0])
	}
}

// The configured STS also serves the roles of profiles.
func TestEndpointOfProfilesWithRoles(t *testing.T) {
	server, sts := standard(t), awskmstest.NewSTS(t)
	_, stored := wrapped(t, server, static())
	profiles := write(t, "[profile team]\naws_access_key_id = AKIATEAM\naws_secret_access_key = canary\n[profile chained]\nrole_arn = "+
		reader+"\nsource_profile = team\n")
	a := anonymous().With("endpoints", attrs{}.With("sts", sts.URL).With("iam", "iam.invalid")).With("shared_config_files",
		[]string{profiles}).With("profile", "chained")
	if _, err := provider(t, a).Key(t.Context(), nil, stored); err != nil {
		t.Error(err)
	}
	if n := len(sts.Requests()); n != 1 {
		t.Errorf("the role was assumed %d times", n)
	}
}

// What goes wrong on the way to credentials is final, and KMS is not asked.
func TestNoCredentials(t *testing.T) {
	server, sts := standard(t), awskmstest.NewSTS(t)
	_, stored := wrapped(t, server, static())
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	t.Setenv("AWS_PROFILE", "")
	sts.Deny("AccessDenied")
	role := attrs{}.With("role_arn", reader)
	failing := write(t, "[profile x]\ncredential_process = sh -c 'echo canary; exit 1'\n")
	broken := write(t, "[profile x]\nrole_arn = canary\nsource_profile = gone\n")
	wrong := write(t, "[profile x]\nretry_mode = canary\n")
	says := kindtest.OpenMistakes(t, "aws_kms, no credentials")
	for name, a := range map[string]attrs{
		"none":            anonymous(),
		"no such profile": anonymous().With("profile", "none"),
		"broken profile":  anonymous().With("profile", "x").With("shared_config_files", []string{broken}),
		"broken setting":  anonymous().With("profile", "x").With("shared_config_files", []string{wrong}),
		"failing program": anonymous().With("profile", "x").With("shared_config_files", []string{failing}),
		"role denied":     static().With("assume_role", role),
		"token denied":    anonymous().With("assume_role_with_web_identity", role.With("web_identity_token", "canary-token")),
		"no token file":   anonymous().With("assume_role_with_web_identity", role.With("web_identity_token_file", "/nonexistent/token")),
		"identity denied": static().With("allowed_account_ids", []string{"1"}),
		"role out of reach": static().With("assume_role", role).With("endpoints", attrs{}.With("sts", "http://127.0.0.1:1")).With("max_retries",
			1),
	} {
		_, err := provider(t, a).Key(t.Context(), nil, stored)
		if says.Error(t, name, err); errors.Is(err, driver.ErrNoKey) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	sts.Deny("")
	for name, a := range map[string]attrs{
		"an account that is not allowed": static().With("allowed_account_ids", []string{"1"}),
		"an account that is forbidden":   static().With("forbidden_account_ids", []string{"1", "111122223333"}),
	} {
		_, err := provider(t, a).Key(t.Context(), nil, stored)
		if says.Error(t, name, err); errors.Is(err, driver.ErrNoKey) {
			t.Errorf("got %v", err)
		}
	}
	if got := server.Requests(); len(got) != 0 {
		t.Errorf("got requests %+v", got)
	}
}

// The environment that the table names is read by the core alone: switched off
// there, it is off.
func TestTableWithoutEnvironment(t *testing.T) {
	server := standard(t)
	_, stored := wrapped(t, server, static())
	t.Setenv("AWS_REGION", "us-east-1")
	says := kindtest.OpenMistakes(t, "aws_kms, without the environment")
	_, err := build(t, static().With("region", nil), nil)
	says.Error(t, "no region", err)
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	secure := nettest.Start(t, server)
	t.Setenv("AWS_CA_BUNDLE", write(t, nettest.PEM(secure.Certificate())))
	t.Setenv("AWS_ENDPOINT_URL_KMS", secure.URL)
	p, err := build(t, static().With("max_retries", 1).With("shared_config_files", []string{endpoints(t, secure.URL)}), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Key(t.Context(), nil, stored)
	says.Error(t, "the authority of the environment", err)
	_, err = build(t, placed(static()), os.LookupEnv)
	says.Error(t, "the authority of the environment, beside a key of the code", err)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIASTATIC")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
	if _, err := provider(t, anonymous().With("max_retries", 1)).Key(t.Context(), nil, stored); err != nil {
		t.Errorf("the CA of the environment, switched on: %v", err)
	}
	for _, r := range server.Requests() {
		if r.Region != "eu-west-1" {
			t.Errorf("got request %+v", r)
		}
	}
}

func TestTLS(t *testing.T) {
	server := standard(t)
	_, stored := wrapped(t, server, static())
	secure := nettest.Start(t, server)
	t.Setenv("AWS_ENDPOINT_URL_KMS", secure.URL)
	once := static().With("max_retries", 1)
	for _, a := range []attrs{once.With("custom_ca_bundle", write(t, nettest.PEM(secure.Certificate()))), once.With("insecure", true)} {
		if _, err := provider(t, a).Key(t.Context(), nil, stored); err != nil {
			t.Error(err)
		}
	}
	says := kindtest.OpenMistakes(t, "aws_kms, authorities")
	for name, a := range map[string]attrs{
		"of the system":  once,
		"no certificate": once.With("custom_ca_bundle", write(t, "canary")),
		"no file":        once.With("custom_ca_bundle", "/nonexistent/ca.pem"),
	} {
		_, err := provider(t, a).Key(t.Context(), nil, stored)
		if says.Error(t, name, err); errors.Is(err, driver.ErrNoKey) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// proxy is an HTTP proxy that connects every host to the same server, or
// refuses.
type proxy struct {
	to string

	mu    sync.Mutex
	hosts []string
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.hosts = append(p.hosts, r.Method+" "+r.Host)
	p.mu.Unlock()
	if p.to == "" {
		w.WriteHeader(403)
		return
	}
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(502)
		return
	}
	defer out.Close()
	in, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	fmt.Fprint(in, "HTTP/1.1 200 OK\r\n\r\n")
	go io.Copy(out, in)
	io.Copy(in, out)
}

func (p *proxy) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := strings.Join(p.hosts, " ")
	p.hosts = nil
	return got
}

func TestProxy(t *testing.T) {
	server := standard(t)
	_, stored := wrapped(t, server, static())
	secure := nettest.Start(t, server)
	p := &proxy{to: secure.Listener.Addr().String()}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	t.Setenv("AWS_ENDPOINT_URL_KMS", "https://example.com") // the name in the certificate
	trusting := static().With("max_retries", 1).With("custom_ca_bundle", write(t, nettest.PEM(secure.Certificate())))
	for name, c := range map[string]struct {
		attrs attrs
		env   string
	}{
		"https_proxy":                {trusting.With("https_proxy", front.URL), ""},
		"http_proxy alone":           {trusting.With("http_proxy", front.URL), ""},
		"of the environment":         {trusting, front.URL},
		"https_proxy before another": {trusting.With("http_proxy", "http://127.0.0.1:1").With("https_proxy", front.URL), "http://127.0.0.1:2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HTTPS_PROXY", c.env)
			if _, err := provider(t, c.attrs).Key(t.Context(), nil, stored); err != nil {
				t.Error(err)
			}
			if got := p.take(); got != "CONNECT example.com:443" {
				t.Errorf("the proxy saw %q", got)
			}
		})
	}
	t.Setenv("AWS_ENDPOINT_URL_KMS", "https://kms.invalid")
	for name, a := range map[string]attrs{
		"no_proxy":          trusting.With("https_proxy", front.URL).With("no_proxy", ".invalid"),
		"empty https_proxy": trusting.With("http_proxy", front.URL).With("https_proxy", ""),
	} {
		_, err := provider(t, a).Key(t.Context(), nil, stored)
		if got := p.take(); err == nil || got != "" {
			t.Errorf("%s: the proxy saw %q, %v", name, got, err)
		}
	}
}

// Where requests go without an endpoint in the environment.
//
// Promise: Where secrets go
func TestHosts(t *testing.T) {
	server := standard(t)
	_, stored := wrapped(t, server, static())
	os.Unsetenv("AWS_ENDPOINT_URL_KMS")
	p := &proxy{}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	a := static().With("max_retries", 1).With("https_proxy", strings.Replace(front.URL, "http://", "http://user:canary@", 1))
	for host, a := range map[string]attrs{
		"kms.eu-west-1.amazonaws.com":      a,
		"kms.eu-west-1.api.aws":            a.With("use_dualstack_endpoint", true),
		"kms-fips.us-east-1.amazonaws.com": a.With("use_fips_endpoint", true).With("region", "us-east-1"),
		"sts.eu-west-1.amazonaws.com":      a.With("assume_role", attrs{}.With("role_arn", reader)),
		"sts.us-west-2.amazonaws.com":      a.With("assume_role", attrs{}.With("role_arn", reader)).With("sts_region", "us-west-2"),
	} {
		_, err := provider(t, a).Key(t.Context(), nil, stored)
		if got := p.take(); got != "CONNECT "+host+":443" || err == nil || errors.Is(err, driver.ErrNoKey) {
			t.Errorf("the proxy saw %q, not %s: %v", got, host, err)
		}
		clean(t, err)
	}
}

// Whoever reads is told of a connection that others can listen to.
func TestWarning(t *testing.T) {
	_, stored := wrapped(t, standard(t), static())
	os.Unsetenv("AWS_ENDPOINT_URL_KMS")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary-env")
	front := httptest.NewServer(&proxy{})
	t.Cleanup(front.Close)
	says := kindtest.OpenMistakes(t, "awskms, warnings")
	at := func(url string) attrs { return static().With("endpoints", attrs{"kms": cty.StringVal(url)}) }
	for name, c := range map[string]struct {
		attrs attrs
		env   string // AWS_ENDPOINT_URL_KMS
		warns bool
	}{
		"AWS's own":    {attrs: static()},
		"another":      {attrs: at("https://kms.example.com")},
		"this machine": {attrs: at("http://127.0.0.1:4566").With("insecure", true)},
		"not verified": {attrs: static().With("insecure", true), warns: true},
		"without TLS":  {attrs: at("http://kms.example.com"), warns: true},
		"a variable":   {attrs: anonymous(), env: "http://kms.example.com", warns: true},
		"a file":       {attrs: static().With("shared_config_files", []string{endpoints(t, "http://kms.example.com")}), warns: true},
		"STS": {attrs: static().With("assume_role", attrs{}.With("role_arn", reader)).With("endpoints", pairs("sts", "http://sts.example.com")),
			warns: true},
	} {
		p, err := build(t, c.attrs.With("max_retries", 1).With("http_proxy", front.URL), func(name string) (string, bool) {
			return c.env, name == "AWS_ENDPOINT_URL_KMS"
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := p.Key(t.Context(), nil, stored); err == nil {
			t.Errorf("%s: the proxy let it through", name)
		}
		got := p.(driver.Warner).Warning()
		if (got != driver.Warning{}) != c.warns {
			t.Errorf("%s: got %q", name, got)
		}
		if c.warns {
			says.Check(t, name, got.Title+"\n"+got.Text)
		}
	}
}
