// Package cos reads a state that Terraform's cos backend has written to Tencent Cloud's Cloud Object Storage.
// It uses the S3 API, which COS supports, and sends one GetObject request.
//
// https://github.com/opentofu/opentofu/tree/v1.12.6/internal/backend/remote-state/cos
// https://github.com/hashicorp/terraform/tree/main/internal/backend/remote-state/cos
// https://www.tencentcloud.com/document/product/436/32537
package cos

import (
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

// Kind returns the cos source.
func Kind() source.Kind { return Vendor().Kind() }

// Vendor returns the store that Kind reads from.
func Vendor() object.Vendor {
	return object.Vendor{
		Table: table(), Credentials: credentials(), Locate: locate,
		Words: object.Words{ // https://www.tencentcloud.com/document/product/436/7730
			Store: "Tencent Cloud COS", Short: "COS",
			Read: "cos:GetObject",
			Reasons: map[string]string{
				"BucketAccelerateNotEnabled": "global acceleration is not enabled for the bucket; remove the argument accelerate",
				"InvalidSecurityToken":       "the security token is not valid; check it in {credentials}",
				"ExpiredToken":               "the security token has expired; set a new token",
				"UserNetworkTooSlow":         "the connection is too slow",
				"AccountArrears":             "the account has unpaid bills",
				"UnavailableForLegalReasons": "the account or the bucket is closed",
			},
		},
	}
}

func table() attr.Table {
	return attr.Table{
		Name: "cos",
		Doc: "Reads the state from a bucket of Tencent Cloud COS, as the `cos` backend writes it: `<prefix>/<key>`. Keys and endpoints are " +
			"set in `credentials`, in the provider block.",
		Attrs: []attr.Attr{
			{Name: "bucket", Type: cty.String, Required: true,
				Check: attr.Is(object.IsBucketLabel, "this is not a valid bucket name; use lowercase letters, digits and dashes, with the APPID at "+
					"the end"),
				Doc: "The name of the bucket with the APPID at its end, such as `states-1258798060`."},
			object.KeyAttr(),
			{Name: "prefix", Type: cty.String, Check: object.Prefix(), Doc: "The folder of the states. Defaults to none."},
			{Name: "region", Type: cty.String, Required: true, Env: []string{"TENCENTCLOUD_REGION"},
				Check: attr.Is(syntax.IsLabel, "this is not the name of a region; set a name like ap-guangzhou"),
				Doc:   "The region of the bucket, such as `eu-frankfurt`."},
			{Name: "accelerate", Type: cty.Bool,
				Doc: "Whether to use global acceleration. It must be enabled for the bucket. Defaults to `false`."},
			object.VersionAttr(),
			source.ChoiceAttr("credentials_name", "cos", "to sign in with"),
		},
	}
}

func credentials() attr.Table {
	return attr.Table{
		Name: "cos",
		Doc: "Credentials for Tencent Cloud COS, with the arguments of the `cos` backend: one of `secret_id`, `profile` and `cam_role_name`. " +
			"The variables `TENCENTCLOUD_*` fill only the block without a name.",
		Attrs: []attr.Attr{
			source.NameAttr("credentials_name"),
			{Name: "secret_id", Type: cty.String, Group: "identity", Excludes: []string{"cam_role_name"}, Env: []string{"TENCENTCLOUD_SECRET_ID"},
				Doc: "The ID of an API key. It requires `secret_key`."},
			{Name: "secret_key", Type: cty.String, Secrecy: attr.Secret, Group: "identity", RequiredWith: "secret_id",
				Env: []string{"TENCENTCLOUD_SECRET_KEY"},
				Doc: "The key of `secret_id`."},
			{Name: "security_token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Group: "identity", RequiredWith: "secret_id",
				Env: []string{"TENCENTCLOUD_SECURITY_TOKEN"},
				Doc: "The session token, if `secret_id` is a temporary key of STS."},
			{Name: "profile", Type: cty.String, Secrecy: attr.NamesSecret, Group: "identity", EntryInFiles: []string{"shared_credentials_dir"},
				Excludes: []string{"cam_role_name", "secret_id"}, Env: []string{"TENCENTCLOUD_PROFILE"},
				Check: attr.Is(func(name string) bool { return !strings.ContainsAny(name, `/\`) },
					"this is not a valid profile name, because it contains a slash; set the folder of the profile's file in "+
						"shared_credentials_dir"),
				Doc: "A profile of TCCLI, the Tencent Cloud CLI."},
			{Name: "shared_credentials_dir", Type: cty.String, Env: []string{"TENCENTCLOUD_SHARED_CREDENTIALS_DIR"},
				Harmless: "It is read for profile alone, which excludes keys of the code.",
				Doc:      "The folder of the profiles. Defaults to `~/.tccli`."},
			{Name: "cam_role_name", Type: cty.String, Group: "identity", Env: []string{"TENCENTCLOUD_CAM_ROLE_NAME"},
				Check: attr.Is(object.IsRole, "this is not a valid role name"),
				Doc: "The CAM role of the CVM instance that this runs on. Its temporary keys come from the metadata service of the " +
					"instance."},
			{Name: "endpoint", Type: cty.String, Env: []string{"TENCENTCLOUD_ENDPOINT"},
				Doc: "The URL of COS, such as `https://cos-internal.eu-frankfurt.tencentcos.cn` inside Tencent's network. The bucket's " +
					"name is put before its host. Defaults to `https://cos.<region>.myqcloud.com`."},
			{Name: "domain", Type: cty.String, Env: []string{"TENCENTCLOUD_DOMAIN"},
				Harmless: "It is the default.", HarmlessIf: harmless.OneOf("tencentcloudapi.com"),
				Doc: "The root domain of STS, which is called for `assume_role` at `sts.<domain>`. Defaults to `tencentcloudapi.com`."},
			{
				Name: "assume_role", Group: "role",
				Doc: "A role to assume for the read: this block, or variables. Variables: `TENCENTCLOUD_ASSUME_ROLE_ARN`, " +
					"`TENCENTCLOUD_ASSUME_ROLE_SESSION_NAME`, `TENCENTCLOUD_ASSUME_ROLE_SESSION_DURATION`, `TENCENTCLOUD_ASSUME_ROLE_EXTERNAL_ID`.",
				Attrs: []attr.Attr{
					{Name: "role_arn", Type: cty.String, Required: true,
						Check: attr.Is(func(arn string) bool { return arn != "" }, "the ARN of the role is empty; check whether a variable is empty"),
						Doc:   "The ARN of the role, such as `qcs::cam::uin/100000000001:roleName/state-reader`."},
					{Name: "session_name", Type: cty.String, Default: cty.StringVal(sessionName),
						Doc: "The name of the role's session in logs. Defaults to `statecrypt`."},
					{Name: "session_duration", Type: cty.Number, Check: attr.Between(1, mostSession),
						Doc: "How long the session lasts, from `1` to `43200` seconds. Defaults to `7200`."},
					{Name: "policy", Type: cty.String, Doc: "A policy in JSON that further limits what the session may do."},
					{Name: "external_id", Type: cty.String, Doc: "The external ID that the role requires."},
				},
			},
		},
		Variables: roleVariables(),
	}
}

// roleVariables returns the variables that replace the assume_role block. If the block is set, they are all
// ignored.
func roleVariables() []attr.Attr {
	variables := []attr.Attr{
		source.Variable(roleVar, "assume_role", "A role is a name: its keys are given only to those who may assume it."),
		source.Variable(sessionVar, "assume_role", "It is what the session is called in logs."),
		source.Variable(durationVar, "assume_role", "It says how long the keys of a role last."),
		source.Variable(externalVar, "assume_role", "It is compared by the owner of the role, and gives nobody a right."),
	}
	for i := range variables {
		variables[i].UnlessGroup = "role"
	}
	variables[2].Type, variables[2].Check = cty.Number, attr.Between(1, mostSession)
	return variables
}
