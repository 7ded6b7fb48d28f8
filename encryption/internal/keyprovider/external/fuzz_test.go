//go:build unix

package external_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/external"
)

// The program gets what is stored, and nothing else, and its key is used for
// nothing else.
func FuzzKey(f *testing.F) {
	const program = `read -r stored
printf '{"magic":"OpenTofu-External-Key-Provider","version":1}\n'
if [ "$stored" = '{"external_data":{"id":"first","n":1}}' ]; then
	printf '{"keys":{"decryption_key":"AAECAwQFBgcICQoLDA0ODw=="},"meta":{}}'
else
	printf '{"keys":{},"meta":{}}'
fi`
	encryptiontest.FuzzStored(f, encryptiontest.Build(f, external.Block(), command("sh", "-c", program)), nil, nil,
		`{"external_data":{"id":"first","n":1}}`,
		`{"external_data":{"n":1.0,"id":"first"}}`,
		`{"external_data":{"id":"second"}}`,
		`{"external_data":null}`,
		`{"external_data":[1]}`,
		`{"external_data":{"id":"first\n","n":1e999}}`,
	)
}
