package awsauth

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// Reasons for [attr.Attr.Harmless].
const (
	metadataHarmless = "The metadata service is told no secret of the code: what it answers is an identity of its own."
	variantHarmless  = "The hosts are AWS's own, as those are that are asked without it."
	retriesHarmless  = "How often something is tried changes neither what is sent nor where."
)

// HarmlessRegion is the reason why an environment variable may set a region for which [IsCommercial] is true.
const HarmlessRegion = "Regions of AWS's own partition have hosts of AWS, to which the secrets of the code are sent in any case."

// IsCommercial reports whether a region belongs to the partition "aws". China, GovCloud and other partitions
// have separate hosts and accounts. The pattern comes from the SDK
// (aws-sdk-go-v2/internal/endpoints/awsrulesfn/partitions.json).
func IsCommercial(region string) bool { return commercial.MatchString(region) }

var commercial = lazyregexp.New(`^(us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d+$`)

// Error messages for invalid values.
const (
	pathRequired  = "this is the content of a file, not its path; write the content to a file, and give the path"
	roleRequired  = "this is not the ARN of a role; set an ARN like arn:aws:iam::123456789012:role/reader"
	proxyRequired = "this is not the URL of a proxy; write a URL like http://proxy.example.com:3128"
)

// CredentialAttrs returns the attributes for credentials. Their documentation mentions the service.
func CredentialAttrs(service string) []attr.Attr {
	return []attr.Attr{
		{Name: "access_key", Type: cty.String, Group: "keys", RequiredWith: "secret_key",
			Harmless: "It is the name of a key, which proves nothing by itself.",
			Doc:      "The ID of an access key. It takes precedence over all other credentials, such as `AWS_ACCESS_KEY_ID`."},
		{Name: "secret_key", Type: cty.String, Secrecy: attr.Secret, Group: "keys", RequiredWith: "access_key",
			Check: attr.Is(isSecretKey, "this is the ID of a key; swap access_key and secret_key"),
			Doc:   "The secret of the access key; in the environment, `AWS_SECRET_ACCESS_KEY`."},
		{Name: "token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Group: "keys", RequiredWith: "access_key",
			Doc: "The session token of a temporary access key; in the environment, `AWS_SESSION_TOKEN`."},
		{Name: "profile", Type: cty.String, Secrecy: attr.NamesSecret, EntryInFiles: []string{"shared_config_files", "shared_credentials_files"},
			Doc: "A profile of the shared configuration files. It takes precedence over credentials in the environment, and over `AWS_PROFILE`."},
		// Both kinds of files may set endpoints. Credentials files can do so only for profiles that are not
		// in a configuration file.
		{Name: "shared_config_files", Type: cty.List(cty.String), Secrecy: attr.NamesSecret, UnlessGroup: "keys",
			EntryInFiles: []string{"shared_credentials_files"}, Check: attr.Is(isPath, pathRequired),
			Env: []string{"AWS_SHARED_CONFIG_FILE", "AWS_CONFIG_FILE"}, Doc: "Paths of shared configuration files. Defaults to `~/.aws/config`."},
		{Name: "shared_credentials_files", Type: cty.List(cty.String), Secrecy: attr.NamesSecret, UnlessGroup: "keys",
			Env: []string{"AWS_SHARED_CREDENTIALS_FILE"}, Check: attr.Is(isPath, pathRequired),
			Doc: "Paths of shared credentials files. Defaults to `~/.aws/credentials`."},
		{Name: "assume_role", Doc: "A role to assume with the credentials.", Attrs: append(roleAttrs(
			attr.Attr{Name: "role_arn", Type: cty.String, Required: true, Check: attr.Is(isARN, roleRequired), Doc: "The ARN of the role."},
			attr.Attr{Name: "session_name", Type: cty.String, Doc: "A name for the session. Defaults to one that the SDK makes up."},
		),
			attr.Attr{Name: "external_id", Type: cty.String, Doc: "The external ID that the role requires."},
			attr.Attr{Name: "tags", Type: cty.Map(cty.String), Doc: "Session tags."},
			attr.Attr{Name: "transitive_tag_keys", Type: cty.List(cty.String), Doc: "The session tags that pass on to further roles."},
		)},
		{Name: "assume_role_with_web_identity", Group: "keys", Doc: "A role to assume with a token of a web identity, such as " +
			"that of a CI job.", Attrs: append(roleAttrs(
			attr.Attr{Name: "role_arn", Type: cty.String, Required: true, Env: []string{"AWS_ROLE_ARN"}, Doc: "The ARN of the role.",
				Check:    attr.Is(isARN, roleRequired),
				Harmless: "A role is a name: AWS gives its keys only to those whose token its owner trusts."},
			attr.Attr{Name: "session_name", Type: cty.String, Env: []string{"AWS_ROLE_SESSION_NAME"},
				Harmless: "It is what AWS calls the session in its logs.",
				Doc:      "A name for the session. Defaults to one that the SDK makes up."},
		),
			attr.Attr{Name: "web_identity_token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Group: "token",
				Harmless: harmless.Secret, Env: []string{"AWS_WEB_IDENTITY_TOKEN"},
				Doc: "The token. It takes precedence over `web_identity_token_file`."},
			attr.Attr{Name: "web_identity_token_file", Type: cty.String, Secrecy: attr.NamesSecret, Group: "token", Harmless: harmless.Secret,
				Env: []string{"AWS_WEB_IDENTITY_TOKEN_FILE"},
				Doc: "The path of a file that holds the token. It is read each time a token is needed."},
		)},
		{Name: "allowed_account_ids", Type: cty.List(cty.String), Doc: "The only AWS accounts whose credentials " +
			"may be used. This costs a call of `sts:GetCallerIdentity`. At most one of this and " +
			"`forbidden_account_ids`."},
		{Name: "forbidden_account_ids", Type: cty.List(cty.String), Excludes: []string{"allowed_account_ids"},
			Doc: "AWS accounts whose credentials must not " +
				"be used. This costs a call of `sts:GetCallerIdentity`."},
		{Name: "skip_credentials_validation", Type: cty.Bool, Doc: "Accepted as in OpenTofu. Credentials are never " +
			"checked beforehand, whatever this says: " + service + " does that."},
		{Name: "skip_requesting_account_id", Type: cty.Bool, Doc: "Accepted as in OpenTofu. The account is looked " +
			"up only if `allowed_account_ids` or `forbidden_account_ids` is set."},
		{Name: "skip_metadata_api_check", Type: cty.Bool, Doc: "Whether to leave the metadata service of EC2 " +
			"alone. Defaults to what `AWS_EC2_METADATA_DISABLED` says."},
		{Name: "ec2_metadata_service_endpoint", Type: cty.String, Env: []string{"AWS_EC2_METADATA_SERVICE_ENDPOINT"},
			Check:    attr.Is(recognize.IsHTTP, "this is not an http or https address"),
			Harmless: metadataHarmless, Doc: "The URL of the metadata service of EC2."},
		{Name: "ec2_metadata_service_endpoint_mode", Type: cty.String, Env: []string{"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"},
			Check:    attr.OneOf("IPv4", "IPv6"),
			Harmless: metadataHarmless, Doc: "`IPv4` or `IPv6`: how to reach the metadata service of EC2."},
	}
}

// roleAttrs returns the attributes in first, followed by the attributes that both ways of assuming a role
// share.
func roleAttrs(first ...attr.Attr) []attr.Attr {
	return append(first,
		attr.Attr{Name: "duration", Type: cty.String, Check: attr.Is(isSession, "the value must be a duration from 15m to 12h"),
			Doc: "How long the session lasts, from `15m` to `12h`. " +
				"Defaults to `15m`, with a web identity to an hour."},
		attr.Attr{Name: "policy", Type: cty.String, Doc: "A policy in JSON that narrows the session further."},
		attr.Attr{Name: "policy_arns", Type: cty.List(cty.String),
			Check: attr.Is(isPolicy, "an element is not the ARN of an IAM policy; write ARNs like arn:aws:iam::aws:policy/ReadOnlyAccess"),
			Doc:   "ARNs of policies that narrow the session further."},
	)
}

// NetworkAttrs returns the attributes for connections to AWS services. The parameter what names the data that
// others can read if certificates are not verified, for the documentation. The block endpoints has an
// attribute for each service that has an endpoint.
func NetworkAttrs(what string, endpoints attr.Attr) []attr.Attr {
	return []attr.Attr{
		endpoints,
		{Name: "sts_region", Type: cty.String, Doc: "The region of AWS STS. Defaults to `region`."},
		{Name: "max_retries", Type: cty.Number, Default: cty.NumberIntVal(defaultAttempts), Harmless: retriesHarmless,
			Check: attr.Between(0, maxAttempts), Doc: "How often a request " +
				"is sent before it fails, when the service is busy or out of reach. Defaults to `5`."},
		{Name: "retry_mode", Type: cty.String, Env: []string{"AWS_RETRY_MODE"}, Harmless: retriesHarmless,
			Check: attr.OneOf("standard", "adaptive"),
			Doc:   "`standard` or `adaptive`. Defaults to what `AWS_RETRY_MODE` says, else `standard`."},
		{Name: "http_proxy", Type: cty.String, Secrecy: attr.LocalSecret, Check: attr.Is(isProxy, proxyRequired),
			Doc: "The URL of a proxy, also for HTTPS when there is no `https_proxy`."},
		{Name: "https_proxy", Type: cty.String, Secrecy: attr.LocalSecret, Form: attr.OrEmpty, Check: attr.Is(isProxy, proxyRequired),
			Env: []string{"HTTPS_PROXY", "https_proxy"}, Doc: "The URL of a proxy for HTTPS. The empty string means none."},
		{Name: "no_proxy", Type: cty.String, Form: attr.OrEmpty, Env: []string{"NO_PROXY",
			"no_proxy"}, Doc: "Hosts, domains and networks that are reached without a proxy, separated by commas."},
		{Name: "insecure", Type: cty.Bool, Doc: "Whether to accept any TLS certificate. Whoever sits " +
			"in between then gets the " + what + "."},
		{Name: "custom_ca_bundle", Type: cty.String, Form: attr.OrEmpty, Env: []string{"AWS_CA_BUNDLE"}, Doc: "The path " +
			"of a PEM file with the only certificate authorities to trust."},
		{Name: "use_fips_endpoint", Type: cty.Bool, Env: []string{"AWS_USE_FIPS_ENDPOINT"}, Harmless: variantHarmless,
			Doc: "Whether to use the FIPS endpoints. Defaults to what `AWS_USE_FIPS_ENDPOINT` says."},
		{Name: "use_dualstack_endpoint", Type: cty.Bool, Env: []string{"AWS_USE_DUALSTACK_ENDPOINT"}, Harmless: variantHarmless,
			Doc: "Whether to use the endpoints that speak IPv6 as well. Defaults to what `AWS_USE_DUALSTACK_ENDPOINT` " +
				"says."},
	}
}
