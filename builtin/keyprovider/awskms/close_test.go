package awskms_test

import (
	"os"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// TestClose is not parallel: it counts what the process has open.
//
// Promise: Long lives
func TestClose(t *testing.T) {
	server := standard(t)
	server.Allow("GenerateDataKey")
	sts := awskmstest.NewSTS(t)
	role := write(t, "[profile x]\nrole_arn = arn:aws:iam::111122223333:role/reader\nsource_profile = y\n"+
		"[profile y]\naws_access_key_id = AKIASTATIC\naws_secret_access_key = canary-secret\n")
	for name, identity := range map[string]string{
		"keys": `
			access_key = "AKIASTATIC"
			secret_key = "canary-secret"`,
		"role": `
			access_key  = "AKIASTATIC"
			secret_key  = "canary-secret"
			assume_role = { role_arn = "arn:aws:iam::111122223333:role/reader" }`,
		"role of a profile": `
			profile             = "x"
			shared_config_files = ["` + role + `"]`,
	} {
		for mode, env := range map[string]attr.LookupEnv{"with an environment": os.LookupEnv, "without": nil} {
			t.Run(name+" "+mode, func(t *testing.T) {
				kindtest.LeavesNothing(t, kindtest.Registry(awskms.Block()), `
					key_provider "aws_kms" "k" {
						kms_key_id = "`+keyARN+`"
						key_spec   = "AES_256"
						region     = "eu-west-1"
						endpoints  = {
							kms = "`+server.URL+`"
							sts = "`+sts.URL+`"
						}`+identity+`
					}
					method "aes_gcm" "m" { keys = key_provider.aws_kms.k }
					state { method = method.aes_gcm.m }`, env)
			})
		}
	}
}
