package s3

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// known is a server that takes several access keys, and which writes down whose
// it saw.
func known(t *testing.T, people ...string) (*objecttest.Server, string) {
	t.Helper()
	server := stored([]byte("{}"))
	server.Keys = append(server.Keys, keysOf(people...)...)
	return server, server.Serve(t)
}

// sts assumes any role, and says whose credentials are whose.
func sts(t *testing.T) (url string, calls func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action := r.PostFormValue("Action")
		mu.Lock()
		seen = append(seen, action)
		mu.Unlock()
		result := "<Account>111122223333</Account>"
		if action != "GetCallerIdentity" {
			result = "<Credentials><AccessKeyId>AKIAROLE</AccessKeyId><SecretAccessKey>canary-AKIAROLE</SecretAccessKey>" +
				"<SessionToken></SessionToken><Expiration>" +
				time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + "</Expiration></Credentials>"
		}
		fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult>%[2]s</%[1]sResult></%[1]sResponse>`,
			action, result) //nolint:gosec // the client is a test
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		got := seen
		seen = nil
		return got
	}
}

// Who asks, where the environment says something, too.
func TestWhoAsks(t *testing.T) {
	server, url := known(t, "ENV", "FILE", "TEAM", "ROLE")
	roles, calls := sts(t)
	profiles := file(t, "[default]\naws_access_key_id = AKIAFILE\naws_secret_access_key = canary-AKIAFILE\n[profile "+
		"team]\naws_access_key_id = AKIATEAM\naws_secret_access_key = canary-AKIATEAM\n"+
		"[profile job]\nrole_arn = arn:aws:iam::111122223333:role/reader\ncredential_source = Environment\n")
	keys := map[string]string{"AWS_ACCESS_KEY_ID": "AKIAENV", "AWS_SECRET_ACCESS_KEY": "canary-AKIAENV"}
	nobody := block(url).With("access_key", nil).With("secret_key", nil)
	named := func(b attrs) attrs { return b.With("name", "a") }
	role := objecttest.Strings().With("role_arn", "arn:aws:iam::111122223333:role/reader")
	endpoints := objecttest.Strings().With("s3", url).With("sts", roles)
	by := func(name string) attrs { return asks().With("credentials_name", name) }
	for name, c := range map[string]struct {
		env    map[string]string
		asks   attrs
		blocks []attrs
		key    string
		calls  int // of STS
	}{
		"no blocks":              {map[string]string{"AWS_ENDPOINT_URL_S3": url}, asks(), nil, "AKIAENV", 0},
		"no blocks, old name":    {map[string]string{"AWS_S3_ENDPOINT": url}, asks(), nil, "AKIAENV", 0},
		"no blocks, any service": {map[string]string{"AWS_ENDPOINT_URL": url}, asks(), nil, "AKIAENV", 0},
		"variable over a file": {map[string]string{"AWS_ENDPOINT_URL": url,
			"AWS_CONFIG_FILE": file(t, "[default]\nendpoint_url = http://127.0.0.1:1\n")}, asks(), nil, "AKIAENV", 0},
		"a file": {map[string]string{"AWS_CONFIG_FILE": file(t, "[default]\nendpoint_url = "+url+"\n")}, asks(), nil, "AKIAENV", 0},
		"without a scheme": {map[string]string{"AWS_ENDPOINT_URL_S3": url}, asks(),
			[]attrs{nobody.With("endpoints", objecttest.Strings().With("sts", "sts.invalid"))}, "AKIAENV", 0},
		"block": {nil, asks(), []attrs{block(url)}, "AKIATEST", 0},
		"block over a profile": {nil, asks(), []attrs{block(url).With("profile", "team").With("shared_config_files", []string{profiles})},
			"AKIATEST", 0},
		"block without identity": {nil, asks(), []attrs{nobody}, "AKIAENV", 0},
		"profile": {nil, asks(), []attrs{nobody.With("profile", "team").With("shared_config_files", []string{profiles})},
			"AKIATEAM", 0},
		"profile with the credentials of the environment": {nil, asks(), []attrs{nobody.With("profile", "job").With("shared_config_files",
			[]string{profiles}).With("endpoints", endpoints)}, "AKIAROLE", 1},
		"named block":           {nil, by("a"), []attrs{nobody, named(block(url))}, "AKIATEST", 0},
		"named, of environment": {nil, by("a"), []attrs{named(nobody)}, "AKIAENV", 0},
		"named, with a profile": {nil, by("a"), []attrs{named(nobody.With("profile", "team").With("shared_config_files", []string{profiles}))},
			"AKIATEAM", 0},
		"role": {nil, by("a"), []attrs{named(nobody.With("assume_role", role).With("endpoints", endpoints))}, "AKIAROLE", 1},
		"web identity": {nil, asks(), []attrs{nobody.With("assume_role_with_web_identity",
			role.With("web_identity_token", "canary")).With("endpoints", endpoints)}, "AKIAROLE", 1},
		"role, old name": {map[string]string{"AWS_STS_ENDPOINT": roles}, asks(), []attrs{nobody.With("assume_role", role)},
			"AKIAROLE", 1},
		"allowed account": {nil, asks(), []attrs{block(url).With("allowed_account_ids", []string{"111122223333"}).With("endpoints",
			endpoints)}, "AKIATEST", 1},
		"region of environment": {map[string]string{"AWS_REGION": "eu-west-1"}, asks().With("region", nil), []attrs{block(url)}, "AKIATEST", 0},
		"default region": {map[string]string{"AWS_DEFAULT_REGION": "eu-west-1"}, asks().With("region", nil), []attrs{block(url)},
			"AKIATEST", 0},
		"checks that are off": {nil, asks(), []attrs{block(url).With("skip_s3_checksum", true).With("skip_region_validation",
			true).With("skip_credentials_validation", true).
			With("skip_requesting_account_id", true).With("skip_metadata_api_check", true)}, "AKIATEST", 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variables := range []map[string]string{keys, c.env} {
				for k, v := range variables {
					t.Setenv(k, v)
				}
			}
			if _, err := read(t, c.asks, settings(os.LookupEnv, c.blocks...)); err != nil {
				t.Fatal(err)
			}
			if got := server.Requests(); len(got) != 1 || got[0].AccessKey != c.key {
				t.Errorf("got requests %+v", got)
			}
			if got := calls(); len(got) != c.calls {
				t.Errorf("STS was asked for %q", got)
			}
		})
	}
}

// Whoever reads is told of plain http to another machine that gives the credentials, whatever
// says where that is.
func TestSTSWithoutEncryption(t *testing.T) {
	_, url := known(t, "ENV", "ROLE")
	proxy, calls := sts(t)
	const exposed = "http://sts.example.com"
	nobody := block(url).With("access_key", nil).With("secret_key", nil).With("http_proxy", proxy)
	role := objecttest.Strings().With("role_arn", "arn:aws:iam::111122223333:role/reader")
	at := func(sts string) attrs { return objecttest.Strings().With("s3", url).With("sts", sts) }
	profiles := file(t, "[default]\nrole_arn = arn:aws:iam::111122223333:role/reader\ncredential_source = Environment\n"+
		"services = here\n[services here]\nsts =\n  endpoint_url = "+exposed+"\n")
	for name, c := range map[string]struct {
		block attrs
		sts   string // the variable
		want  int
	}{
		"argument":     {block: nobody.With("assume_role", role).With("endpoints", at(exposed)), want: 1},
		"this machine": {block: nobody.With("assume_role", role).With("endpoints", at(proxy))},
		"variable":     {block: nobody.With("assume_role", role), sts: exposed, want: 1},
		"a role in a file": {block: nobody.With("shared_config_files", []string{profiles}).With("profile", "default").
			With("endpoints", at(exposed)), want: 1},
		"an endpoint in a file": {block: nobody.With("shared_config_files", []string{profiles}).With("assume_role", role), want: 1},
		"an account":            {block: nobody.With("allowed_account_ids", []string{"111122223333"}).With("endpoints", at(exposed)), want: 1},
		"not called":            {block: nobody.With("endpoints", at(exposed))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "canary-AKIAENV")
			t.Setenv("AWS_ENDPOINT_URL_STS", c.sts)
			values, err := unstable.NewEntry("s3", table(), asks()).Decode(table(), os.LookupEnv)
			if err != nil {
				t.Fatal(err)
			}
			open := Kind().Start(settings(os.LookupEnv, c.block))
			for range 2 { // the second one has the client, and its keys
				state, err := open(source.Request{Values: values, Workspace: "default", MaxSize: 1 << 20})
				if err != nil {
					t.Fatal(err)
				}
				snap, err := state.Fetch(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(snap.Warnings) != c.want || c.want > 0 && snap.Warnings[0].Text != "The credentials were sent without encryption, because "+
					"the STS endpoint begins with http. Anyone on the network path can read them." {
					t.Errorf("got %q", snap.Warnings)
				}
			}
			if got := len(calls()); c.want > 0 && got == 0 {
				t.Error("STS was not called")
			}
		})
	}
}

// What goes wrong on the way to credentials is said, and S3 is not asked.
func TestNoCredentials(t *testing.T) {
	server, url := known(t)
	roles, _ := sts(t)
	nobody := block(url).With("access_key", nil).With("secret_key", nil)
	says := sourcetest.OpenMistakes(t, "s3, no credentials")
	for name, c := range map[string]struct {
		asks  attrs
		block attrs
	}{
		"none":            {asks(), nobody},
		"no such profile": {asks(), nobody.With("profile", "none")},
		"no such block":   {asks().With("credentials_name", "a"), nobody},
		"half a key":      {asks(), nobody.With("access_key", "AKIATEST")},
		"another account": {asks(), block(url).With("allowed_account_ids", []string{"1"}).With("endpoints",
			objecttest.Strings().With("s3", url).With("sts", roles))},
		"no token file": {asks(), nobody.With("assume_role_with_web_identity",
			objecttest.Strings().With("role_arn", "arn:aws:iam::1:role/r").With("web_identity_token_file", "/nonexistent/token"))},
		"no STS": {asks(), block(url).With("assume_role",
			objecttest.Strings().With("role_arn", "arn:aws:iam::1:role/r")).With("endpoints",
			objecttest.Strings().With("s3", url).With("sts", "http://127.0.0.1:1")).With("max_retries", 1)},
		"no authority":      {asks(), block(url).With("custom_ca_bundle", "/nonexistent/ca.pem")},
		"user in endpoint":  {asks(), block("https://canary:canary@example.com")},
		"query in endpoint": {asks(), block("https://example.com/?canary")},
		"odd endpoint":      {asks(), block("ftp://canary")},
		"odd proxy":         {asks(), block(url).With("https_proxy", "canary%zz")},
		"short key":         {asks(), block(url).With(customerKeyAttr, "canary")},
		"short key, base64": {asks(), block(url).With(customerKeyAttr, "Y2FuYXJ5")},
		"key without TLS":   {asks(), block(url).With(customerKeyAttr, customerKey(1))},
	} {
		_, err := read(t, c.asks, settings(nil, c.block))
		says.Error(t, name, err)
	}
	t.Setenv("HTTPS_PROXY", "canary%zz")
	_, err := read(t, asks().With("credentials_name", "a"), settings(os.LookupEnv, block(url).With("name", "a")))
	says.Error(t, "a wrong proxy of the environment", err)
	t.Setenv("HTTPS_PROXY", "")
	t.Setenv("AWS_SSE_CUSTOMER_KEY", "canary")
	_, err = read(t, asks(), settings(os.LookupEnv))
	says.Error(t, "a wrong key of the environment", err)
	if got := server.Requests(); len(got) > 0 {
		t.Errorf("got requests %+v", got)
	}
}

// trap is a server that nobody may ask.
func trap(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the environment led to %s%s", r.Host, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// canaries sets all that the SDK and the backend heed of the environment.
func canaries(t *testing.T) {
	t.Helper()
	to := trap(t)
	profiles := file(t, "[default]\naws_access_key_id = AKIACANARY\naws_secret_access_key = canary\nendpoint_url = "+to+
		"\n[profile canary]\naws_access_key_id = AKIACANARY\naws_secret_access_key = canary\n")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIACANARY", "AWS_SECRET_ACCESS_KEY": "canary", "AWS_SESSION_TOKEN": "canary",
		"AWS_PROFILE": "canary", "AWS_DEFAULT_PROFILE": "canary", "AWS_CONFIG_FILE": profiles, "AWS_SHARED_CONFIG_FILE": profiles,
		"AWS_SHARED_CREDENTIALS_FILE": profiles,
		"AWS_REGION":                  "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_SSE_CUSTOMER_KEY": customerKey(1),
		"AWS_ENDPOINT_URL": to, "AWS_ENDPOINT_URL_S3": to, "AWS_S3_ENDPOINT": to, "AWS_ENDPOINT_URL_STS": to, "AWS_STS_ENDPOINT": to,
		"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
		"AWS_USE_FIPS_ENDPOINT":               "true", "AWS_USE_DUALSTACK_ENDPOINT": "true", "AWS_S3_USE_ARN_REGION": "true",
		"AWS_S3_DISABLE_EXPRESS_SESSION_AUTH": "canary",
		"AWS_REQUEST_CHECKSUM_CALCULATION":    "canary", "AWS_RESPONSE_CHECKSUM_VALIDATION": "canary",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": to, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "canary",
		"AWS_EC2_METADATA_SERVICE_ENDPOINT": to, "AWS_EC2_METADATA_DISABLED": "true", "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE": "canary",
		"AWS_ROLE_ARN": "arn:aws:iam::1:role/canary", "AWS_WEB_IDENTITY_TOKEN": "canary", "AWS_WEB_IDENTITY_TOKEN_FILE": profiles,
		"AWS_ROLE_SESSION_NAME": "canary",
		"AWS_CA_BUNDLE":         "/nonexistent", "AWS_RETRY_MODE": "canary", "AWS_MAX_ATTEMPTS": "canary", "AWS_DEFAULTS_MODE": "canary",
		"AWS_SDK_UA_APP_ID": "canary",
		"AWS_EXECUTION_ENV": "canary", "AWS_LAMBDA_FUNCTION_NAME": "canary", "_X_AMZN_TRACE_ID": "canary",
		"HTTP_PROXY": to, "HTTPS_PROXY": to, "http_proxy": to, "https_proxy": to, "NO_PROXY": "", "no_proxy": "",
	} {
		t.Setenv(name, value)
	}
}

// With the environment switched off, nothing of it is used, neither by us nor
// by the SDK.
func TestEnvironmentIsSwitchedOff(t *testing.T) {
	server, url := known(t, "TEAM", "ROLE")
	roles, _ := sts(t)
	canaries(t)
	profiles := file(t, "[default]\nendpoint_url = "+url+"\n[profile team]\naws_access_key_id = AKIATEAM\naws_secret_access_key = "+
		"canary-AKIATEAM\nservices = here\n[profile chained]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = team\nservices = here\n"+
		"[services here]\ns3 =\n  endpoint_url = "+url+"\nsts =\n  endpoint_url = "+roles+"\n")
	files := objecttest.Strings().With("shared_config_files", []string{profiles}).With("shared_credentials_files",
		[]string{file(t, "")}).With("use_path_style", true)
	for name, c := range map[string]struct {
		block attrs
		key   string
	}{
		"block":               {block(url), "AKIATEST"},
		"endpoint of a file":  {files.With("access_key", "AKIATEST").With("secret_key", "canary-secret"), "AKIATEST"},
		"profile":             {files.With("profile", "team"), "AKIATEAM"},
		"profile with a role": {files.With("profile", "chained"), "AKIAROLE"},
		"role": {block(url).With("assume_role", objecttest.Strings().With("role_arn", "arn:aws:iam::1:role/r")).With("endpoints",
			objecttest.Strings().With("s3", url).With("sts", roles)), "AKIAROLE"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, asks(), settings(nil, c.block)); err != nil {
				t.Fatal(err)
			}
			got := server.Requests()
			if len(got) != 1 || got[0].AccessKey != c.key {
				t.Fatalf("got requests %+v", got)
			}
			if text := strings.ToLower(fmt.Sprint(got[0].Header)); strings.Contains(text, "canary") || strings.Contains(text, "customer-key") {
				t.Errorf("the request tells of the environment: %s", text)
			}
		})
	}
	if _, err := open(asks().With("region", nil), settings(nil, block(url)), ""); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("the region of the environment: %v", err)
	}
}

// proxy is one that refuses everything, and says what it was asked for.
func proxy(t *testing.T) (url string, asked func() string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Method+" "+r.Host)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() string {
		mu.Lock()
		defer mu.Unlock()
		got := strings.Join(seen, " ")
		seen = nil
		return got
	}
}

// Where requests go: to AWS's own hosts, unless the block says otherwise, or
// the environment for the block without a name.
//
// Promise: Where secrets go
func TestHosts(t *testing.T) {
	via, asked := proxy(t)
	aws := block("").With("endpoints", nil).With("use_path_style", nil).With("max_retries", 1).With("https_proxy", via).With("name", "a")
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_S3_ENDPOINT", "AWS_ENDPOINT_URL_STS", "AWS_STS_ENDPOINT"} {
		t.Setenv(name, trap(t))
	}
	t.Setenv("AWS_SSE_CUSTOMER_KEY", customerKey(1))
	profile := file(t, "[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = keys\n[profile keys]\naws_access_key_id = "+
		"AKIA\naws_secret_access_key = canary\n")
	by := asks().With("credentials_name", "a")
	for name, c := range map[string]struct {
		asks  attrs
		block attrs
		host  string
	}{
		"own host":       {by, aws, "states.s3.eu-west-1.amazonaws.com"},
		"another region": {by.With("region", "us-west-2"), aws, "states.s3.us-west-2.amazonaws.com"},
		"China":          {by.With("region", "cn-north-1"), aws, "states.s3.cn-north-1.amazonaws.com.cn"},
		"path style":     {by, aws.With("use_path_style", true), "s3.eu-west-1.amazonaws.com"},
		"name with dots": {by.With("bucket", "a.b"), aws, "s3.eu-west-1.amazonaws.com"},
		"dual stack":     {by, aws.With("use_dualstack_endpoint", true), "states.s3.dualstack.eu-west-1.amazonaws.com"},
		"FIPS":           {by.With("region", "us-east-1"), aws.With("use_fips_endpoint", true), "states.s3-fips.us-east-1.amazonaws.com"},
		"access point": {by.With("bucket", "arn:aws:s3:eu-west-1:111122223333:accesspoint/tfstate"), aws,
			"tfstate-111122223333.s3-accesspoint.eu-west-1.amazonaws.com"},
		"endpoint": {by, aws.With("endpoints", objecttest.Strings().With("s3", "s3.example.com")), "states.s3.example.com"},
		"endpoint, path": {by, aws.With("endpoints", objecttest.Strings().With("s3", "https://s3.example.com/base")).With("use_path_style",
			true), "s3.example.com"},
		"role": {by, aws.With("assume_role", objecttest.Strings().With("role_arn", "arn:aws:iam::1:role/r")),
			"sts.eu-west-1.amazonaws.com"},
		"region of the STS": {by, aws.With("assume_role", objecttest.Strings().With("role_arn", "arn:aws:iam::1:role/r")).With("sts_region",
			"us-east-2"), "sts.us-east-2.amazonaws.com"},
		"role of a profile": {by, aws.With("access_key", nil).With("secret_key", nil).With("shared_config_files", []string{profile}),
			"sts.eu-west-1.amazonaws.com"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, c.asks, settings(os.LookupEnv, c.block))
			if got := asked(); err == nil || got != "CONNECT "+c.host+":443" {
				t.Errorf("the proxy saw %q: %v", got, err)
			}
		})
	}
	t.Run("proxies of the environment", func(t *testing.T) {
		t.Setenv("HTTPS_PROXY", via)
		if _, err := read(t, by, settings(os.LookupEnv, aws.With("https_proxy", nil))); err == nil || asked() == "" {
			t.Errorf("the proxy was not asked: %v", err)
		}
		t.Setenv("NO_PROXY", "*")
		if _, err := read(t, by, settings(os.LookupEnv, aws.With("https_proxy", nil).With("endpoints",
			objecttest.Strings().With("s3", "https://127.0.0.1:1")))); err == nil || asked() != "" {
			t.Errorf("the proxy was asked: %v", err)
		}
		t.Setenv("NO_PROXY", "")
		t.Setenv("HTTP_PROXY", via)
		plain := aws.With("https_proxy", nil).With("endpoints", objecttest.Strings().With("s3", "http://s3.example.com"))
		if _, err := read(t, by, settings(os.LookupEnv, plain)); err == nil || asked() != "GET states.s3.example.com" {
			t.Errorf("the proxy was not asked: %v", err)
		}
	})
}

func customerKey(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
}

// Objects that S3 encrypts with a key of the customer.
//
// Promise: Where secrets go
func TestCustomerKey(t *testing.T) {
	server := stored([]byte("{}"))
	server.Seal(bucket, key, bytes.Repeat([]byte{1}, 32))
	server.Put(bucket, "open", []byte("{}"))
	front := faults.New(t, server, faults.Options{})
	b := block(front.URL).With("custom_ca_bundle", file(t, front.CA))
	ofEnvironment := func(name string) (string, bool) {
		if name == customerKeyVar {
			return customerKey(1), true
		}
		return "", false
	}
	says := sourcetest.OpenMistakes(t, "s3, sse_customer_key")
	for name, c := range map[string]struct {
		asks  attrs
		env   attr.LookupEnv
		block attrs
		fails bool
	}{
		"right":                    {asks(), nil, b.With(customerKeyAttr, customerKey(1)), false},
		"of the environment":       {asks(), ofEnvironment, b, false},
		"not for a name":           {asks().With("credentials_name", "a"), ofEnvironment, b.With("name", "a"), true},
		"none":                     {asks(), nil, b, true},
		"wrong":                    {asks(), nil, b.With(customerKeyAttr, customerKey(2)), true},
		"for one that needs none":  {asks().With("key", "open"), nil, b.With(customerKeyAttr, customerKey(1)), true},
		"without, where none is":   {asks().With("key", "open"), nil, b, false},
		"missing, with a key":      {asks().With("key", "none"), nil, b.With(customerKeyAttr, customerKey(1)), true},
		"wrong one of environment": {asks(), ofEnvironment, b.With(customerKeyAttr, customerKey(2)), true},
	} {
		_, err := read(t, c.asks, settings(c.env, c.block))
		if c.fails {
			says.Error(t, name, err)
		} else if err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "canary-secret", "AWS_CONFIG_FILE": "", "AWS_SHARED_CREDENTIALS_FILE": "",
	} {
		t.Setenv(name, value)
	}
	nobody := b.With("access_key", nil).With("secret_key", nil)
	if _, err := read(t, asks(), settings(os.LookupEnv, nobody.With(customerKeyAttr, customerKey(1)))); err != nil {
		t.Errorf("beside keys of the environment: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	front := faults.New(t, stored([]byte("{}")), faults.Options{})
	for name, c := range map[string]struct {
		block attrs
		want  string
	}{
		"verified":     {block(front.URL).With("custom_ca_bundle", file(t, front.CA)), ""},
		"not verified": {block(front.URL).With("insecure", true), "The certificate of the server was not verified"},
	} {
		snap, err := read(t, asks(), settings(nil, c.block))
		if err != nil || (len(snap.Warnings) == 0) != (c.want == "") || c.want != "" && !strings.HasPrefix(snap.Warnings[0].Text, c.want) {
			t.Errorf("%s: got %+v, %v", name, snap, err)
		}
	}
}

// The sources of a run share clients, and so roles are assumed once.
func TestShared(t *testing.T) {
	server, url := known(t, "ROLE")
	roles, calls := sts(t)
	b := block(url).With("assume_role", objecttest.Strings().With("role_arn", "arn:aws:iam::1:role/r")).With("endpoints",
		objecttest.Strings().With("s3", url).With("sts", roles))
	kind, s := Vendor().KindOver(objecttest.Hurried()), settings(nil, b)
	start := kind.Start(s)
	var wg sync.WaitGroup
	for range 5 {
		values, err := unstable.NewEntry("data", kind.Table, asks()).Decode(kind.Table, nil)
		if err != nil {
			t.Fatal(err)
		}
		src, err := start(source.Request{Values: values, MaxSize: 100})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if _, err := src.Fetch(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := calls(); len(got) != 1 || len(server.Requests()) != 5 {
		t.Errorf("STS was asked for %q", got)
	}
}

// TestChecksums tests stores that support no checksums, or calculate others: the error names the argument with which
// the state can be read.
func TestChecksums(t *testing.T) {
	says := sourcetest.OpenMistakes(t, "s3, checksums", objecttest.Canary)
	for name, refuses := range map[string]bool{"refused": true, "wrong": false} {
		url := nettest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"x"`)
			checks := r.Header.Get("X-Amz-Checksum-Mode") != ""
			if checks && refuses {
				objecttest.Refuse(w, http.StatusNotImplemented, "NotImplemented", objecttest.Canary)
				return
			}
			if checks {
				w.Header().Set("X-Amz-Checksum-Crc32", "AAAAAA==")
			}
			_, _ = w.Write([]byte("state"))
		}))
		none := func(string) (string, bool) { return "", false }
		_, err := read(t, asks(), settings(none, block(url)))
		says.Error(t, name, err)
		if _, err := read(t, asks(), settings(none, block(url).With("skip_s3_checksum", true))); err != nil {
			t.Errorf("%s, without checksums: %v", name, err)
		}
	}
}
