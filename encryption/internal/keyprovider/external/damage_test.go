//go:build unix

package external_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/pbkdf2"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/vectortest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// TestDamage damages files of OpenTofu's in every way that is one truncation or
// one flipped bit. The programs are asked about what becomes of their metadata;
// where that is whole, their key is remembered. They look at the key_id in it and
// let the rest be.
func TestDamage(t *testing.T) {
	t.Parallel()
	for vector, counts := range map[lighttest.Vector][4]int{
		vectortest.Cases + "external_key_provider":         {1, 220, 138, 0},
		vectortest.Cases + "external_key_provider_rotated": {1, 220, 138, 0},
		vectortest.Cases + "pbkdf2_chain_external":         {1, 399, 138, 0},
		"testdata/err_fallback_setup_aborts":               {1, 180, 138, 0},
	} {
		t.Run(vector.Name(), func(t *testing.T) {
			t.Parallel()
			file := vector.Sealed(t)
			var derivations lighttest.Derivations
			registry := registry(derivations.Quick(pbkdf2.Block(), file))
			lighttest.DamageEnvelope(t, file, counts, vector.Target(t, registry, nil))
		})
	}
}
