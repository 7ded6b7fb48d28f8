package oci

import (
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
