package awskms

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

const doc = "Has AWS KMS wrap the key of each file. To read a file takes `kms:Decrypt` on the key and nothing else; to seal one takes `kms:GenerateDataKey`. " +
	"Credentials come from the arguments below, else from where every AWS SDK looks: the environment (`AWS_ACCESS_KEY_ID` and its kin, or a web identity), the shared configuration files (`AWS_PROFILE`), a container's role, an EC2 instance's role. " +
	"`AWS_ENDPOINT_URL_KMS` sends the requests to another endpoint. The `credential_process` of a profile gets the environment without the secrets of this provider and of Terraform. " +
	"With `use_environment = false`, only the arguments, the shared files and an EC2 instance's role are left, such a program gets no environment but what it needs to run, and profiles that sign in with a browser (SSO) or name the environment (`credential_source`) are refused. " +
	"Where KMS answers that the key is denied, disabled, not found or the wrong one, the next method is tried; a timeout or a missing credential is final."

func table() config.Table {
	var attrs []config.Attr
	attrs = append(attrs, keyAttrs()...)
	attrs = append(attrs, credentialAttrs()...)
	attrs = append(attrs, networkAttrs()...)
	return config.Table{Name: "aws_kms", Doc: doc, Attrs: attrs}
}

func keyAttrs() []config.Attr {
	return []config.Attr{
		{Name: "kms_key_id", Type: cty.String, Required: true, Doc: "The KMS key: its ID, its ARN, or an alias such as `alias/tf-state`."},
		{Name: "key_spec", Type: cty.String, Required: true, Doc: "The kind of data key for new files: `AES_256` or `AES_128`. A file that is read holds its own."},
		{Name: "encryption_context", Type: cty.Map(cty.String), Doc: "The encryption context for new keys, which key policies can ask for. It is stored in the file, in clear, and a file that is read names its own."},
		{Name: "region", Type: cty.String, Required: true, Env: []string{"AWS_REGION", "AWS_DEFAULT_REGION"}, Doc: "The region of the key, such as `eu-west-1`."},
	}
}

func credentialAttrs() []config.Attr {
	return []config.Attr{
		{Name: "access_key", Type: cty.String, Doc: "The ID of an access key. It goes before every other source of credentials."},
		{Name: "secret_key", Type: cty.String, Sensitive: true, Doc: "The secret of the access key."},
		{Name: "token", Type: cty.String, Sensitive: true, Doc: "The session token of a temporary access key."},
		{Name: "profile", Type: cty.String, Doc: "A profile of the shared configuration files. It goes before credentials in the environment."},
		{Name: "shared_config_files", Type: cty.List(cty.String), Env: []string{"AWS_SHARED_CONFIG_FILE", "AWS_CONFIG_FILE"}, Doc: "Paths of shared configuration files. Defaults to `~/.aws/config`."},
		{Name: "shared_credentials_files", Type: cty.List(cty.String), Env: []string{"AWS_SHARED_CREDENTIALS_FILE"}, Doc: "Paths of shared credentials files. Defaults to `~/.aws/credentials`."},
		{Name: "assume_role", Doc: "A role to assume with the credentials.", Attrs: append(roleAttrs(
			config.Attr{Name: "role_arn", Type: cty.String, Required: true, Doc: "The ARN of the role."},
			config.Attr{Name: "session_name", Type: cty.String, Doc: "A name for the session. Defaults to one that the SDK makes up."},
		),
			config.Attr{Name: "external_id", Type: cty.String, Doc: "The external ID that the role asks for."},
			config.Attr{Name: "tags", Type: cty.Map(cty.String), Doc: "Session tags."},
			config.Attr{Name: "transitive_tag_keys", Type: cty.List(cty.String), Doc: "The session tags that pass on to further roles."},
		)},
		{Name: "assume_role_with_web_identity", Doc: "A role to assume with a token of a web identity, such as that of a CI job.", Attrs: append(roleAttrs(
			config.Attr{Name: "role_arn", Type: cty.String, Required: true, Env: []string{"AWS_ROLE_ARN"}, Doc: "The ARN of the role."},
			config.Attr{Name: "session_name", Type: cty.String, Env: []string{"AWS_ROLE_SESSION_NAME"}, Doc: "A name for the session. Defaults to one that the SDK makes up."},
		),
			config.Attr{Name: "web_identity_token", Type: cty.String, Sensitive: true, Env: []string{"AWS_WEB_IDENTITY_TOKEN"}, Doc: "The token. It goes before `web_identity_token_file`."},
			config.Attr{Name: "web_identity_token_file", Type: cty.String, Env: []string{"AWS_WEB_IDENTITY_TOKEN_FILE"}, Doc: "The path of a file that holds the token. It is read each time a token is needed."},
		)},
		{Name: "allowed_account_ids", Type: cty.List(cty.String), Doc: "The only AWS accounts whose credentials may be used. This costs a call of `sts:GetCallerIdentity`. At most one of this and `forbidden_account_ids`."},
		{Name: "forbidden_account_ids", Type: cty.List(cty.String), Doc: "AWS accounts whose credentials must not be used. This costs a call of `sts:GetCallerIdentity`."},
		{Name: "skip_credentials_validation", Type: cty.Bool, Doc: "Accepted as in OpenTofu. Credentials are never checked beforehand, whatever this says: KMS does that."},
		{Name: "skip_requesting_account_id", Type: cty.Bool, Doc: "Accepted as in OpenTofu. The account is asked for only where `allowed_account_ids` or `forbidden_account_ids` is set."},
		{Name: "skip_metadata_api_check", Type: cty.Bool, Doc: "Whether to leave the metadata service of EC2 alone. Defaults to what `AWS_EC2_METADATA_DISABLED` says."},
		{Name: "ec2_metadata_service_endpoint", Type: cty.String, Env: []string{"AWS_EC2_METADATA_SERVICE_ENDPOINT"}, Doc: "The URL of the metadata service of EC2."},
		{Name: "ec2_metadata_service_endpoint_mode", Type: cty.String, Env: []string{"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"}, Doc: "`IPv4` or `IPv6`: how to reach the metadata service of EC2."},
	}
}

// roleAttrs are what both ways to assume a role have in common, after first.
func roleAttrs(first ...config.Attr) []config.Attr {
	return append(first,
		config.Attr{Name: "duration", Type: cty.String, Doc: "How long the session lasts, from `15m` to `12h`. Defaults to `15m`, with a web identity to an hour."},
		config.Attr{Name: "policy", Type: cty.String, Doc: "A policy in JSON that narrows the session further."},
		config.Attr{Name: "policy_arns", Type: cty.List(cty.String), Doc: "ARNs of policies that narrow the session further."},
	)
}

func networkAttrs() []config.Attr {
	return []config.Attr{
		{Name: "endpoints", Doc: "Endpoints in the place of AWS's own. For KMS there is `AWS_ENDPOINT_URL_KMS`.", Attrs: []config.Attr{
			{Name: "sts", Type: cty.String, Env: []string{"AWS_ENDPOINT_URL_STS"}, Doc: "The URL of AWS STS, which assumes roles."},
			{Name: "iam", Type: cty.String, Env: []string{"AWS_ENDPOINT_URL_IAM"}, Doc: "Accepted as in OpenTofu. AWS IAM is never called."},
		}},
		{Name: "sts_region", Type: cty.String, Doc: "The region of AWS STS. Defaults to `region`."},
		{Name: "max_retries", Type: cty.Number, Default: cty.NumberIntVal(defaultAttempts), Doc: "How often a request is sent before it fails, when the service is busy or out of reach. Defaults to `5`."},
		{Name: "retry_mode", Type: cty.String, Doc: "`standard` or `adaptive`. Defaults to what `AWS_RETRY_MODE` says, else `standard`."},
		{Name: "http_proxy", Type: cty.String, Sensitive: true, Doc: "The URL of a proxy, also for HTTPS when there is no `https_proxy`."},
		{Name: "https_proxy", Type: cty.String, Sensitive: true, Env: []string{"HTTPS_PROXY", "https_proxy"}, Doc: "The URL of a proxy for HTTPS. The empty string means none."},
		{Name: "no_proxy", Type: cty.String, Env: []string{"NO_PROXY", "no_proxy"}, Doc: "Hosts, domains and networks that are reached without a proxy, separated by commas."},
		{Name: "insecure", Type: cty.Bool, Doc: "Whether to accept any TLS certificate. Whoever sits in between then gets the keys."},
		{Name: "custom_ca_bundle", Type: cty.String, Env: []string{"AWS_CA_BUNDLE"}, Doc: "The path of a PEM file with the only certificate authorities to trust."},
		{Name: "use_fips_endpoint", Type: cty.Bool, Doc: "Whether to use the FIPS endpoints. Defaults to what `AWS_USE_FIPS_ENDPOINT` says."},
		{Name: "use_dualstack_endpoint", Type: cty.Bool, Doc: "Whether to use the endpoints that speak IPv6 as well. Defaults to what `AWS_USE_DUALSTACK_ENDPOINT` says."},
	}
}
