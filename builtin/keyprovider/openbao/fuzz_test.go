package openbao_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// What is not the stored ciphertext opens to nothing, and decrypt is all that
// is asked for, under the path of the key.
func FuzzKey(f *testing.F) {
	s := openbaotest.New(f, master())
	s.Token, s.Keys = "s.throwaway-token", []string{"tofu-key"}
	settings := attrs{}.With("address", s.URL, "key_name", "tofu-key", "token", s.Token, "max_retries", 0)
	provider := encryptiontest.Build(f, openbao.Block(), settings)
	f.Cleanup(func() {
		for _, what := range s.Requests() {
			if what != "decrypt" {
				f.Errorf("it asked for %q", what)
			}
		}
	})
	encryptiontest.FuzzStored(f, provider, nil, nil,
		kindtest.StoredIn(f, "testdata/openbao_default/state.tfstate.enc", ""),
		`{"ciphertext":"dmF1bHQ6djE6"}`,
		`{"ciphertext":"dmF1bHQ6djE6QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQT0="}`,
		`{"ciphertext":"dmF1bHQ6djk6QUE9PQ==","associated_data":"YWFk"}`,
		`{"ciphertext":"dmF1bHQ6djE6QUE9PQ==","associated_data":"not base64"}`,
		`{"ciphertext":"Li4vLi4vc3lz"}`,
	)
}
