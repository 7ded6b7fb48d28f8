package s3

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

func TestMain(m *testing.M) {
	if os.Getenv("S3_TEST_READS") != "" { // a process of a test, which has its own
		os.Exit(m.Run())
	}
	nettest.ForgetMachine("AWS_")
	os.Exit(m.Run())
}

type attrs = objecttest.Attrs

const (
	bucket = "states"
	key    = "network/terraform.tfstate"
)

// asks is what a data source says.
func asks() attrs { return objecttest.Strings("bucket", bucket, "key", key, "region", "eu-west-1") }

// block is one of credentials, which asks at an endpoint.
func block(endpoint string) attrs {
	return objecttest.Strings("access_key", "AKIATEST", "secret_key", "canary-secret").With("use_path_style", true).With("max_retries", 2).
		With("endpoints", objecttest.Strings("s3", endpoint))
}

func settings(env attr.LookupEnv, blocks ...attrs) source.Settings {
	return objecttest.Settings(Kind(), env, blocks...)
}

// open makes a source, or fails.
func open(a attrs, s source.Settings, workspace string) (source.Source, error) {
	return objecttest.Open(Vendor().KindOver(objecttest.Hurried()), s, a, workspace)
}

// read reads a state, and looks at the error.
func read(t *testing.T, a attrs, s source.Settings) (*source.Snapshot, error) {
	t.Helper()
	return objecttest.Read(t, Vendor().KindOver(objecttest.Hurried()), s, a, "default")
}

// stored is a server that holds data, or no object where it is nil.
func stored(data []byte) *objecttest.Server {
	server := objecttest.New(bucket)
	server.Region, server.Keys = "eu-west-1", keysOf("TEST")
	server.Keys[0].SecretAccessKey = "canary-secret"
	if data != nil {
		server.Put(bucket, key, data)
	}
	return server
}

// keysOf are the keys of these people.
func keysOf(people ...string) (keys []aws.Credentials) {
	for _, name := range people {
		keys = append(keys, aws.Credentials{AccessKeyID: "AKIA" + name, SecretAccessKey: "canary-AKIA" + name})
	}
	return keys
}
