package encryption_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
)

// TestLineageAddedOutside: a lineage beside the encrypted data is not believed if
// there is none inside.
func TestLineageAddedOutside(t *testing.T) {
	t.Parallel()
	const bare = `{"version":4,"serial":7,"outputs":{}}`
	file := string(seal(t, all, bare))
	target := newEncryption(t, builtin.Registry(), all).State()
	if opened, err := target.Decrypt(t.Context(), []byte(file)); err != nil || string(opened.Data) != bare {
		t.Fatalf("without any lineage: %v", err)
	}
	forged := strings.Replace(file, "{", `{"lineage":"l-1",`, 1)
	if _, err := target.Decrypt(t.Context(), []byte(forged)); !errors.Is(err, encryption.ErrDamaged) {
		t.Errorf("got %v", err)
	}
}
