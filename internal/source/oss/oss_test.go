package oss

import (
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/objectstore/storetest"
)

const (
	bucket = "acme-states"
	home   = "env:/terraform.tfstate" // where the default workspace is
)

// reader is who may read in tests.
var reader = aws.Credentials{AccessKeyID: "LTAItest", SecretAccessKey: "secret-" + storetest.Canary}

func where() storetest.Attrs { return storetest.Strings("bucket", bucket, "region", "eu-central-1") }

func keys(endpoint string) storetest.Attrs {
	return storetest.Strings("access_key", reader.AccessKeyID, "secret_key", reader.SecretAccessKey, "endpoint", endpoint)
}

// changed is the kind with a run that a test has changed.
func changed(change func(*run)) source.Kind {
	kind := Kind()
	kind.Start = func(s source.Settings) source.Open {
		r := newRun(s)
		storetest.Hurried(&r.connection)
		change(r)
		return r.open
	}
	return kind
}

func newStore(t *testing.T) *storetest.Server {
	t.Helper()
	s := storetest.New(t, bucket)
	s.Region, s.Keys = "eu-central-1", []aws.Credentials{reader}
	return s
}

func suite() storetest.Suite {
	return storetest.Suite{
		Kind: func(ca string) source.Kind {
			return changed(func(r *run) {
				if ca != "" {
					r.connection.CA = []byte(ca)
				}
			})
		},
		Store: newStore, Bucket: bucket, Path: home, Where: where(), Who: keys, Name: "Alibaba Cloud OSS",
	}
}

func TestSource(t *testing.T) { suite().Run(t) }
func TestFaults(t *testing.T) { suite().Faults(t) }

func TestVersions(t *testing.T) { suite().Versions(t) }

func TestErrors(t *testing.T) {
	suite().Codes(t, map[string]string{
		"404 NoSuchKey":                  "missing",
		"404 NoSuchBucket":               `there is no bucket "acme-states"`,
		"404 NoSuchVersion":              "no such version",
		"403 AccessDenied":               "the credentials need oss:GetObject on this object",
		"403 InvalidAccessKeyId":         "the credentials are not valid; check them in the oss block",
		"403 SignatureDoesNotMatch":      "the credentials are not valid",
		"403 SecurityTokenExpired":       "the security token has expired",
		"403 InvalidSecurityToken":       "the security token is not valid",
		"403 RequestTimeTooSkewed":       "the clock of this machine is wrong",
		"403 UserDisable":                "the account is closed",
		"403 InvalidObjectState":         "archived",
		"403 SecondLevelDomainForbidden": "check the endpoint",
		"500 InternalError":              "out of order",
		"503 ServiceUnavailable":         "out of order",
		"404 Strange":                    "with the HTTP status 404",
		"404":                            "with the HTTP status 404",
		"401":                            "with the HTTP status 401",
	})
}

// Every attribute of the backend, which OpenTofu and Terraform share.
func TestAttributes(t *testing.T) {
	storetest.Attributes(t, Kind(), []string{
		"access_key", "secret_key", "security_token", "ecs_role_name", "region", "sts_endpoint", "tablestore_endpoint", "endpoint", "bucket",
		"prefix", "key", "tablestore_table", "encrypt", "acl", "shared_credentials_file", "profile", "assume_role", "assume_role_role_arn",
		"assume_role_session_name", "assume_role_policy", "assume_role_session_expiration",
	}, map[string]string{
		"tablestore_endpoint": "it is for locks",
		"tablestore_table":    "it is for locks",
		"encrypt":             "it is for writing",
		"acl":                 "it is for writing",
		"assume_role":         "it is deprecated in favour of assume_role_role_arn and its kin",
	}, "name", "credentials_name", "version_id")
}

func TestPaths(t *testing.T) {
	for _, c := range []struct{ prefix, key, workspace, want string }{
		{"", "", "default", "env:/terraform.tfstate"},
		{"", "", "", "env:/terraform.tfstate"},
		{"", "", "staging", "env:/staging/terraform.tfstate"},
		{"", "a/b.tfstate", "staging", "env:/staging/a/b.tfstate"},
		{"states", "a b.tfstate", "default", "states/a b.tfstate"},
		{"states/", "x", "w", "states/w/x"},
		{"a//b", "x//y", "w", "a/b/w/x/y"},
		{"a/./b", "x", "default", "a/b/x"},
		{"states", "x", "ünïcode+%20", "states/ünïcode+%20/x"},
		{"/states", "x", "default", "error: prefix"},
		{"./states", "x", "default", "error: prefix"},
		{"", "/x", "default", "error: key"},
		{"", "x/", "default", "error: key"},
		{"..", "x", "default", "error: key"},
		{"", "../../x", "default", "error: key"},
	} {
		src, err := storetest.Open(Kind(), storetest.Settings(Kind(), nil, keys("http://127.0.0.1:1")), where().With("prefix", c.prefix).With("key", c.key), c.workspace)
		if attr, bad := strings.CutPrefix(c.want, "error: "); bad {
			if err == nil || !strings.Contains(err.Error(), "."+attr+":") {
				t.Errorf("%+v: got %v, %v", c, src, err)
			}
		} else if err != nil || src.(*location).object.Key != c.want {
			t.Errorf("%+v: got %v, %v", c, src, err)
		}
	}
	none := where()
	none["prefix"] = cty.StringVal("")
	if src, err := storetest.Open(Kind(), storetest.Settings(Kind(), nil, keys("")), none, "w"); err != nil || src.(*location).object.Key != "w/terraform.tfstate" {
		t.Errorf("no prefix: %v, %v", src, err)
	}
}

// Whatever a data source says, a request goes to a host of the vendor's.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"acme", "evil.com/", "a.b", "a@evil.com", "x#", "x?", "a:80", "-", "é", "x--x-s3", "arn:aws:s3:::x", "A", " ", "evil.com%2f", "acme\n"} {
		f.Add(s, "eu-central-1")
		f.Add("acme-states", s)
	}
	f.Fuzz(func(t *testing.T, bucket, region string) {
		var asked string
		kind := changed(func(r *run) {
			r.connection.Attempts = 1
			r.connection.Proxy = func(u *url.URL) (*url.URL, error) { asked = u.Host; return nil, errors.New("stop") }
		})
		src, err := storetest.Open(kind, storetest.Settings(kind, nil, keys("").With("endpoint", "")), storetest.Strings("bucket", bucket, "region", region), "default")
		if err != nil {
			return
		}
		if _, err := src.Fetch(t.Context()); err == nil {
			t.Error("it was read")
		}
		if labels := strings.Split(asked, "."); len(labels) != 5 || labels[0] != bucket || labels[1] != "s3" || labels[2] != "oss-"+region || labels[3]+"."+labels[4] != "aliyuncs.com" {
			t.Errorf("asked %q", asked)
		}
	})
}

func TestIsolated(t *testing.T) {
	suite().Isolated(t, "ALICLOUD_ACCESS_KEY", "ALICLOUD_SECRET_KEY", "ALICLOUD_SECURITY_TOKEN", "ALICLOUD_PROFILE", "ALICLOUD_ASSUME_ROLE_ARN", "ALICLOUD_STS_ENDPOINT", "ALICLOUD_OSS_ENDPOINT", "OSS_ENDPOINT", "ALICLOUD_REGION")
}

// The policy of the documentation allows what a read does to the object of the
// example, and nothing else.
func TestPolicy(t *testing.T) {
	text, err := os.ReadFile("../../../examples/sources/oss/policy.json")
	if err != nil {
		t.Fatal(err)
	}
	var policy struct {
		Statement []struct{ Action, Resource []string }
	}
	if err := json.Unmarshal(text, &policy); err != nil {
		t.Fatal(err)
	}
	src, err := storetest.Open(Kind(), storetest.Settings(Kind(), nil, keys("")), where().With("bucket", "acme-states").With("prefix", "network"), "default")
	if err != nil {
		t.Fatal(err)
	}
	l := src.(*location)
	if s := policy.Statement; len(s) != 1 || !slices.Equal(s[0].Action, []string{words().Read}) || len(s[0].Resource) != 1 || !strings.HasSuffix(s[0].Resource[0], ":"+l.object.Bucket+"/"+l.object.Key) {
		t.Errorf("got %+v", s)
	}
}
