package cos

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
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
		{AccessKeyID: "AKIDother", SecretAccessKey: "other-" + objecttest.Canary, SessionToken: "other-token"}}
	server := httptest.NewServer(c.metadata)
	t.Cleanup(server.Close)
	network, _ := hostsOf(t, c.store, c.sts)
	network.Metadata = server.URL
	c.kind = Vendor().KindOver(network)
	return c
}

func (c *cloud) calls() string {
	var all []string
	for _, q := range c.sts.questions {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%v %v %v %v", q["RoleSessionName"], q["DurationSeconds"], cmpNil(q["Policy"]),
			cmpNil(q["ExternalId"]))))
	}
	return strings.Join(append(all, c.metadata.paths...), " ")
}

func cmpNil(v any) any {
	if v == nil {
		return ""
	}
	return v
}

func profiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name+".credential"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func pair() objecttest.Attrs { return keys("").With("endpoint", "") }

func withRole(a objecttest.Attrs, pairs ...string) objecttest.Attrs {
	out := a.With("assume_role", "x")
	role := objecttest.Strings(pairs...)
	for _, name := range []string{"role_arn", "session_name", "policy", "external_id"} {
		if _, ok := role[name]; !ok {
			role[name] = cty.NullVal(cty.String)
		}
	}
	if _, ok := role["session_duration"]; !ok {
		role["session_duration"] = cty.NullVal(cty.Number)
	}
	out["assume_role"] = cty.ObjectVal(role)
	return out
}

// Each way to keys: who signs in the end, and who is asked for keys before.
func TestIdentity(t *testing.T) {
	readers := fmt.Sprintf(`{"secretId": " %s ", "secretKey": %q}`, reader.AccessKeyID, reader.SecretAccessKey)
	t.Setenv("HOME", t.TempDir())
	role := newSTS().role
	dir := profiles(t, map[string]string{
		"default": readers,
		"token":   `{"secretId": "AKIDother", "secretKey": "other-canary", "token": "other-token"}`,
		"role": fmt.Sprintf(`{"secretId": %q, "secretKey": %q, "role-arn": %q, "role-session-name": "ci"}`, reader.AccessKeyID,
			reader.SecretAccessKey, role),
		"empty":  `{}`,
		"broken": `{"secretKey": ["canary"]}`,
	})
	of := func(profile string) objecttest.Attrs {
		return objecttest.Strings("profile", profile, "shared_credentials_dir", dir)
	}
	env := map[string]string{"TENCENTCLOUD_SECRET_ID": reader.AccessKeyID, "TENCENTCLOUD_SECRET_KEY": reader.SecretAccessKey}
	other := map[string]string{"TENCENTCLOUD_SECRET_ID": "AKIDother", "TENCENTCLOUD_SECRET_KEY": "other-canary",
		"TENCENTCLOUD_SECURITY_TOKEN": "other-token"}
	with := func(env map[string]string, pairs ...string) map[string]string {
		out := maps.Clone(env)
		for i := 0; i+1 < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	const sts, instance = "AKIDsession", "AKIDinstance"

	says := sourcetest.OpenMistakes(t, "cos, keys")
	for name, c := range map[string]struct {
		env    map[string]string
		chosen string
		blocks []objecttest.Attrs
		key    string // the access key that signs, "" for an error
		calls  string // of STS and of the metadata service
	}{
		"keys": {key: reader.AccessKeyID, blocks: []objecttest.Attrs{pair()}},
		"keys with a token": {key: "AKIDother", blocks: []objecttest.Attrs{objecttest.Strings("secret_id", "AKIDother", "secret_key",
			"other-canary", "security_token", "other-token")}},
		"keys over the environment":    {env: other, key: reader.AccessKeyID, blocks: []objecttest.Attrs{pair()}}, // no token of another's
		"environment":                  {env: env, key: reader.AccessKeyID},
		"environment with a token":     {env: other, key: "AKIDother"},
		"environment fills a block":    {env: env, key: reader.AccessKeyID, blocks: []objecttest.Attrs{{}}},
		"profile":                      {key: reader.AccessKeyID, blocks: []objecttest.Attrs{of("default")}},
		"default profile of a folder":  {key: reader.AccessKeyID, blocks: []objecttest.Attrs{objecttest.Strings("shared_credentials_dir", dir)}},
		"profile over the environment": {env: other, key: reader.AccessKeyID, blocks: []objecttest.Attrs{of("default")}},
		"profile of the environment": {env: map[string]string{"TENCENTCLOUD_PROFILE": "token", "TENCENTCLOUD_SHARED_CREDENTIALS_DIR": dir},
			key: "AKIDother"},
		"folder of the environment":    {env: map[string]string{"TENCENTCLOUD_SHARED_CREDENTIALS_DIR": dir}, key: reader.AccessKeyID},
		"keys over profile, both env":  {env: with(env, "TENCENTCLOUD_PROFILE", "token"), key: reader.AccessKeyID},
		"instance over keys, both env": {env: with(env, "TENCENTCLOUD_CAM_ROLE_NAME", "reader"), key: instance, calls: "reader"},
		"profile with a token":         {key: "AKIDother", blocks: []objecttest.Attrs{of("token")}},
		"profile with a role":          {key: sts, calls: "ci 7200", blocks: []objecttest.Attrs{of("role")}},
		"role":                         {key: sts, calls: "statecrypt 7200", blocks: []objecttest.Attrs{withRole(pair(), "role_arn", role)}},
		"role, with all": {key: sts, calls: "me 60 %7B%7D ext",
			blocks: []objecttest.Attrs{withRole(pair(), "role_arn", role, "session_name", "me", "session_duration", "60", "policy", "{}",
				"external_id", "ext")}},
		"role of the environment": {env: map[string]string{roleVar: role, sessionVar: "env", durationVar: "1000", externalVar: "e"},
			key: sts, calls: "env 1000  e", blocks: []objecttest.Attrs{pair()}},
		"role over the environment's": {env: map[string]string{roleVar: "other", externalVar: "e"}, key: sts, calls: "statecrypt 7200",
			blocks: []objecttest.Attrs{withRole(pair(), "role_arn", role)}},
		"named, no role of the env": {env: map[string]string{roleVar: role}, chosen: "a", key: reader.AccessKeyID,
			blocks: []objecttest.Attrs{pair().With("name", "a")}},
		"instance": {key: instance, calls: "reader",
			blocks: []objecttest.Attrs{objecttest.Strings("cam_role_name", "reader")}},
		"by name": {chosen: "b", key: reader.AccessKeyID,
			blocks: []objecttest.Attrs{objecttest.Strings("name", "a"), pair().With("name", "b")}},
		"named, and the environment": {env: env, chosen: "a",
			blocks: []objecttest.Attrs{objecttest.Strings("name", "a")}},
		"no such name":   {env: env, chosen: "b", blocks: []objecttest.Attrs{pair()}},
		"which?":         {env: env, blocks: []objecttest.Attrs{pair().With("name", "a")}},
		"nothing":        {},
		"two identities": {blocks: []objecttest.Attrs{pair().With("cam_role_name", "x")}},
		"no secret": {env: env,
			blocks: []objecttest.Attrs{objecttest.Strings("secret_id", "x")}},
		"no ID": {env: env,
			blocks: []objecttest.Attrs{objecttest.Strings("secret_key", objecttest.Canary)}},
		"not an ID":                 {blocks: []objecttest.Attrs{pair().With("secret_id", "a\nb")}},
		"no such profile":           {blocks: []objecttest.Attrs{of("other")}},
		"not the name of a profile": {blocks: []objecttest.Attrs{of("../x")}},
		"not a profile":             {blocks: []objecttest.Attrs{of("broken")}},
		"profile without keys":      {blocks: []objecttest.Attrs{of("empty")}},
		"role without an ARN":       {blocks: []objecttest.Attrs{withRole(pair())}},
		"too long a session": {blocks: []objecttest.Attrs{withRole(pair(), "role_arn", role,
			"session_duration", "43201")}},
		"too long, in the environment": {env: map[string]string{roleVar: role, durationVar: "43201"},
			blocks: []objecttest.Attrs{pair()}},
		"another role": {calls: "statecrypt 7200",
			blocks: []objecttest.Attrs{withRole(pair(), "role_arn", "other")}},
		"role by a wrong secret": {calls: "statecrypt 7200",
			blocks: []objecttest.Attrs{withRole(pair().With("secret_key", "x"), "role_arn", role)}},
		"another domain": {key: sts, calls: "statecrypt 7200",
			blocks: []objecttest.Attrs{withRole(pair().With("domain", "intl.tencentcloudapi.com"), "role_arn", role)}},
		"not a domain": {blocks: []objecttest.Attrs{withRole(pair().With("domain", "x/"+objecttest.Canary), "role_arn", role)}},
		"not a host":   {blocks: []objecttest.Attrs{pair().With("endpoint", "https://u:"+objecttest.Canary+"@x")}},
		"another role of the instance": {calls: "writer",
			blocks: []objecttest.Attrs{objecttest.Strings("cam_role_name", "writer")}},
		"not the name of a role": {blocks: []objecttest.Attrs{objecttest.Strings("cam_role_name", "../x")}},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := newCloud(t)
			s := objecttest.Settings(cloud.kind, objecttest.Variables(c.env), c.blocks...)
			src, err := objecttest.Open(cloud.kind, s, where().With("credentials_name", c.chosen), "default")
			if err := objecttest.Signs(t, cloud.store, c.key, src, err); err != nil {
				says.Error(t, name, err)
			}
			if got := cloud.calls(); got != c.calls {
				t.Errorf("got calls %q, want %q", got, c.calls)
			}
		})
	}
}

// Without the environment there is no default profile either.
func TestNoAmbientProfile(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.MkdirAll(filepath.Join(home, ".tccli"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".tccli", "default.credential"), []byte(`{"secretId": "a", "secretKey": "b"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	_, err := objecttest.Open(Kind(), objecttest.Settings(Kind(), nil), where(), "default")
	sourcetest.OpenMistakes(t, "cos, no environment").Error(t, "no keys", err)
	if _, err := objecttest.Open(Kind(), objecttest.Settings(Kind(), objecttest.Variables(map[string]string{})), where(),
		"default"); err != nil {
		t.Errorf("switched on: %v", err)
	}
}

func TestAccelerate(t *testing.T) {
	c := newCloud(t)
	a := where()
	a["accelerate"] = cty.True
	src, err := objecttest.Open(c.kind, objecttest.Settings(c.kind, nil, pair()), a, "default")
	if err == nil {
		_, err = src.Fetch(t.Context())
	}
	if got := c.store.Requests(); err != nil || len(got) != 1 || got[0].Host != bucket+".cos.accelerate.myqcloud.com" {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = objecttest.Open(c.kind, objecttest.Settings(c.kind, nil, keys("https://cos.example.com")), a, "default")
	sourcetest.OpenMistakes(t, "cos, accelerate").Error(t, "with an endpoint", err)
}

// What goes wrong on the way to keys is told in our words, and COS is not asked.
func TestBrokenServices(t *testing.T) {
	says := sourcetest.OpenMistakes(t, "cos, services")
	for name, c := range map[string]struct {
		status int
		text   string
	}{
		"not JSON":      {200, "<html>canary"},
		"nothing in it": {200, `{}`},
		"no token":      {200, `{"Code": "Success", "TmpSecretId": "a", "TmpSecretKey": "b", "ExpiredTime": 4000000000}`},
		"no end":        {200, `{"Code": "Success", "TmpSecretId": "a", "TmpSecretKey": "b", "Token": "c"}`},
		"far end": {200, `{"Code": "Success", "TmpSecretId": "a", "TmpSecretKey": "b", "Token": "c", "ExpiredTime": ` +
			`9223372036854775807}`},
		"no number": {200, `{"Code": "Success", "TmpSecretId": "a", "TmpSecretKey": "b", "Token": "c", "ExpiredTime": 1e400}`},
		"for a header": {200, `{"Code": "Success", "TmpSecretId": "a\r\nX: canary", "TmpSecretKey": "b", "Token": "c", "ExpiredTime": ` +
			`4000000000}`},
		"no success":     {200, `{"Code": "canary"}`},
		"denied":         {403, `canary`},
		"out of order":   {500, `canary`},
		"redirect":       {302, `canary`},
		"unknown role":   {404, `canary`},
		"too many":       {429, `canary`},
		"nothing at all": {},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore()
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
				_ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.text)
			}))
			t.Cleanup(service.Close)
			if c.status == 0 {
				service.Close()
			}
			network := objecttest.Hurried()
			network.Metadata = service.URL
			kind := Vendor().KindOver(network)
			who := objecttest.Strings("cam_role_name", "reader", "endpoint", store.Serve(t))
			src, err := objecttest.Open(kind, objecttest.Settings(kind, nil, who), where(), "default")
			says.Error(t, name, objecttest.Signs(t, store, "", src, err))
		})
	}
	for _, code := range []string{
		"UnauthorizedOperation", "AuthFailure.SecretIdNotFound", "AuthFailure.TokenFailure", "AuthFailure.SignatureExpire",
		"RequestLimitExceeded", "InvalidParameter.Strange", objecttest.Canary,
	} {
		c := newCloud(t)
		c.sts.code = code
		src, err := objecttest.Open(c.kind, objecttest.Settings(c.kind, nil, withRole(pair(), "role_arn", "x")), where(), "default")
		if err == nil {
			_, err = src.Fetch(t.Context())
		}
		says.Error(t, "STS: "+code, err)
	}
}

func TestCancelledWhileAskingForKeys(t *testing.T) {
	objecttest.Cancelled(t, func(stuck string) (source.Source, error) {
		kind := Vendor().KindOver(object.Network{Metadata: stuck})
		return objecttest.Open(kind, objecttest.Settings(kind, nil, objecttest.Strings("cam_role_name", "x")), where(), "default")
	})
}

// fakeMetadata is the metadata service of an instance.
type fakeMetadata struct {
	gives aws.Credentials
	paths []string // of the roles that were asked for
}

func newMetadata() *fakeMetadata {
	return &fakeMetadata{gives: aws.Credentials{AccessKeyID: "AKIDinstance", SecretAccessKey: "instance-" + objecttest.Canary,
		SessionToken: "instance-token"}}
}

func (m *fakeMetadata) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, "/latest/meta-data/cam/security-credentials/")
	m.paths = append(m.paths, name)
	if r.Method != http.MethodGet || !ok || name != "reader" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"Code": "Success", "TmpSecretId": m.gives.AccessKeyID, "TmpSecretKey": m.gives.SecretAccessKey, "Token": m.gives.SessionToken,
		"ExpiredTime": time.Now().Add(time.Hour).Unix(), "Expiration": "2100-01-01T00:00:00Z",
	})
}

// What the services that give keys answer costs no more than its size allows.
func TestCosts(t *testing.T) {
	for name, identity := range map[string]objecttest.Attrs{
		"role":     withRole(pair(), "role_arn", newSTS().role),
		"instance": objecttest.Strings("cam_role_name", "reader"),
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
