package oss

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// cloud is the store with all that gives keys for it.
type cloud struct {
	store    *objecttest.Server
	sts      *fakeSTS
	metadata *fakeMetadata
	kind     source.Kind
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{store: newStore(), sts: newSTS(), metadata: newMetadata()}
	c.store.Put(bucket, home, []byte("{}"))
	c.store.Keys = []aws.Credentials{reader, c.sts.gives, c.metadata.gives,
		{AccessKeyID: "LTAIother", SecretAccessKey: "other-" + objecttest.Canary, SessionToken: "other-token"}}
	server := httptest.NewServer(c.metadata)
	t.Cleanup(server.Close)
	network, _ := hostsOf(t, c.store, c.sts)
	network.Metadata = server.URL
	c.kind = Vendor().KindOver(network)
	return c
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var none = objecttest.Attrs{}

func pair() objecttest.Attrs { return keys("").With("endpoint", "") }

// Each way to keys: who signs in the end, and who is asked for keys before.
func TestIdentity(t *testing.T) {
	home, err := filepath.Abs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	profiles := fmt.Sprintf(`{"current": "default", "profiles": [
		{"name": "default", "mode": "AK", "access_key_id": %q, "access_key_secret": %q, "region_id": "eu-central-1"},
		{"name": "token", "mode": "StsToken", "access_key_id": "LTAIother", "access_key_secret": "other-canary", "sts_token": "other-token"},
		{"name": "role", "mode": "RamRoleArn",
		 "access_key_id": %q, "access_key_secret": %q, "ram_role_arn": %q, "ram_session_name": "ci", "expired_seconds": 1200},
		{"name": "instance", "mode": "EcsRamRole", "ram_role_name": "reader"},
		{"name": "nobody", "mode": "EcsRamRole"},
		{"name": "empty", "mode": "AK"},
		{"name": "browser", "mode": "OAuth", "access_key_id": "canary"}
	]}`, reader.AccessKeyID, reader.SecretAccessKey, reader.AccessKeyID, reader.SecretAccessKey, newSTS().role)
	file := write(t, profiles)
	of := func(profile string) objecttest.Attrs {
		return objecttest.Strings("profile", profile, "shared_credentials_file", file)
	}
	role := newSTS().role
	env := map[string]string{"ALICLOUD_ACCESS_KEY": reader.AccessKeyID, "ALICLOUD_SECRET_KEY": reader.SecretAccessKey}
	other := map[string]string{"ALICLOUD_ACCESS_KEY_ID": "LTAIother", "ALICLOUD_ACCESS_KEY_SECRET": "other-canary",
		"ALICLOUD_SECURITY_TOKEN": "other-token"}
	const sts, instance, elsewhere = "STS.test", "STS.instance", "STS at a name that nobody has"

	says := sourcetest.OpenMistakes(t, "oss, keys")
	for name, c := range map[string]struct {
		env    map[string]string
		chosen string
		blocks []objecttest.Attrs
		key    string // the access key that signs, "" for an error
		calls  string // of STS and of the metadata service
	}{
		"keys": {key: reader.AccessKeyID, blocks: []objecttest.Attrs{pair()}},
		"keys with a token": {key: "LTAIother", blocks: []objecttest.Attrs{objecttest.Strings("access_key", "LTAIother",
			"secret_key", "other-canary", "security_token", "other-token")}},
		"keys over the environment":    {env: other, key: reader.AccessKeyID, blocks: []objecttest.Attrs{pair()}}, // no token of another's
		"environment":                  {env: env, key: reader.AccessKeyID},
		"environment, other names":     {env: other, key: "LTAIother"},
		"environment fills a block":    {env: env, key: reader.AccessKeyID, blocks: []objecttest.Attrs{none}},
		"profile":                      {key: reader.AccessKeyID, blocks: []objecttest.Attrs{of("default")}},
		"profile over the environment": {env: other, key: reader.AccessKeyID, blocks: []objecttest.Attrs{of("default")}},
		"profile of the environment": {env: map[string]string{"ALICLOUD_PROFILE": "default", "ALICLOUD_SHARED_CREDENTIALS_FILE": file},
			key: reader.AccessKeyID},
		"keys over profile, environment": {env: map[string]string{"ALICLOUD_PROFILE": "default", "ALICLOUD_ACCESS_KEY": "LTAIother",
			"ALICLOUD_SECRET_KEY": "other-canary", "ALICLOUD_SECURITY_TOKEN": "other-token"}, key: "LTAIother"},
		"profile with a token":    {key: "LTAIother", blocks: []objecttest.Attrs{of("token")}},
		"profile with a role":     {key: sts, calls: "AssumeRole ci 1200", blocks: []objecttest.Attrs{of("role")}},
		"profile of the instance": {key: instance, calls: "PUT GET", blocks: []objecttest.Attrs{of("instance")}},
		"role": {key: sts, calls: "AssumeRole statecrypt 3600",
			blocks: []objecttest.Attrs{pair().With("assume_role_role_arn", role)}},
		"role, with all": {key: sts, calls: "AssumeRole me 900 {}",
			blocks: []objecttest.Attrs{pair().With("assume_role_role_arn", role).With("assume_role_session_name", "me").With("assume_role_policy",
				"{}").With("assume_role_session_expiration", "900")}},
		"role of the environment": {env: map[string]string{"ALICLOUD_ASSUME_ROLE_ARN": role, "ALICLOUD_ASSUME_ROLE_SESSION_NAME": "env",
			"ALICLOUD_ASSUME_ROLE_SESSION_EXPIRATION": "1000"}, key: sts, calls: "AssumeRole env 1000", blocks: []objecttest.Attrs{pair()}},
		"named, no role of the env": {env: map[string]string{"ALICLOUD_ASSUME_ROLE_ARN": role}, chosen: "a", key: reader.AccessKeyID,
			blocks: []objecttest.Attrs{pair().With("name", "a")}},
		"instance": {key: instance, calls: "PUT GET",
			blocks: []objecttest.Attrs{objecttest.Strings("ecs_role_name", "reader")}},
		"instance of the environment": {env: map[string]string{"ALICLOUD_ECS_ROLE_NAME": "reader"}, key: instance, calls: "PUT GET"},
		"by name": {chosen: "b", key: reader.AccessKeyID,
			blocks: []objecttest.Attrs{objecttest.Strings("name", "a"), pair().With("name", "b")}},
		"named, and the environment": {env: env, chosen: "a",
			blocks: []objecttest.Attrs{objecttest.Strings("name", "a")}},
		"no such name":   {env: env, chosen: "b", blocks: []objecttest.Attrs{pair()}},
		"which?":         {env: env, blocks: []objecttest.Attrs{pair().With("name", "a")}},
		"nothing":        {},
		"two identities": {blocks: []objecttest.Attrs{pair().With("profile", "default")}},
		"no secret": {env: env,
			blocks: []objecttest.Attrs{objecttest.Strings("access_key", "x")}},
		"no ID": {env: env,
			blocks: []objecttest.Attrs{objecttest.Strings("secret_key", objecttest.Canary)}},
		"half a pair in the environment": {env: map[string]string{"ALICLOUD_ACCESS_KEY": "x"}},
		"not an ID":                      {blocks: []objecttest.Attrs{pair().With("access_key", "a\nb")}},
		"no such profile":                {blocks: []objecttest.Attrs{of("other")}},
		"no such file": {blocks: []objecttest.Attrs{objecttest.Strings("profile", "default",
			"shared_credentials_file", file+"x")}},
		"no file at home": {blocks: []objecttest.Attrs{objecttest.Strings("profile", "default")}},
		"not a file of profiles": {blocks: []objecttest.Attrs{objecttest.Strings("profile", "x", "shared_credentials_file",
			write(t, `{"profiles": [{"name": "x", "access_key_secret": ["canary"]}]}`))}},
		"profile of another mode":         {blocks: []objecttest.Attrs{of("browser")}},
		"profile without keys":            {blocks: []objecttest.Attrs{of("empty")}},
		"profile without the role's name": {blocks: []objecttest.Attrs{of("nobody")}},
		"session without a role":          {blocks: []objecttest.Attrs{pair().With("assume_role_session_name", "x")}},
		"too long a session": {
			blocks: []objecttest.Attrs{pair().With("assume_role_role_arn", role).With("assume_role_session_expiration", "3601")}},
		"too short, in the environment": {env: map[string]string{"ALICLOUD_ASSUME_ROLE_ARN": role,
			"ALICLOUD_ASSUME_ROLE_SESSION_EXPIRATION": "1"}, blocks: []objecttest.Attrs{pair()}},
		"another role": {calls: "AssumeRole statecrypt 3600",
			blocks: []objecttest.Attrs{pair().With("assume_role_role_arn", "other")}},
		"role by another": {calls: "AssumeRole statecrypt 3600",
			blocks: []objecttest.Attrs{pair().With("access_key", "x").With("assume_role_role_arn", role)}},
		"role by a wrong secret": {calls: "AssumeRole statecrypt 3600",
			blocks: []objecttest.Attrs{pair().With("secret_key", "x").With("assume_role_role_arn", role)}},
		elsewhere:    {blocks: []objecttest.Attrs{pair().With("assume_role_role_arn", role).With("sts_endpoint", "sts.invalid")}},
		"not a host": {blocks: []objecttest.Attrs{pair().With("endpoint", "https://u:"+objecttest.Canary+"@x")}},
		"not a host of STS": {
			blocks: []objecttest.Attrs{pair().With("assume_role_role_arn", role).With("sts_endpoint", "https://x/"+objecttest.Canary)}},
		"another role of the instance": {calls: "PUT GET",
			blocks: []objecttest.Attrs{objecttest.Strings("ecs_role_name", "writer")}},
		"not the name of a role": {blocks: []objecttest.Attrs{objecttest.Strings("ecs_role_name", "../x")}},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := newCloud(t)
			if name == elsewhere {
				cloud.kind = Vendor().KindOver(objecttest.Hurried())
			}
			s := objecttest.Settings(cloud.kind, objecttest.Variables(c.env), c.blocks...)
			src, err := objecttest.Open(cloud.kind, s, where().With("credentials_name", c.chosen), "default")
			switch err := objecttest.Signs(t, cloud.store, c.key, src, err); {
			case name == elsewhere && !strings.Contains(err.Error(), netfail.NotFound): // what else is said depends on the machine
				t.Errorf("got %v", err)
			case err != nil && name != elsewhere:
				says.Error(t, name, err)
			}
			if got := cloud.calls(); got != c.calls {
				t.Errorf("got calls %q, want %q", got, c.calls)
			}
		})
	}
}

func (c *cloud) calls() string {
	var all []string
	for _, f := range c.sts.forms {
		all = append(all, strings.TrimSpace(strings.Join([]string{f.Get("Action"), f.Get("RoleSessionName"), f.Get("DurationSeconds"),
			f.Get("Policy")}, " ")))
	}
	return strings.Join(append(all, c.metadata.methods...), " ")
}

// fakeMetadata is the metadata service of a hardened instance.
type fakeMetadata struct {
	gives   aws.Credentials
	methods []string
}

func newMetadata() *fakeMetadata {
	return &fakeMetadata{gives: aws.Credentials{AccessKeyID: "STS.instance", SecretAccessKey: "instance-" + objecttest.Canary,
		SessionToken: "instance-token"}}
}

func (m *fakeMetadata) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.methods = append(m.methods, r.Method)
	switch {
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" && r.Header.Get("X-Aliyun-Ecs-Metadata-Token-Ttl-Seconds") != "":
		fmt.Fprint(w, "token-of-the-service")
	case r.Header.Get("X-Aliyun-Ecs-Metadata-Token") != "token-of-the-service":
		w.WriteHeader(http.StatusForbidden)
	case r.Method != http.MethodGet || r.URL.Path != "/latest/meta-data/ram/security-credentials/reader":
		w.WriteHeader(http.StatusNotFound)
	default:
		_ = json.NewEncoder(w).Encode(map[string]string{
			"Code": "Success", "AccessKeyId": m.gives.AccessKeyID, "AccessKeySecret": m.gives.SecretAccessKey, "SecurityToken": m.gives.SessionToken,
			"Expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		})
	}
}

// What goes wrong on the way to keys is told in our words, and OSS is not asked.
func TestBrokenServices(t *testing.T) {
	const end = `"Expiration": "2100-01-01T00:00:00Z"`
	answer := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); fmt.Fprint(w, text) }
	}
	says := sourcetest.OpenMistakes(t, "oss, services")
	for name, answers := range map[string]http.HandlerFunc{
		"not JSON":      answer(200, "<html>canary"),
		"nothing in it": answer(200, `{}`),
		"no token": answer(200, `{"Code": "Success", "AccessKeyId": "a", "AccessKeySecret": "b", "Credentials": {"AccessKeyId": `+
			`"a", "AccessKeySecret": "b", `+end+`}}`),
		"no end": answer(200, `{"Code": "Success", "Credentials": {"AccessKeyId": "a", "AccessKeySecret": "b", "SecurityToken": `+
			`"c"}}`),
		"a key for a header": answer(200, `{"Code": "Success", "Credentials": {"AccessKeyId": "a\r\nX: canary", "AccessKeySecret": "b", `+
			`"SecurityToken": "c", `+end+`}}`),
		"denied":          answer(403, `{"Code": "NoPermission", "Message": "canary"}`),
		"throttled":       answer(400, `{"Code": "Throttling.User"}`),
		"expired":         answer(400, `{"Code": "InvalidSecurityToken.Expired"}`),
		"clock":           answer(400, `{"Code": "InvalidTimeStamp.Expired"}`),
		"wrong parameter": answer(400, `{"Code": "InvalidParameter.RoleArn"}`),
		"strange code":    answer(400, `{"Code": "canary"}`),
		"out of order":    answer(500, `canary`),
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example.com/canary", 307)
		},
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			for range 1000 {
				if _, err := fmt.Fprint(w, strings.Repeat("x", 10_000)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, service := newStore(), httptest.NewServer(answers)
			t.Cleanup(service.Close)
			kind := Vendor().KindOver(objecttest.Hurried())
			who := keys(store.Serve(t)).With("assume_role_role_arn", "role").With("sts_endpoint", service.URL)
			src, err := objecttest.Open(kind, objecttest.Settings(kind, nil, who), where(), "default")
			says.Error(t, name, objecttest.Signs(t, store, "", src, err))
		})
	}
}

// Plain http to another machine that gives the keys is warned of.
func TestSTSWithoutEncryption(t *testing.T) {
	store, sts := newStore(), newSTS()
	store.Put(bucket, home, []byte("{}"))
	store.Keys = []aws.Credentials{sts.gives}
	service := httptest.NewServer(sts)
	t.Cleanup(service.Close)
	network := objecttest.Hurried()
	network.Proxy = func(u *url.URL) (*url.URL, error) {
		if u.Hostname() == stsHost {
			return url.Parse(service.URL)
		}
		return nil, nil
	}
	kind := Vendor().KindOver(network)
	for address, want := range map[string]int{"http://" + stsHost: 1, service.URL: 0} {
		who := keys(store.Serve(t)).With("assume_role_role_arn", sts.role).With("sts_endpoint", address)
		snap, err := objecttest.Read(t, kind, objecttest.Settings(kind, nil, who), where(), "default")
		if err != nil {
			t.Fatal(err)
		}
		const because = "the Alibaba Cloud STS endpoint begins with http"
		if len(snap.Warnings) != want || want > 0 && !strings.Contains(snap.Warnings[0].Text, because) {
			t.Errorf("%s: got %q", address, snap.Warnings)
		}
	}
}

func TestCancelledWhileAskingForKeys(t *testing.T) {
	objecttest.Cancelled(t, func(stuck string) (source.Source, error) {
		who := keys(stuck).With("assume_role_role_arn", "role").With("sts_endpoint", stuck)
		return objecttest.Open(Kind(), objecttest.Settings(Kind(), nil, who), where(), "default")
	})
}

// The region of the profile is used where nothing else says one.
func TestRegionOfProfile(t *testing.T) {
	file := write(t, fmt.Sprintf(`{"profiles": [{"name": "with", "mode": "AK", "access_key_id": %[1]q, "access_key_secret": %[2]q, "region_id": "eu-central-1"},
		{"name": "without", "mode": "AK", "access_key_id": %[1]q, "access_key_secret": %[2]q},
		{"name": "evil", "mode": "AK", "access_key_id": %[1]q, "access_key_secret": %[2]q, "region_id": "evil.example.com/"}]}`, reader.AccessKeyID, reader.SecretAccessKey))
	says := sourcetest.OpenMistakes(t, "oss, regions")
	for _, profile := range []string{"with", "without", "evil", ""} {
		c := newCloud(t)
		who := objecttest.Strings("profile", profile, "shared_credentials_file", file)
		if profile == "" {
			who = pair()
		}
		src, err := objecttest.Open(c.kind, objecttest.Settings(c.kind, nil, who), where().With("region", ""), "default")
		if err == nil {
			_, err = src.Fetch(t.Context())
		}
		if profile != "with" {
			says.Error(t, "the profile "+strconv.Quote(profile), err)
		} else if err != nil {
			t.Error(err)
		}
	}
}

// What the services that give keys answer costs no more than its size allows.
func TestCosts(t *testing.T) {
	for name, identity := range map[string]objecttest.Attrs{
		"role":     pair().With("assume_role_role_arn", newSTS().role),
		"instance": objecttest.Strings("ecs_role_name", "reader"),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t)
			answers := amplification.NewAnswers(map[string]http.Handler{"role": c.sts, "instance": c.metadata}[name])
			service := httptest.NewServer(answers)
			t.Cleanup(service.Close)
			network, _ := hostsOf(t, c.store, answers)
			network.Metadata = service.URL
			kind := Vendor().KindOver(network)
			answers.Run(t, func(t *testing.T) func() error {
				src, err := objecttest.Open(kind, objecttest.Settings(kind, nil, identity), where(), "default")
				if err != nil {
					t.Fatal(err)
				}
				return func() error { _, err := src.Fetch(t.Context()); return err }
			})
		})
	}
}
