package sops_test

import (
	"encoding/base64"
	"path/filepath"
	"testing"

	"github.com/getsops/sops/v3/kms"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms"
)

// TestCloudsBesideAVaultToken: a token of the code is for Vault. The clouds are
// asked with the identity of the environment, and protected as that says.
func TestCloudsBesideAVaultToken(t *testing.T) {
	t.Parallel()
	file := of(t, newDataKey(), &kms.MasterKey{Arn: arn, AwsProfile: "ci", EncryptedKey: base64.StdEncoding.EncodeToString(make([]byte, 60))})
	a := attrs{"vault_token": cty.StringVal("canary"), "allowed_aws_keys": texts(arn), "allowed_aws_profiles": texts("ci")}
	missing := filepath.Join(t.TempDir(), "ca.pem")
	fails(t, build(t, a, environment("AWS_CA_BUNDLE", missing), awskms.Block()), file, false)
}
