package openbao_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// TestDamage damages files of OpenTofu's in every way that is one truncation or
// one flipped bit; the service sees what becomes of the wrapped key.
func TestDamage(t *testing.T) {
	t.Parallel()
	counts := map[lighttest.Vector][4]int{
		"testdata/openbao_default":         {1, 175, 138, 0},
		"testdata/openbao_16_custom_path":  {1, 177, 138, 0},
		"testdata/openbao_64_chain":        {1, 355, 138, 0},
		"testdata/openbao_associated_data": {0, 182, 138, 0},
	}
	for vector, mount := range vectors() {
		t.Run(vector.Name(), func(t *testing.T) {
			t.Parallel()
			file := vector.Sealed(t)
			var derivations lighttest.Derivations
			_, env := vectorServer(t, mount)
			target := vector.Target(t, kindtest.Registry(openbao.Block(), derivations.Quick(lighttest.KeyProvider("pbkdf2"), file)), env)
			lighttest.DamageEnvelope(t, file, counts[vector], target)
		})
	}
}
