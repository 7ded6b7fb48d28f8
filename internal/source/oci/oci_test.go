package oci

import (
	"bytes"
	"encoding/base64"
	"errors"
	"maps"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/objectstore/storetest"
)

const (
	bucket = "Acme_states"
	home   = "terraform.tfstate" // where the default workspace is
)

// reader is who may read in tests.
var reader = aws.Credentials{AccessKeyID: "oci-key-id", SecretAccessKey: "secret-" + storetest.Canary}

func where() storetest.Attrs {
	return storetest.Strings("bucket", bucket, "namespace", "acme", "region", "eu-frankfurt-1")
}

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
	s.Region, s.Keys = "eu-frankfurt-1", []aws.Credentials{reader}
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
		Store: newStore, Bucket: bucket, Path: home, Where: where(), Who: keys, Name: "Oracle Object Storage",
	}
}

func TestSource(t *testing.T) { suite().Run(t) }
func TestFaults(t *testing.T) { suite().Faults(t) }

func TestVersions(t *testing.T) { suite().Versions(t) }

func TestErrors(t *testing.T) {
	suite().Codes(t, map[string]string{
		"404 NoSuchKey":             "missing",
		"404 NoSuchBucket":          "or the user may not read in it",
		"404 BucketNotFound":        "or the user may not read in it",
		"404 NamespaceNotFound":     "no such namespace",
		"404 NoSuchVersion":         "no such version",
		"403 AccessDenied":          "the credentials need OBJECT_READ on this object",
		"401 NotAuthenticated":      "the Customer Secret Key is not valid",
		"403 InvalidAccessKeyId":    "the credentials are not valid; check them in the oci block",
		"403 SignatureDoesNotMatch": "the credentials are not valid",
		"400 InvalidRequest":        "set sse_customer_key in the oci block",
		"403 RequestTimeTooSkewed":  "the clock of this machine is wrong",
		"403 InvalidObjectState":    "archived",
		"500 InternalError":         "out of order",
		"503 SlowDown":              "too many requests",
		"404 Strange":               "with the HTTP status 404",
		"404":                       "with the HTTP status 404",
	})
}

// Every attribute of Terraform's backend.
func TestAttributes(t *testing.T) {
	const apiKeys = "it is for requests signed with an API key, which the S3 API does not take"
	storetest.Attributes(t, Kind(), []string{
		"key", "bucket", "namespace", "region", "tenancy_ocid", "user_ocid", "fingerprint", "private_key", "private_key_path", "private_key_password",
		"auth", "config_file_profile", "workspace_key_prefix", "kms_key_id", "sse_customer_key", "sse_customer_key_sha256", "sse_customer_algorithm",
	}, map[string]string{
		"tenancy_ocid": apiKeys, "user_ocid": apiKeys, "fingerprint": apiKeys, "private_key": apiKeys, "private_key_path": apiKeys, "private_key_password": apiKeys,
		"auth": apiKeys, "config_file_profile": apiKeys,
		"kms_key_id":              "it is for writing",
		"sse_customer_key_sha256": "the S3 API wants the MD5 in its place, which is computed",
		"sse_customer_algorithm":  "there is but one",
	}, "name", "credentials_name", "version_id", "access_key", "secret_key", "endpoint")
}

func TestPaths(t *testing.T) {
	for _, c := range []struct{ prefix, key, workspace, want string }{
		{"", "", "default", "terraform.tfstate"},
		{"", "", "", "terraform.tfstate"},
		{"", "", "staging", "tf-state-env/staging/terraform.tfstate"},
		{"env:", "a/b.tfstate", "default", "a/b.tfstate"},
		{"env:", "a/b.tfstate", "staging", "env:/staging/a/b.tfstate"},
		{"env:/", "x", "w", "env:/w/x"},
		{"env:", "x", "ünïcode+%20", "env:/ünïcode+%20/x"},
		{"/states", "x", "default", "error: workspace_key_prefix"},
		{"a//b", "x", "default", "error: workspace_key_prefix"},
		{"", "/x", "default", "error: key"},
		{"", "x/", "default", "error: key"},
		{"", "x//y", "default", "error: key"},
		{"", "../x", "default", "error: key"},
		{"", "./x", "default", "error: key"},
	} {
		src, err := storetest.Open(Kind(), storetest.Settings(Kind(), nil, keys("http://127.0.0.1:1")), where().With("workspace_key_prefix", c.prefix).With("key", c.key), c.workspace)
		if attr, bad := strings.CutPrefix(c.want, "error: "); bad {
			if err == nil || !strings.Contains(err.Error(), "."+attr+":") {
				t.Errorf("%+v: got %v, %v", c, src, err)
			}
		} else if err != nil || src.(*location).object.Key != c.want {
			t.Errorf("%+v: got %v, %v", c, src, err)
		}
	}
}

// Whatever a data source says, a request goes to a host of the vendor's, or to
// a host below the one that credentials say.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"acme", "evil.com/", "a.b", "a@evil.com", "x#", "x?", "a:80", "-", "é", "x--x-s3", "arn:aws:s3:::x", "A", " ", "evil.com%2f", "acme\n", ".."} {
		f.Add("states", s, "eu-frankfurt-1", false)
		f.Add("states", "acme", s, false)
		f.Add(s, "acme", "eu-frankfurt-1", true)
	}
	f.Fuzz(func(t *testing.T, bucket, namespace, region string, own bool) {
		var asked string
		kind := changed(func(r *run) {
			r.connection.Attempts = 1
			r.connection.Proxy = func(u *url.URL) (*url.URL, error) { asked = u.Host; return nil, errors.New("stop") }
		})
		endpoint, want := "", namespace+".compat.objectstorage."+region+".oraclecloud.com"
		if own {
			endpoint, want = "store.example.com", namespace+".store.example.com"
		}
		src, err := storetest.Open(kind, storetest.Settings(kind, nil, keys("").With("endpoint", endpoint)), storetest.Strings("bucket", bucket, "namespace", namespace, "region", region), "default")
		if err != nil {
			return
		}
		if _, err := src.Fetch(t.Context()); err == nil {
			t.Error("it was read")
		}
		if asked != want || strings.ContainsAny(namespace+region, "./:@") {
			t.Errorf("asked %q", asked)
		}
	})
}

func TestKeys(t *testing.T) {
	env := map[string]string{
		"OCI_S3_ACCESS_KEY": reader.AccessKeyID, "OCI_S3_SECRET_KEY": reader.SecretAccessKey,
		"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "aws-" + storetest.Canary, "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_REGION": "us-east-1",
	}
	none := storetest.Attrs{}
	for name, c := range map[string]struct {
		env    map[string]string
		chosen string // credentials_name
		blocks []storetest.Attrs
		want   string // an error, or "" for the reader
	}{
		"block":                       {nil, "", []storetest.Attrs{keys("")}, ""},
		"environment":                 {env, "", nil, ""},
		"environment fills block":     {env, "", []storetest.Attrs{none}, ""},
		"environment switched off":    {nil, "", nil, "there is no Customer Secret Key"},
		"variables of AWS":            {map[string]string{"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "x"}, "", nil, "there is no Customer Secret Key"},
		"by name":                     {nil, "b", []storetest.Attrs{none.With("name", "a"), keys("").With("name", "b")}, ""},
		"named, and the environment":  {env, "a", []storetest.Attrs{none.With("name", "a")}, "there is no Customer Secret Key"},
		"no such name":                {env, "b", []storetest.Attrs{none.With("name", "a")}, `has the name "b"`},
		"which?":                      {env, "", []storetest.Attrs{keys("").With("name", "a")}, "set credentials_name"},
		"no secret":                   {env, "", []storetest.Attrs{none.With("access_key", "x")}, "access_key needs secret_key"},
		"no ID":                       {env, "", []storetest.Attrs{none.With("secret_key", storetest.Canary)}, "secret_key needs access_key"},
		"not an ID":                   {nil, "", []storetest.Attrs{keys("").With("access_key", "a b")}, "without spaces"},
		"not a key of the customer's": {nil, "", []storetest.Attrs{keys("").With("sse_customer_key", storetest.Canary)}, "32 bytes in base64"},
		"not a host":                  {nil, "", []storetest.Attrs{keys("").With("endpoint", "https://u:"+storetest.Canary+"@x/")}, "a host is required"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newStore(t)
			server.Put(t, bucket, home, []byte("{}"))
			kind, internet := onInternet(t, server)
			if c.env != nil {
				c.env = maps.Clone(c.env)
				maps.Copy(c.env, internet)
			}
			s := storetest.Settings(kind, c.env, c.blocks...)
			if c.env == nil { // no proxy of the environment leads to the store
				s = storetest.Settings(kind, nil, c.blocks...)
				s.LookupEnv = func(name string) (string, bool) { v, ok := internet[name]; return v, ok }
			}
			src, err := storetest.Open(kind, s, where().With("credentials_name", c.chosen), "default")
			if err == nil {
				_, err = src.Fetch(t.Context())
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), storetest.Canary) {
				t.Errorf("it shows a secret: %v", err)
			}
			if got := server.Requests(); c.want == "" && (len(got) != 1 || got[0].Host != host || got[0].AccessKey != reader.AccessKeyID || got[0].Path != "/"+bucket+"/"+home) || c.want != "" && len(got) > 0 {
				t.Errorf("got requests %+v", got)
			}
		})
	}
}

// The key of an object that is encrypted with one of the customer's.
func TestCustomerKey(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	server := newStore(t)
	server.Put(t, bucket, home, []byte("{}"))
	plain := keys(server.Serve(t)).With("sse_customer_key", key)
	if _, err := storetest.Open(Kind(), storetest.Settings(Kind(), nil, plain), where(), "default"); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("without TLS: %v", err)
	}
	kind, internet := onInternet(t, server)
	server.Requests()
	src, err := storetest.Open(kind, storetest.Settings(kind, internet, keys("").With("endpoint", "").With("sse_customer_key", key)), where(), "default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := server.Requests()[0].Header
	if got.Get("X-Amz-Server-Side-Encryption-Customer-Key") != key || got.Get("X-Amz-Server-Side-Encryption-Customer-Algorithm") != "AES256" {
		t.Errorf("got %v", got)
	}
}

func TestIsolated(t *testing.T) {
	suite().Isolated(t, "OCI_S3_ACCESS_KEY", "OCI_S3_SECRET_KEY", "OCI_sse_customer_key")
}

// The policy of the documentation allows what a read does to the object of the
// example, and nothing else.
func TestPolicy(t *testing.T) {
	text, err := os.ReadFile("../../../examples/sources/oci/policy.txt")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../../examples/sources/oci/main.tf")
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(string(text), -1)
	if len(got) != 3 || got[2][1] != words().Read || !strings.HasPrefix(string(text), "Allow group state-readers to read objects in compartment ") {
		t.Fatalf("got %q", text)
	}
	for _, name := range []string{got[0][1], got[1][1]} {
		if !strings.Contains(string(example), strconv.Quote(name)) {
			t.Errorf("the example reads no %q", name)
		}
	}
}
