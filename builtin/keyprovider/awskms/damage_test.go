package awskms_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// TestDamage damages files of OpenTofu's in every way that is one truncation or
// one flipped bit; the service sees what becomes of the wrapped key.
func TestDamage(t *testing.T) {
	const arn = "arn:aws:kms:eu-central-1:000000000000:key/11111111-2222-3333-4444-555555555555"
	server := awskmstest.New(t, awskmstest.Key{ID: arn, Master: master(0x11)}, awskmstest.Key{ID: "alias/throwaway", Master: master(0x11)})
	profile := endpoints(t, server.URL)
	for vector, c := range map[lighttest.Vector]struct {
		key, spec string
		counts    [4]int
	}{
		"testdata/aws_kms_aes256":             {arn, "AES_256", [4]int{1, 176, 138, 0}},
		"testdata/aws_kms_aes128_alias":       {"alias/throwaway", "AES_128", [4]int{1, 182, 138, 0}},
		"testdata/aws_kms_encryption_context": {arn, "AES_256", [4]int{0, 183, 138, 0}},
	} {
		t.Run(vector.Name(), func(t *testing.T) {
			text := `key_provider "aws_kms" "a" {
  kms_key_id          = "` + c.key + `"
  key_spec            = "` + c.spec + `"
  region              = "eu-central-1"
  access_key          = "AKIASTATIC"
  secret_key          = "canary-secret"
  shared_config_files = ["` + profile + `"]
}
method "aes_gcm" "m" { keys = key_provider.aws_kms.a }
state { method = method.aes_gcm.m }
`
			target := kindtest.Target(t, kindtest.Registry(awskms.Block()), text, nil)
			lighttest.DamageEnvelope(t, vector.Sealed(t), c.counts, target)
		})
	}
}
