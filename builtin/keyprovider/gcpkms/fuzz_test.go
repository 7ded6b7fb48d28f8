package gcpkms_test

import (
	"bytes"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// What is not the stored ciphertext opens to nothing, and Decrypt is all that
// is asked for.
func FuzzKey(f *testing.F) {
	const name = "projects/throwaway/locations/global/keyRings/ring/cryptoKeys/tofu"
	s := &gcpkmstest.Service{Keys: map[string][]byte{name: bytes.Repeat([]byte{0x11}, 32)}}
	provider := encryptiontest.Build(f, gcpkms.BlockWith(gcpkms.Options{Transport: s.Start(f)}), working().With("kms_encryption_key", name))
	f.Cleanup(func() {
		for _, call := range s.Calls() {
			if call != "Decrypt" {
				f.Errorf("it called %s", call)
			}
		}
	})
	encryptiontest.FuzzStored(f, provider, nil, nil,
		kindtest.StoredIn(f, "testdata/gcp_kms_32/state.tfstate.enc", ""),
		`{"ciphertext":"RkFLRUdDUDE="}`,
		`{"ciphertext":"RkFLRUdDUDEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`,
		`{"ciphertext":"AA==","iv":"AA=="}`,
		`{"ciphertext":[1,2]}`,
	)
}
