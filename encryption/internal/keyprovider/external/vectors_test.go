//go:build unix

package external_test

import (
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/pbkdf2"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/aesgcm"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/vectortest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// registry has this key provider, one more, and aes_gcm.
func registry(other driver.Block[driver.KeyProvider]) encryption.Registry {
	return encryption.Registry{
		KeyProviders: []driver.Block[driver.KeyProvider]{external.Block(), other},
		Methods:      []driver.Block[driver.Method]{aesgcm.Block()},
	}
}

// TestVectors opens files that OpenTofu wrote, with the programs that it ran.
// OpenTofu fails on err_fallback_setup_aborts, because the program of the
// primary is not there; a reader need not give up the fallback for that.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, vector := range []lighttest.Vector{
		vectortest.Cases + "external_key_provider",
		vectortest.Cases + "external_key_provider_rotated",
		vectortest.Cases + "pbkdf2_chain_external",
		"testdata/err_fallback_setup_aborts",
	} {
		t.Run(vector.Name(), func(t *testing.T) {
			t.Parallel()
			opened := vector.Opens(t, vector.Target(t, registry(pbkdf2.Block()), nil))
			if opened.UsedFallback != strings.Contains(string(vector), "fallback") {
				t.Errorf("fallback: %t", opened.UsedFallback)
			}
		})
	}
}
