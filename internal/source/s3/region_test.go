package s3

import (
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
)

// TestRegionOfTheEnvironment: it leads no secret of the code to hosts of another
// partition.
func TestRegionOfTheEnvironment(t *testing.T) {
	t.Parallel()
	keys := objecttest.Strings("access_key", "AKIATEST", "secret_key", "canary-secret")
	keyOnly := objecttest.Strings("sse_customer_key", strings.Repeat("A", 43)+"=")
	role := objecttest.Strings("role_arn", "arn:aws-cn:iam::111122223333:role/reader")
	for name, c := range map[string]struct {
		region  string // of AWS_REGION
		asks    attrs
		block   attrs
		refused bool
	}{
		"AWS":                   {"eu-west-1", asks().With("region", nil), keys, false},
		"China":                 {"cn-north-1", asks().With("region", nil), keys, true},
		"GovCloud":              {"us-gov-west-1", asks().With("region", nil), keys, true},
		"a region made up":      {"eu-evil", asks().With("region", nil), keys, true},
		"of the data source":    {"eu-west-1", asks().With("region", "cn-north-1"), keys, false},
		"nothing to lose":       {"cn-north-1", asks().With("region", nil), attrs{}, false},
		"an endpoint":           {"main", asks().With("region", nil), block("https://minio.example.com"), false},
		"an endpoint, and STS":  {"cn-north-1", asks().With("region", nil), block("https://s3.example.com").With("assume_role", role), true},
		"a key of SSE-C":        {"cn-north-1", asks().With("region", nil), keyOnly, true},
		"a profile of the code": {"cn-north-1", asks().With("region", nil), objecttest.Strings("profile", "p"), true},
	} {
		env := func(name string) (string, bool) { return c.region, name == "AWS_REGION" }
		_, err := open(c.asks, settings(env, c.block), "default")
		isRefusal := err != nil && strings.Contains(err.Error(), "AWS_REGION must not affect the secret in ")
		if isRefusal != c.refused || err != nil && !isRefusal {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
