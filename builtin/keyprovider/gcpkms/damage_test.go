package gcpkms_test

import (
	"bytes"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// vectors are files that OpenTofu wrote with such a service, and how much of their damage is harmless; see
// [lighttest.DamageEnvelope].
func vectors() map[lighttest.Vector][4]int {
	return map[lighttest.Vector][4]int{
		"testdata/gcp_kms_32":                            {1, 178, 138, 0},
		"testdata/gcp_kms_additional_authenticated_data": {0, 177, 138, 0},
	}
}

// TestDamage damages files of OpenTofu's in every way that is one truncation or
// one flipped bit; the service sees what becomes of the wrapped key.
func TestDamage(t *testing.T) {
	t.Parallel()
	s := &gcpkmstest.Service{Keys: map[string][]byte{
		"projects/throwaway/locations/global/keyRings/ring/cryptoKeys/tofu": bytes.Repeat([]byte{0x11}, 32),
	}}
	env := func(name string) (string, bool) { return gcpkmstest.Token, name == "GOOGLE_OAUTH_ACCESS_TOKEN" }
	registry := kindtest.Registry(gcpkms.BlockWith(gcpkms.Options{Transport: s.Start(t)}))
	for vector, counts := range vectors() {
		t.Run(vector.Name(), func(t *testing.T) {
			t.Parallel()
			lighttest.DamageEnvelope(t, vector.Sealed(t), counts, vector.Target(t, registry, env))
		})
	}
}
