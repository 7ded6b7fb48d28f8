package oci

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

func locate(req source.Request, g source.Grant, n object.Network) (l object.Location, err error) {
	if g.String("access_key") == "" {
		return l, g.Errorf("", "no Customer Secret Key is set; set access_key and secret_key in {credentials}, or the variables "+
			"OCI_S3_ACCESS_KEY and OCI_S3_SECRET_KEY")
	}
	keys, err := object.KeysOf(g, "access_key", "")
	if err != nil {
		return l, err
	}
	namespace := req.String("namespace")
	l.Region, l.Of = req.String("region"), fmt.Sprintf(" of the namespace %q", namespace)
	endpoint, err := object.Endpoint(g, "endpoint", "compat.objectstorage."+l.Region+".oraclecloud.com")
	if err != nil {
		return l, err
	}
	if !object.IsAddress(endpoint) {
		endpoint.Host = namespace + "." + endpoint.Host
	}
	l.Host = endpoint.Host
	l.Connect = func(context.Context) (*s3.Client, error) {
		provider := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil })
		return object.NewClient(object.Place{Endpoint: endpoint, PathStyle: true, Region: l.Region, Keys: provider}, n), nil
	}
	l.CustomerKey = source.CustomerKey(g.String("sse_customer_key"))
	if l.Bucket, l.Key = req.String("bucket"), req.String("key"); req.OtherWorkspace() != "" {
		l.Key = path.Join(req.String("workspace_key_prefix"), req.OtherWorkspace(), l.Key)
	}
	if err := object.CheckKey(l.Key); err != nil {
		return l, req.Errorf("key", "%w", err)
	}
	return l, nil
}

// bucketName matches the bucket names that the backend accepts.
var bucketName = lazyregexp.New(`^[A-Za-z0-9_-]{1,256}$`)

func isPrefix(text string) bool {
	return !strings.HasPrefix(text, "/") && !strings.Contains(text, "//")
}

func isKey(text string) bool { return isPrefix(text) && !strings.HasSuffix(text, "/") }
