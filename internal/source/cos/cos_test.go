package cos

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

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
