// Package oss reads a state that Terraform's oss backend has written to Alibaba Cloud's Object Storage
// Service. It uses the S3 API, which OSS supports, and sends one GetObject request.
//
// https://github.com/opentofu/opentofu/tree/v1.12.6/internal/backend/remote-state/oss
// https://www.alibabacloud.com/help/en/oss/developer-reference/use-amazon-s3-sdks-to-access-oss
package oss

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

// Kind returns the oss source.
func Kind() source.Kind { return Vendor().Kind() }

// Vendor returns the store that Kind reads from.
func Vendor() object.Vendor {
	return object.Vendor{
		Table: table(), Credentials: credentials(), Locate: locate,
		Words: object.Words{ // https://www.alibabacloud.com/help/en/oss/support/http-status-code-403
			Store: "Alibaba Cloud OSS", Short: "OSS",
			Read: "oss:GetObject", ReadVersion: "oss:GetObjectVersion",
			Reasons: map[string]string{
				"UserDisable":                "the account is closed or has unpaid bills",
				"InvalidSecurityToken":       "the security token is not valid; check it in {credentials}",
				"SecurityTokenExpired":       "the security token has expired; set a new token",
				"KmsServiceNotEnabled":       "the object's KMS key cannot be used",
				"AccessForbidden":            "a rule of the bucket forbids the access; change the policy of the bucket",
				"NoSuchVersionId":            "the object has no such version; check the ID of the version",
				"InvalidVersionId":           "the ID of the version is not valid; copy the whole ID",
				"SecondLevelDomainForbidden": "OSS refuses requests with the bucket in the path; check the endpoint in {credentials}",
			},
		},
	}
}

func table() attr.Table {
	return attr.Table{
		Name: "oss",
		Doc: "Reads the state from a bucket of Alibaba Cloud OSS, as the `oss` backend writes it: `<prefix>/<key>`. Keys and endpoints are " +
			"set in `credentials`, in the provider block.",
		Attrs: []attr.Attr{
			{Name: "bucket", Type: cty.String, Required: true,
				Check: attr.Is(object.IsBucketLabel, "this is not a valid bucket name; use 3 to 63 lowercase letters, digits and dashes"),
				Doc:   "The name of the bucket."},
			object.KeyAttr(),
			{Name: "prefix", Type: cty.String, Default: cty.StringVal("env:"), Check: object.Prefix(),
				Doc: "The folder of the states. Defaults to `env:`."},
			{Name: "region", Type: cty.String, Env: []string{"ALICLOUD_REGION", "ALICLOUD_DEFAULT_REGION"}, Check: attr.Text(checkRegion),
				Doc: "The region of the bucket, such as `eu-central-1`. Defaults to the region of the profile."},
			object.VersionAttr(),
			source.ChoiceAttr("credentials_name", "oss", "to sign in with"),
		},
	}
}

func credentials() attr.Table {
	return attr.Table{
		Name: "oss",
		Doc: "Credentials for Alibaba Cloud OSS, with the arguments of the `oss` backend: one of `access_key`, `profile` and `ecs_role_name`. " +
			"The variables `ALICLOUD_*` fill only the block without a name.",
		Attrs: []attr.Attr{
			source.NameAttr("credentials_name"),
			{Name: "access_key", Type: cty.String, Group: "identity", Env: []string{"ALICLOUD_ACCESS_KEY", "ALICLOUD_ACCESS_KEY_ID"},
				Doc: "The ID of an AccessKey pair. It requires `secret_key`."},
			{Name: "secret_key", Type: cty.String, Secrecy: attr.Secret, Group: "identity", RequiredWith: "access_key",
				Env: []string{"ALICLOUD_SECRET_KEY", "ALICLOUD_ACCESS_KEY_SECRET"}, Doc: "The secret of `access_key`."},
			{Name: "security_token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Group: "identity", RequiredWith: "access_key",
				Env: []string{"ALICLOUD_SECURITY_TOKEN"},
				Doc: "The session token, if `access_key` is a temporary key of STS."},
			{Name: "profile", Type: cty.String, Secrecy: attr.NamesSecret, Group: "identity", EntryInFiles: []string{"shared_credentials_file"},
				Excludes: []string{"access_key"}, Env: []string{"ALICLOUD_PROFILE"},
				Doc: "A profile of the Alibaba Cloud CLI. Its mode must be `AK`, `StsToken`, `RamRoleArn` or `EcsRamRole`."},
			{Name: "shared_credentials_file", Type: cty.String, Env: []string{"ALICLOUD_SHARED_CREDENTIALS_FILE"},
				Harmless: "It is read for profile alone, which excludes keys of the code.",
				Doc:      "The file of `profile`. Defaults to `~/.aliyun/config.json`."},
			{Name: "ecs_role_name", Type: cty.String, Group: "identity", Env: []string{"ALICLOUD_ECS_ROLE_NAME"},
				Check:    attr.Is(object.IsRole, "this is not a valid role name"),
				Excludes: []string{"access_key", "profile"},
				Doc: "The RAM role of the ECS instance that this runs on. Its temporary keys come from the metadata service of the " +
					"instance."},
			{Name: "assume_role_role_arn", Type: cty.String, Env: []string{"ALICLOUD_ASSUME_ROLE_ARN"},
				Harmless: "A role is a name: its keys are given only to those who may assume it.",
				Doc:      "The ARN of a RAM role to assume for the read."},
			{Name: "assume_role_session_name", Type: cty.String, Env: []string{"ALICLOUD_ASSUME_ROLE_SESSION_NAME"},
				RequiredWith: "assume_role_role_arn", Harmless: "It is what the session is called in logs.",
				Doc: "The name of the role's session in logs. Defaults to `statecrypt`."},
			{Name: "assume_role_policy", Type: cty.String, RequiredWith: "assume_role_role_arn",
				Doc: "A policy in JSON that further limits what the session may do."},
			{Name: "assume_role_session_expiration", Type: cty.Number, Env: []string{"ALICLOUD_ASSUME_ROLE_SESSION_EXPIRATION"},
				Check:        attr.Between(leastSession, mostSession),
				RequiredWith: "assume_role_role_arn", Harmless: "It says how long the keys of a role last.",
				Doc: "How long the session lasts, from `900` to `3600` seconds. Defaults to `3600`."},
			{Name: "sts_endpoint", Type: cty.String, Env: []string{"ALICLOUD_STS_ENDPOINT"},
				Doc: "The host of STS, or its URL. Defaults to `sts.aliyuncs.com`."},
			{Name: "endpoint", Type: cty.String, Env: []string{"ALICLOUD_OSS_ENDPOINT", "OSS_ENDPOINT"},
				Doc: "The host of OSS, or its URL, such as `oss-eu-central-1-internal.aliyuncs.com` inside Alibaba's network. Defaults to " +
					"`s3.oss-<region>.aliyuncs.com`."},
		},
	}
}
