package object_test

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/cos"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/oci"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/oss"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3"
)

// vendors are all that there are.
func vendors() []vendor {
	const apiKeys = "it is for requests signed with an API key, which the S3 API does not take"
	return []vendor{
		{
			Vendor: s3.Vendor(), bucket: "states", path: "network/terraform.tfstate", region: "eu-west-1", id: "access_key",
			where:  objecttest.Strings("bucket", "states", "key", "network/terraform.tfstate", "region", "eu-west-1"),
			prefix: "workspace_key_prefix", paths: []path{
				{prefix: cty.StringVal(""), key: "k", want: "k"},
				{prefix: cty.StringVal(""), key: "k", workspace: "default", want: "k"},
				{prefix: "env:", key: "a/b.tfstate", workspace: "default", want: "a/b.tfstate"},
				{prefix: "env:", key: "a//b", workspace: "default", want: "a//b"},
				{prefix: "env:", key: "a/b.tfstate", workspace: "prod", want: "env:/prod/a/b.tfstate"},
				{prefix: "env:", key: "a//b", workspace: "prod", want: "env:/prod/a/b"},
				{prefix: "x/y", key: "k", workspace: "prod", want: "x/y/prod/k"},
				{prefix: "x//y", key: "k", workspace: "prod", want: "x/y/prod/k"},
				{prefix: cty.StringVal(""), key: "k", workspace: "prod", want: "prod/k"},
				{prefix: "env:", key: "k", workspace: "a b", want: "env:/a b/k"},
				{prefix: "env:", key: "k", workspace: "über%2f?#", want: "env:/über%2f?#/k"},
				{prefix: "env:", key: "...", workspace: "prod", want: "env:/prod/..."},
			},
		},
		{
			Vendor: oss.Vendor(), bucket: "acme-states", path: "env:/terraform.tfstate", region: "eu-central-1", id: "access_key",
			where:  objecttest.Strings("bucket", "acme-states", "region", "eu-central-1"),
			action: "oss:GetObject", example: objecttest.Strings("bucket", "acme-states", "region", "x", "prefix", "network"),
			prefix: "prefix", paths: []path{
				{workspace: "default", want: "env:/terraform.tfstate"},
				{want: "env:/terraform.tfstate"},
				{workspace: "staging", want: "env:/staging/terraform.tfstate"},
				{key: "a/b.tfstate", workspace: "staging", want: "env:/staging/a/b.tfstate"},
				{prefix: "states", key: "a b.tfstate", workspace: "default", want: "states/a b.tfstate"},
				{prefix: "states/", key: "x", workspace: "w", want: "states/w/x"},
				{prefix: "a//b", key: "x//y", workspace: "w", want: "a/b/w/x/y"},
				{prefix: "a/./b", key: "x", workspace: "default", want: "a/b/x"},
				{prefix: "states", key: "x", workspace: "ünïcode+%20", want: "states/ünïcode+%20/x"},
				{prefix: "/states", key: "x", workspace: "default", want: "error: prefix"},
				{prefix: "./states", key: "x", workspace: "default", want: "error: prefix"},
				{key: "/x", workspace: "default", want: "error: key"},
				{key: "x/", workspace: "default", want: "error: key"},
				{prefix: "..", key: "x", workspace: "default", want: "error: key"},
				{key: "../../x", workspace: "default", want: "error: key"},
				{prefix: cty.StringVal(""), workspace: "w", want: "w/terraform.tfstate"},
			},
			codes: []string{
				"404 NoSuchKey", "404 NoSuchBucket", "404 NoSuchVersion", "403 AccessDenied", "403 InvalidAccessKeyId",
				"403 SignatureDoesNotMatch", "403 SecurityTokenExpired", "403 InvalidSecurityToken", "403 RequestTimeTooSkewed",
				"403 UserDisable", "403 InvalidObjectState", "403 SecondLevelDomainForbidden", "500 InternalError",
				"503 ServiceUnavailable", "404 Strange", "404", "401",
			},
			backend: []string{
				"access_key", "secret_key", "security_token", "ecs_role_name", "region", "sts_endpoint", "tablestore_endpoint", "endpoint", "bucket",
				"prefix", "key", "tablestore_table", "encrypt", "acl", "shared_credentials_file", "profile", "assume_role", "assume_role_role_arn",
				"assume_role_session_name", "assume_role_policy", "assume_role_session_expiration",
			},
			leftOut: map[string]string{
				"tablestore_endpoint": "it is for locks",
				"tablestore_table":    "it is for locks",
				"encrypt":             "it is for writing",
				"acl":                 "it is for writing",
				"assume_role":         "it is deprecated in favour of assume_role_role_arn and its kin",
			},
			ours: []string{"name", "credentials_name", "version_id"},
		},
		{
			Vendor: cos.Vendor(), bucket: "acme-1250000000", path: "terraform.tfstate", region: "eu-frankfurt", id: "secret_id",
			where:  objecttest.Strings("bucket", "acme-1250000000", "region", "eu-frankfurt"),
			action: "name/cos:GetObject", example: objecttest.Strings("bucket", "acme-states-1250000000", "region", "x", "prefix", "network"),
			prefix: "prefix", paths: []path{
				{workspace: "default", want: "terraform.tfstate"},
				{want: "terraform.tfstate"},
				{workspace: "staging", want: "staging/terraform.tfstate"},
				{prefix: "terraform/state", workspace: "staging", want: "terraform/state/staging/terraform.tfstate"},
				{prefix: "states/", key: "a/b.tfstate", workspace: "default", want: "states/a/b.tfstate"},
				{prefix: "a//b", key: "x//y", workspace: "w", want: "a/b/w/x/y"},
				{prefix: "states", key: "x", workspace: "ünïcode+%20", want: "states/ünïcode+%20/x"},
				{prefix: "/states", key: "x", workspace: "default", want: "error: prefix"},
				{prefix: "./states", key: "x", workspace: "default", want: "error: prefix"},
				{key: "/x", workspace: "default", want: "error: key"},
				{key: "x/", workspace: "default", want: "error: key"},
				{prefix: "..", key: "x", workspace: "default", want: "error: key"},
			},
			codes: []string{
				"404 NoSuchKey", "404 NoSuchBucket", "404 NoSuchVersion", "403 AccessDenied", "403 InvalidAccessKeyId",
				"403 SignatureDoesNotMatch", "403 ExpiredToken", "403 RequestTimeTooSkewed", "403 InvalidObjectState",
				"400 BucketAccelerateNotEnabled", "451 UnavailableForLegalReasons", "500 InternalError", "503 SlowDown", "404 Strange",
				"404",
			},
			backend: []string{
				"secret_id", "secret_key", "security_token", "region", "bucket", "endpoint", "domain", "prefix", "key", "encrypt", "acl", "accelerate",
				"assume_role", "shared_credentials_dir", "profile", "cam_role_name",
			},
			leftOut: map[string]string{
				"encrypt": "it is for writing",
				"acl":     "it is for writing",
			},
			ours: []string{"name", "credentials_name", "version_id"},
		},
		{
			Vendor: oci.Vendor(), bucket: "Acme_states", path: "terraform.tfstate", region: "eu-frankfurt-1", id: "access_key",
			where:  objecttest.Strings("bucket", "Acme_states", "namespace", "acme", "region", "eu-frankfurt-1"),
			prefix: "workspace_key_prefix", paths: []path{
				{workspace: "default", want: "terraform.tfstate"},
				{want: "terraform.tfstate"},
				{workspace: "staging", want: "tf-state-env/staging/terraform.tfstate"},
				{prefix: "env:", key: "a/b.tfstate", workspace: "default", want: "a/b.tfstate"},
				{prefix: "env:", key: "a/b.tfstate", workspace: "staging", want: "env:/staging/a/b.tfstate"},
				{prefix: "env:/", key: "x", workspace: "w", want: "env:/w/x"},
				{prefix: "env:", key: "x", workspace: "ünïcode+%20", want: "env:/ünïcode+%20/x"},
				{prefix: "/states", key: "x", workspace: "default", want: "error: workspace_key_prefix"},
				{prefix: "a//b", key: "x", workspace: "default", want: "error: workspace_key_prefix"},
				{key: "/x", workspace: "default", want: "error: key"},
				{key: "x/", workspace: "default", want: "error: key"},
				{key: "x//y", workspace: "default", want: "error: key"},
				{key: "../x", workspace: "default", want: "error: key"},
				{key: "./x", workspace: "default", want: "error: key"},
			},
			codes: []string{
				"404 NoSuchKey", "404 NoSuchBucket", "404 BucketNotFound", "404 NamespaceNotFound", "404 NoSuchVersion",
				"403 AccessDenied", "401 NotAuthenticated", "403 InvalidAccessKeyId", "403 SignatureDoesNotMatch",
				"400 InvalidRequest", "403 RequestTimeTooSkewed", "403 InvalidObjectState", "500 InternalError", "503 SlowDown",
				"404 Strange", "404",
			},
			backend: []string{
				"key", "bucket", "namespace", "region", "tenancy_ocid", "user_ocid", "fingerprint", "private_key", "private_key_path",
				"private_key_password",
				"auth", "config_file_profile", "workspace_key_prefix", "kms_key_id", "sse_customer_key", "sse_customer_key_sha256",
				"sse_customer_algorithm",
			},
			leftOut: map[string]string{
				"tenancy_ocid": apiKeys, "user_ocid": apiKeys, "fingerprint": apiKeys, "private_key": apiKeys, "private_key_path": apiKeys,
				"private_key_password": apiKeys,
				"auth":                 apiKeys, "config_file_profile": apiKeys,
				"kms_key_id":              "it is for writing",
				"sse_customer_key_sha256": "the S3 API wants the MD5 in its place, which is computed",
				"sse_customer_algorithm":  "there is but one",
			},
			ours: []string{"name", "credentials_name", "version_id", "access_key", "secret_key", "endpoint"},
		},
	}
}
