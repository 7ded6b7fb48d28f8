package awskms

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
)

const doc = "Has AWS KMS wrap the key of each file. Reading a file requires `kms:Decrypt` on the key and nothing " +
	"else; sealing one requires `kms:GenerateDataKey`. " +
	"Credentials come from the arguments below, else from where every AWS SDK looks: the environment " +
	"(`AWS_ACCESS_KEY_ID` and the like, or a web identity), the shared configuration files (`AWS_PROFILE`), a " +
	"container's role, an EC2 instance's role. " +
	"`AWS_ENDPOINT_URL_KMS` sends the requests to another endpoint; beside a secret in the arguments, set `endpoints` instead. " +
	"The `credential_process` of a profile gets the " +
	"environment without the secrets of this provider and of Terraform. " +
	"With `use_environment = false`, only the arguments, the shared files and an EC2 instance's role are left, " +
	"such a program gets only the variables that it needs to run, and profiles that sign in with a browser " +
	"(SSO) or name the environment (`credential_source`) are refused. " +
	"Where KMS answers that the key is denied, disabled, not found or the wrong one, the next method is tried; a " +
	"timeout or a missing credential is final."

func table() attr.Table {
	attrs := slices.Concat(keyAttrs(), awsauth.CredentialAttrs("KMS"), awsauth.NetworkAttrs("keys", attr.Attr{
		Name: "endpoints", Doc: "Endpoints to use instead of AWS's own.", Attrs: []attr.Attr{
			{Name: "kms", Type: cty.String, Place: true, Env: endpointVars(), Doc: "The URL of AWS KMS, which OpenTofu 1.12 does " +
				"not have. The variables count without an `endpoints` block as well."},
			{Name: "sts", Type: cty.String, Place: true, Env: []string{"AWS_ENDPOINT_URL_STS"}, Doc: "The URL of AWS STS, which assumes roles."},
			{Name: "iam", Type: cty.String, Place: true, Env: []string{"AWS_ENDPOINT_URL_IAM"}, Doc: "Accepted as " +
				"in OpenTofu. AWS IAM is never called."},
		},
	}))
	return attr.Table{Name: "aws_kms", Doc: doc, Attrs: attrs}
}

// endpointVars are the variables that the SDK reads.
func endpointVars() []string { return []string{"AWS_ENDPOINT_URL_KMS", "AWS_ENDPOINT_URL"} }

func keyAttrs() []attr.Attr {
	return []attr.Attr{
		{Name: "kms_key_id", Type: cty.String, Required: true, Doc: "The KMS key: its ID, its ARN, or an alias such as `alias/tf-state`."},
		{Name: "key_spec", Type: cty.String, Required: true, Doc: "The kind of data key for new files: `AES_256` " +
			"or `AES_128`. A file that is read holds its own."},
		{Name: "encryption_context", Type: cty.Map(cty.String), Doc: "The encryption context for new keys, which " +
			"key policies can require. It is stored in the file in clear. A file that is read has its own."},
		{Name: "region", Type: cty.String, Required: true, Env: []string{"AWS_REGION",
			"AWS_DEFAULT_REGION"}, Doc: "The region of the key, such as `eu-west-1`."},
	}
}
