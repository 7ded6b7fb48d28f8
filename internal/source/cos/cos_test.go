package cos

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
	bucket = "acme-1250000000"
	home   = "terraform.tfstate" // where the default workspace is
)

// reader is who may read in tests.
var reader = aws.Credentials{AccessKeyID: "AKIDtest", SecretAccessKey: "secret-" + storetest.Canary}

func where() storetest.Attrs { return storetest.Strings("bucket", bucket, "region", "eu-frankfurt") }

func keys(endpoint string) storetest.Attrs {
	return storetest.Strings("secret_id", reader.AccessKeyID, "secret_key", reader.SecretAccessKey, "endpoint", endpoint)
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
	s.Region, s.Keys = "eu-frankfurt", []aws.Credentials{reader}
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
		Store: newStore, Bucket: bucket, Path: home, Where: where(), Who: keys, Name: "Tencent Cloud COS",
	}
}

func TestSource(t *testing.T) { suite().Run(t) }
func TestFaults(t *testing.T) { suite().Faults(t) }

func TestVersions(t *testing.T) { suite().Versions(t) }

func TestErrors(t *testing.T) {
	suite().Codes(t, map[string]string{
		"404 NoSuchKey":                  "missing",
		"404 NoSuchBucket":               `there is no bucket "acme-1250000000"`,
		"404 NoSuchVersion":              "no such version",
		"403 AccessDenied":               "the credentials need cos:GetObject on this object",
		"403 InvalidAccessKeyId":         "the credentials are not valid; check them in the cos block",
		"403 SignatureDoesNotMatch":      "the credentials are not valid",
		"403 ExpiredToken":               "the security token has expired",
		"403 RequestTimeTooSkewed":       "the clock of this machine is wrong",
		"403 InvalidObjectState":         "archived",
		"400 BucketAccelerateNotEnabled": "leave accelerate out",
		"451 UnavailableForLegalReasons": "closed",
		"500 InternalError":              "out of order",
		"503 SlowDown":                   "too many requests",
		"404 Strange":                    "with the HTTP status 404",
		"404":                            "with the HTTP status 404",
	})
}

// Every attribute of the backend, of OpenTofu and of Terraform.
func TestAttributes(t *testing.T) {
	storetest.Attributes(t, Kind(), []string{
		"secret_id", "secret_key", "security_token", "region", "bucket", "endpoint", "domain", "prefix", "key", "encrypt", "acl", "accelerate",
		"assume_role", "shared_credentials_dir", "profile", "cam_role_name",
	}, map[string]string{
		"encrypt": "it is for writing",
		"acl":     "it is for writing",
	}, "name", "credentials_name", "version_id")
	block, _ := credentials().Attr("assume_role")
	var names []string
	for _, a := range block.Attrs {
		names = append(names, a.Name)
	}
	if want := []string{"role_arn", "session_name", "session_duration", "policy", "external_id"}; !slices.Equal(names, want) {
		t.Errorf("assume_role has %q, want %q", names, want)
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []struct{ prefix, key, workspace, want string }{
		{"", "", "default", "terraform.tfstate"},
		{"", "", "", "terraform.tfstate"},
		{"", "", "staging", "staging/terraform.tfstate"},
		{"terraform/state", "", "staging", "terraform/state/staging/terraform.tfstate"},
		{"states/", "a/b.tfstate", "default", "states/a/b.tfstate"},
		{"a//b", "x//y", "w", "a/b/w/x/y"},
		{"states", "x", "ünïcode+%20", "states/ünïcode+%20/x"},
		{"/states", "x", "default", "error: prefix"},
		{"./states", "x", "default", "error: prefix"},
		{"", "/x", "default", "error: key"},
		{"", "x/", "default", "error: key"},
		{"..", "x", "default", "error: key"},
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
}

// Whatever a data source says, a request goes to a host of the vendor's.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"acme", "evil.com/", "a.b", "a@evil.com", "x#", "x?", "a:80", "-", "é", "x--x-s3", "arn:aws:s3:::x", "A", " ", "evil.com%2f", "acme\n"} {
		f.Add(s, "eu-frankfurt", false)
		f.Add("acme-1250000000", s, true)
		f.Add("acme-1250000000", s, false)
	}
	f.Fuzz(func(t *testing.T, bucket, region string, accelerate bool) {
		var asked string
		kind := changed(func(r *run) {
			r.connection.Attempts = 1
			r.connection.Proxy = func(u *url.URL) (*url.URL, error) { asked = u.Host; return nil, errors.New("stop") }
		})
		a := storetest.Strings("bucket", bucket, "region", region)
		a["accelerate"] = cty.BoolVal(accelerate)
		src, err := storetest.Open(kind, storetest.Settings(kind, nil, keys("").With("endpoint", "")), a, "default")
		if err != nil {
			return
		}
		if _, err := src.Fetch(t.Context()); err == nil {
			t.Error("it was read")
		}
		if accelerate {
			region = "accelerate"
		}
		if labels := strings.Split(asked, "."); len(labels) != 5 || labels[0] != bucket || labels[1] != "cos" || labels[2] != region || labels[3]+"."+labels[4] != "myqcloud.com" {
			t.Errorf("asked %q", asked)
		}
	})
}

func TestIsolated(t *testing.T) {
	suite().Isolated(t, "TENCENTCLOUD_SECRET_ID", "TENCENTCLOUD_SECRET_KEY", "TENCENTCLOUD_SECURITY_TOKEN", "TENCENTCLOUD_PROFILE", "TENCENTCLOUD_CAM_ROLE_NAME", "TENCENTCLOUD_ASSUME_ROLE_ARN", "TENCENTCLOUD_ENDPOINT", "TENCENTCLOUD_DOMAIN", "TENCENTCLOUD_REGION")
}

// The policy of the documentation allows what a read does to the object of the
// example, and nothing else.
func TestPolicy(t *testing.T) {
	text, err := os.ReadFile("../../../examples/sources/cos/policy.json")
	if err != nil {
		t.Fatal(err)
	}
	var policy struct {
		Statement []struct{ Action, Resource []string }
	}
	if err := json.Unmarshal(text, &policy); err != nil {
		t.Fatal(err)
	}
	src, err := storetest.Open(Kind(), storetest.Settings(Kind(), nil, keys("")), where().With("bucket", "acme-states-1250000000").With("prefix", "network"), "default")
	if err != nil {
		t.Fatal(err)
	}
	l := src.(*location)
	if s := policy.Statement; len(s) != 1 || !slices.Equal(s[0].Action, []string{"name/" + words().Read}) || len(s[0].Resource) != 1 || !strings.HasSuffix(s[0].Resource[0], ":"+l.object.Bucket+"/"+l.object.Key) {
		t.Errorf("got %+v", s)
	}
}
