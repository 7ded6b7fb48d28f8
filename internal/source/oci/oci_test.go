package oci

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

const (
	bucket = "Acme_states"
	home   = "terraform.tfstate" // where the default workspace is
)

// reader is who may read in tests.
var reader = aws.Credentials{AccessKeyID: "oci-key-id", SecretAccessKey: "secret-" + objecttest.Canary}

func where() objecttest.Attrs {
	return objecttest.Strings("bucket", bucket, "namespace", "acme", "region", "eu-frankfurt-1")
}

func keys(endpoint string) objecttest.Attrs {
	return objecttest.Strings("access_key", reader.AccessKeyID, "secret_key", reader.SecretAccessKey, "endpoint", endpoint)
}

func newStore() *objecttest.Server {
	s := objecttest.New(bucket)
	s.Region, s.Keys = "eu-frankfurt-1", []aws.Credentials{reader}
	return s
}

// Whatever a data source says, a request goes to a host of the vendor's, or to
// a host below the one that credentials say.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"acme", "evil.com/", "a.b", "a@evil.com", "x#", "x?", "a:80", "-", "é", "x--x-s3", "arn:aws:s3:::x", "A", " ",
		"evil.com%2f", "acme\n", ".."} {
		f.Add("states", s, "eu-frankfurt-1", false)
		f.Add("states", "acme", s, false)
		f.Add(s, "acme", "eu-frankfurt-1", true)
	}
	f.Fuzz(func(t *testing.T, bucket, namespace, region string, own bool) {
		endpoint, want := "", namespace+".compat.objectstorage."+region+".oraclecloud.com"
		if own {
			endpoint, want = "store.example.com", namespace+".store.example.com"
		}
		asked := objecttest.Asked(t, Vendor(), keys("").With("endpoint", endpoint),
			objecttest.Strings("bucket", bucket, "namespace", namespace, "region", region))
		if asked == "" {
			return
		}
		if asked != want || strings.ContainsAny(namespace+region, "./:@") {
			t.Errorf("asked %q", asked)
		}
	})
}

func TestKeys(t *testing.T) {
	env := map[string]string{
		"OCI_S3_ACCESS_KEY": reader.AccessKeyID, "OCI_S3_SECRET_KEY": reader.SecretAccessKey,
		"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "aws-" + objecttest.Canary, "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
		"AWS_REGION": "us-east-1",
	}
	none := objecttest.Attrs{}
	says := sourcetest.OpenMistakes(t, "oci, keys")
	for name, c := range map[string]struct {
		env    map[string]string
		chosen string // credentials_name
		blocks []objecttest.Attrs
		fails  bool
	}{
		"block":                    {blocks: []objecttest.Attrs{keys("")}},
		"environment":              {env: env},
		"environment fills block":  {env: env, blocks: []objecttest.Attrs{none}},
		"environment switched off": {fails: true},
		"variables of AWS": {env: map[string]string{"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "x"},
			fails: true},
		"by name": {chosen: "b", blocks: []objecttest.Attrs{none.With("name", "a"), keys("").With("name", "b")}},
		"named, and the environment": {env: env, chosen: "a", blocks: []objecttest.Attrs{none.With("name", "a")},
			fails: true},
		"no such name": {env: env, chosen: "b", blocks: []objecttest.Attrs{none.With("name", "a")}, fails: true},
		"which?":       {env: env, blocks: []objecttest.Attrs{keys("").With("name", "a")}, fails: true},
		"no secret":    {env: env, blocks: []objecttest.Attrs{none.With("access_key", "x")}, fails: true},
		"no ID": {env: env, blocks: []objecttest.Attrs{none.With("secret_key", objecttest.Canary)},
			fails: true},
		"not an ID": {blocks: []objecttest.Attrs{keys("").With("access_key", "a b")}, fails: true},
		"not a key of the customer's": {blocks: []objecttest.Attrs{keys("").With("sse_customer_key", objecttest.Canary)},
			fails: true},
		"not a host": {blocks: []objecttest.Attrs{keys("").With("endpoint", "https://u:"+objecttest.Canary+"@x/")}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := newStore()
			server.Put(bucket, home, []byte("{}"))
			network, internet := onInternet(t, server)
			network.Proxy = func(*url.URL) (*url.URL, error) { return url.Parse(internet["HTTPS_PROXY"]) }
			kind := Vendor().KindOver(network)
			s := objecttest.Settings(kind, objecttest.Variables(c.env), c.blocks...)
			_, err := objecttest.Read(t, kind, s, where().With("credentials_name", c.chosen), "default")
			got := server.Requests()
			if c.fails {
				if says.Error(t, name, err); len(got) > 0 {
					t.Errorf("got requests %+v", got)
				}
				return
			}
			if err != nil || (len(got) != 1 || got[0].Host != host || got[0].AccessKey != reader.AccessKeyID || got[0].Path != "/"+bucket+"/"+
				home) {
				t.Errorf("got %v, and requests %+v", err, got)
			}
		})
	}
}

// The key of an object that is encrypted with one of the customer's.
//
// Promise: Where secrets go
func TestCustomerKey(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	server := newStore()
	server.Put(bucket, home, []byte("{}"))
	server.Seal(bucket, home, bytes.Repeat([]byte{7}, 32))
	plain := keys(server.Serve(t)).With("sse_customer_key", key)
	_, err := objecttest.Read(t, Kind(), objecttest.Settings(Kind(), nil, plain), where(), "default")
	sourcetest.OpenMistakes(t, "oci, sse_customer_key").Error(t, "without TLS", err)
	if got := server.Requests(); len(got) > 0 {
		t.Errorf("without TLS: got requests %+v", got)
	}
	network, env := onInternet(t, server)
	kind := Vendor().KindOver(network)
	s := objecttest.Settings(kind, objecttest.Variables(env), keys("").With("sse_customer_key", key))
	if _, err := objecttest.Read(t, kind, s, where(), "default"); err != nil {
		t.Fatal(err)
	}
	got := server.Requests()[0].Header
	if got.Get("X-Amz-Server-Side-Encryption-Customer-Key") != key || got.Get("X-Amz-Server-Side-Encryption-Customer-Algorithm") != "AES256" {
		t.Errorf("got %v", got)
	}
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
	if len(got) != 3 || got[2][1] != Vendor().Words.Read || !strings.HasPrefix(string(text),
		"Allow group state-readers to read objects in compartment ") {
		t.Fatalf("got %q", text)
	}
	for _, name := range []string{got[0][1], got[1][1]} {
		if !strings.Contains(string(example), strconv.Quote(name)) {
			t.Errorf("the example reads no %q", name)
		}
	}
}
