package gcpkms_test

import (
	"bytes"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

const vector = lighttest.Vector("testdata/gcp_kms_32")

// TestDamage damages a file of OpenTofu's in every way that is one truncation or
// one flipped bit; the service sees what becomes of the wrapped key.
func TestDamage(t *testing.T) {
	t.Parallel()
	s := &gcpkmstest.Service{Keys: map[string][]byte{
		"projects/throwaway/locations/global/keyRings/ring/cryptoKeys/tofu": bytes.Repeat([]byte{0x11}, 32),
	}}
	env := func(name string) (string, bool) { return gcpkmstest.Token, name == "GOOGLE_OAUTH_ACCESS_TOKEN" }
	target := vector.Target(t, kindtest.Registry(gcpkms.BlockWith(gcpkms.Options{Transport: s.Start(t)})), env)
	lighttest.DamageEnvelope(t, vector.Sealed(t), [4]int{1, 178, 138, 0}, target)
}
