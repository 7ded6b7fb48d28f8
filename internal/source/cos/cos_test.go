package cos

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
)

const (
	bucket = "acme-1250000000"
	home   = "terraform.tfstate" // where the default workspace is
)

// reader is who may read in tests.
var reader = aws.Credentials{AccessKeyID: "AKIDtest", SecretAccessKey: "secret-" + objecttest.Canary}

func where() objecttest.Attrs { return objecttest.Strings("bucket", bucket, "region", "eu-frankfurt") }

func keys(endpoint string) objecttest.Attrs {
	return objecttest.Strings("secret_id", reader.AccessKeyID, "secret_key", reader.SecretAccessKey, "endpoint", endpoint)
}

func newStore() *objecttest.Server {
	s := objecttest.New(bucket)
	s.Region, s.Keys = "eu-frankfurt", []aws.Credentials{reader}
	return s
}

// Every attribute of the role in the backend, of OpenTofu and of Terraform.
func TestAttributesOfRole(t *testing.T) {
	block, _ := credentials().Attr("assume_role")
	var names []string
	for _, a := range block.Attrs {
		names = append(names, a.Name)
	}
	if want := []string{"role_arn", "session_name", "session_duration", "policy", "external_id"}; !slices.Equal(names, want) {
		t.Errorf("assume_role has %q, want %q", names, want)
	}
}

// Whatever a data source says, a request goes to a host of the vendor's.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"acme", "evil.com/", "a.b", "a@evil.com", "x#", "x?", "a:80", "-", "é", "x--x-s3", "arn:aws:s3:::x", "A", " ",
		"evil.com%2f", "acme\n"} {
		f.Add(s, "eu-frankfurt", false)
		f.Add("acme-1250000000", s, true)
		f.Add("acme-1250000000", s, false)
	}
	f.Fuzz(func(t *testing.T, bucket, region string, accelerate bool) {
		a := objecttest.Strings("bucket", bucket, "region", region)
		a["accelerate"] = cty.BoolVal(accelerate)
		asked := objecttest.Asked(t, Vendor(), keys("").With("endpoint", ""), a)
		if asked == "" {
			return
		}
		if accelerate {
			region = "accelerate"
		}
		if labels := strings.Split(asked, "."); len(labels) != 5 || labels[0] != bucket || labels[1] != "cos" || labels[2] != region ||
			labels[3]+"."+labels[4] != "myqcloud.com" {
			t.Errorf("asked %q", asked)
		}
	})
}
