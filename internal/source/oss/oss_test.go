package oss

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
)

const (
	bucket = "acme-states"
	home   = "env:/terraform.tfstate" // where the default workspace is
)

// reader is who may read in tests.
var reader = aws.Credentials{AccessKeyID: "LTAItest", SecretAccessKey: "secret-" + objecttest.Canary}

func where() objecttest.Attrs { return objecttest.Strings("bucket", bucket, "region", "eu-central-1") }

func keys(endpoint string) objecttest.Attrs {
	return objecttest.Strings("access_key", reader.AccessKeyID, "secret_key", reader.SecretAccessKey, "endpoint", endpoint)
}

func newStore() *objecttest.Server {
	s := objecttest.New(bucket)
	s.Region, s.Keys = "eu-central-1", []aws.Credentials{reader}
	return s
}

// Whatever a data source says, a request goes to a host of the vendor's.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"acme", "evil.com/", "a.b", "a@evil.com", "x#", "x?", "a:80", "-", "é", "x--x-s3", "arn:aws:s3:::x", "A", " ",
		"evil.com%2f", "acme\n"} {
		f.Add(s, "eu-central-1")
		f.Add("acme-states", s)
	}
	f.Fuzz(func(t *testing.T, bucket, region string) {
		asked := objecttest.Asked(t, Vendor(), keys("").With("endpoint", ""), objecttest.Strings("bucket", bucket, "region", region))
		if asked == "" {
			return
		}
		if labels := strings.Split(asked, "."); len(labels) != 5 || labels[0] != bucket || labels[1] != "s3" || labels[2] != "oss-"+region ||
			labels[3]+"."+labels[4] != "aliyuncs.com" {
			t.Errorf("asked %q", asked)
		}
	})
}
