// Package oci reads a state that Terraform's oci backend has written to Oracle Cloud's Object Storage. It
// uses the Amazon S3 Compatibility API and sends one GetObject request.
//
// The backend signs requests with API keys. The S3 API does not accept these; it has its own keys, called
// Customer Secret Keys.
//
// https://github.com/hashicorp/terraform/tree/main/internal/backend/remote-state/oci
// https://docs.oracle.com/en-us/iaas/Content/Object/Tasks/s3compatibleapi.htm
package oci

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

// Kind returns the oci source.
func Kind() source.Kind { return Vendor().Kind() }

// Vendor returns the store that Kind reads from.
func Vendor() object.Vendor {
	return object.Vendor{
		Table: table(), Credentials: credentials(), Locate: locate,
		Words: object.Words{ // https://docs.oracle.com/en-us/iaas/Content/API/References/apierrors.htm
			Store: "Oracle Object Storage", Short: "Oracle",
			Read: "OBJECT_READ", CustomerKey: "sse_customer_key",
			Reasons: map[string]string{
				"NoSuchBucket": "the namespace has no such bucket in this region, or the user may not read the bucket; check the name, and the " +
					"policy of the bucket's compartment",
				"BucketNotFound": "the namespace has no such bucket in this region, or the user may not read the bucket; check the name, and the " +
					"policy of the bucket's compartment",
				"NamespaceNotFound": "the region has no such namespace; check the arguments namespace and region",
				"NotAuthenticated":  "the Customer Secret Key is not valid; check it in {credentials}",
				"NotAuthorizedOrNotFound": "the object does not exist, or the user may not read the object; check the key, and the policy of the " +
					"bucket's compartment",
				"BucketNotAuthorizedOrNotFound": "the bucket does not exist, or the user may not read the bucket; check the name, and the policy of " +
					"the bucket's compartment",
			},
		},
	}
}

func table() attr.Table {
	return attr.Table{
		Name: "oci",
		Doc: "Reads the state from Oracle Cloud's Object Storage, as the `oci` backend writes it, over the S3 API. The Customer Secret Key " +
			"for it is set in `credentials`, in the provider block.",
		Attrs: []attr.Attr{
			{Name: "bucket", Type: cty.String, Required: true,
				Check: attr.Is(bucketName.MatchString, "this is not a valid bucket name; use letters, digits, dashes and underscores"),
				Doc:   "The name of the bucket."},
			{Name: "namespace", Type: cty.String, Required: true,
				Check: attr.Is(syntax.IsLabel, "this is not a valid namespace; use lowercase letters, digits and dashes"),
				Doc:   "The Object Storage namespace of the tenancy. `oci os ns get` prints it."},
			{Name: "region", Type: cty.String, Required: true, Env: []string{"OCI_region"},
				Check: attr.Is(syntax.IsLabel, "this is not the name of a region; set a name like eu-frankfurt-1"),
				Doc:   "The region of the bucket, such as `eu-frankfurt-1`."},
			{Name: "key", Type: cty.String, Default: cty.StringVal("terraform.tfstate"), Env: []string{"OCI_key"},
				Check: attr.Is(isKey, "the key begins or ends with a slash, or has two slashes in a row; correct the key"),
				Doc:   "The name of the state's object. Defaults to `terraform.tfstate`."},
			{Name: "workspace_key_prefix", Type: cty.String, Default: cty.StringVal("tf-state-env"), Env: []string{"OCI_workspace_key_prefix"},
				Check: attr.Is(isPrefix, "the value begins with a slash, or has two slashes in a row; correct the value"),
				Doc:   "The folder of the states of workspaces other than `default`. Defaults to `tf-state-env`."},
			object.VersionAttr(),
			source.ChoiceAttr("credentials_name", "oci", "to sign in with"),
		},
	}
}

func credentials() attr.Table {
	return attr.Table{
		Name: "oci",
		Doc: "Credentials for Oracle Cloud's Object Storage: a Customer Secret Key of a user, which `oci iam customer-secret-key create` " +
			"makes. The API keys of Terraform's `oci` backend cannot sign for the S3 API.",
		Attrs: []attr.Attr{
			source.NameAttr("credentials_name"),
			{Name: "access_key", Type: cty.String, Group: "identity", Env: []string{"OCI_S3_ACCESS_KEY"},
				Harmless: "It is the name of a key, which proves nothing by itself.",
				Doc:      "The ID of a Customer Secret Key, which the console calls access key. It needs `secret_key`."},
			{Name: "secret_key", Type: cty.String, Secrecy: attr.Secret, Group: "identity", RequiredWith: "access_key",
				Env: []string{"OCI_S3_SECRET_KEY"}, Harmless: harmless.Secret,
				Doc: "The Customer Secret Key itself."},
			{Name: "sse_customer_key", Type: cty.String, Secrecy: attr.Secret, Env: []string{"OCI_sse_customer_key"},
				Harmless: harmless.Secret, Check: source.CustomerKeyCheck(),
				Doc: "The key of objects that are encrypted with your own key: 32 bytes in base64, as in the backend."},
			{Name: "endpoint", Type: cty.String,
				Doc: "The host of the S3 API, or its URL, without the namespace: required in realms other than the commercial one. Defaults to " +
					"`compat.objectstorage.<region>.oraclecloud.com`."},
		},
	}
}

func locate(req source.Request, g source.Grant, n object.Network) (l object.Location, err error) {
	if g.String("access_key") == "" {
		return l, g.Errorf("", "no Customer Secret Key is set; set access_key and secret_key in {credentials}, or set the variables "+
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
