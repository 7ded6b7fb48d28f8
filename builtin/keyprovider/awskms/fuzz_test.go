package awskms_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// What is not the stored ciphertext in its context opens to nothing, and
// Decrypt is all that is asked for.
func FuzzKey(f *testing.F) {
	const arn = "arn:aws:kms:eu-central-1:000000000000:key/11111111-2222-3333-4444-555555555555"
	server := awskmstest.New(f, awskmstest.Key{ID: arn, Master: master(0x11)})
	profile := filepath.Join(f.TempDir(), "config")
	if err := os.WriteFile(profile, []byte("[default]\nendpoint_url = "+server.URL+"\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	provider := encryptiontest.Build(f, awskms.Block(), static().With("kms_key_id", arn).With("shared_config_files", []string{profile}))
	f.Cleanup(func() {
		for _, r := range server.Requests() {
			if r.Operation != "Decrypt" || r.KeyID != arn {
				f.Errorf("it asked for %+v", r)
			}
		}
	})
	encryptiontest.FuzzStored(f, provider, nil, nil,
		kindtest.StoredIn(f, "testdata/aws_kms_aes256/state.tfstate.enc", ""),
		`{"ciphertext_blob":"RkFLRUtNUzE="}`,
		`{"ciphertext_blob":"RkFLRUtNUzEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","encryption_context":{"a":"b","":""}}`,
		`{"ciphertext_blob":"","encryption_context":null}`,
		`{"ciphertext_blob":"AA==","encryption_context":{"a":1}}`,
	)
}
