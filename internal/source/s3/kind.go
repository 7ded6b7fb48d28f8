// Package s3 reads a state that Terraform's s3 backend has written to a bucket of Amazon S3 or of a store
// with the same API.
//
// https://github.com/opentofu/opentofu/tree/v1.12.6/internal/backend/remote-state/s3
// https://github.com/hashicorp/terraform/tree/main/internal/backend/remote-state/s3
package s3

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

// Kind returns the s3 source.
func Kind() source.Kind { return Vendor().Kind() }

// Vendor returns the store that Kind reads from.
func Vendor() object.Vendor {
	return object.Vendor{
		Table: table(), Credentials: credentials(), Locate: locate,
		Words: object.Words{
			Store: "S3", Short: "S3", CustomerKey: customerKeyAttr, Trust: "set custom_ca_bundle in {credentials}",
			PathStyle: "use_path_style", Unchecked: "skip_s3_checksum",
			Read: "s3:GetObject", ReadVersion: "s3:GetObjectVersion", List: "s3:ListBucket", Decrypt: "kms:Decrypt",
		},
	}
}

func table() attr.Table {
	return attr.Table{
		Name: "s3",
		Doc: "Reads the state from Amazon S3 or a compatible store, as the `s3` backend writes it, with one `GetObject`. The identity and the " +
			"endpoint are set in `credentials`, in the provider block.",
		Attrs: []attr.Attr{
			{Name: "bucket", Type: cty.String, Required: true, Doc: "The name of the bucket, or the ARN of an access point."},
			{Name: "key", Type: cty.String, Required: true, Check: attr.Text(object.CheckKey),
				Doc: "The key of the state in the bucket, such as `network/terraform.tfstate`."},
			{Name: "region", Type: cty.String, Required: true, Env: []string{"AWS_REGION", "AWS_DEFAULT_REGION"}, Check: attr.Text(checkRegion),
				Doc: "The region of the bucket, such as `eu-west-1`."},
			{Name: "workspace_key_prefix", Type: cty.String, Default: cty.StringVal("env:"),
				Check: attr.Is(func(prefix string) bool { return strings.Trim(prefix, "/") == prefix }, noSlash),
				Doc: "The first part of the keys of workspaces other than `default`: `<workspace_key_prefix>/<workspace>/<key>`. " +
					"Defaults to `env:`."},
			{Name: "version_id", Type: cty.String, Form: attr.Version, Check: attr.Is(object.IsVersion, object.NoVersion),
				Doc: "The ID of a version of the object, in a bucket that keeps versions. Defaults to the current one. It requires " +
					"`s3:GetObjectVersion`."},
			source.ChoiceAttr("credentials_name", "s3", "to sign in with"),
		},
	}
}

// These are the backend's variables, and the attribute that holds the customer's key.
const (
	customerKeyVar  = "AWS_SSE_CUSTOMER_KEY"
	endpointVar     = "AWS_ENDPOINT_URL_S3"
	oldEndpointVar  = "AWS_S3_ENDPOINT"
	stsVar          = "AWS_ENDPOINT_URL_STS"
	oldSTSVar       = "AWS_STS_ENDPOINT"
	customerKeyAttr = "sse_customer_key"
)

const noEndpoint = "this is not the URL of an endpoint; set a URL like https://s3.example.com, without a user name, a password or a query"

func credentials() attr.Table {
	return attr.Table{
		Name: "s3",
		Doc: "Credentials and endpoints for S3, with the arguments of the `s3` backend. Without credentials here, the usual sources of the AWS " +
			"SDKs apply.",
		Attrs: slices.Concat([]attr.Attr{
			source.NameAttr("credentials_name"),
			{Name: customerKeyAttr, Type: cty.String, Secrecy: attr.Secret, Env: []string{customerKeyVar}, Harmless: harmless.Secret,
				Check: source.CustomerKeyCheck(),
				Doc: "The key of objects that are encrypted with your own key (SSE-C): 32 bytes in base64. It is sent with every read, and only over " +
					"TLS."},
			{Name: "use_path_style", Type: cty.Bool,
				Doc: "Whether to request `https://<endpoint>/<bucket>/<key>` in place of `https://<bucket>.<endpoint>/<key>`, for stores that need " +
					"it. Defaults to `false`."},
			{Name: "skip_s3_checksum", Type: cty.Bool,
				Doc: "Whether to request no checksum of the answer, for stores that calculate another one than AWS. Defaults to `false`."},
			{Name: "skip_region_validation", Type: cty.Bool,
				Doc: "Accepted as in the backend, but without effect: names of regions are never looked up in a list."},
		}, awsauth.CredentialAttrs("S3"), awsauth.NetworkAttrs("state", attr.Attr{
			Name: "endpoints", Default: cty.EmptyObjectVal, Doc: "Endpoints in place of AWS's own.", Attrs: []attr.Attr{
				{Name: "s3", Type: cty.String, Env: []string{endpointVar, oldEndpointVar, "AWS_ENDPOINT_URL"},
					Check: attr.Is(recognize.IsEndpoint, noEndpoint),
					Doc:   "The URL of S3, or of a store that speaks its protocol. The variables also apply without an `endpoints` block."},
				{Name: "sts", Type: cty.String, Env: []string{stsVar, oldSTSVar}, Doc: "The URL of AWS STS, which assumes roles. The variables also " +
					"apply without an `endpoints` block."},
				{Name: "iam", Type: cty.String, Doc: "Accepted as in the backend, but without effect: AWS IAM is never called."},
			},
		})),
	}
}
