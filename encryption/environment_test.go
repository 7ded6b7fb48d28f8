package encryption_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// variables is an environment of these pairs: a name, and its value.
func variables(pairs ...string) attr.LookupEnv {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// TestEnvironmentRunsNoCommand: the documented program runs nothing that
// TF_ENCRYPTION names.
//
// Promise: TF_ENCRYPTION
func TestEnvironmentRunsNoCommand(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "ran")
	lookup := variables("TF_ENCRYPTION", fmt.Sprintf(`
key_provider "external" "main" { command = ["touch", %q] }
method "aes_gcm" "main" { keys = key_provider.external.main }
state { method = method.aes_gcm.main }`, mark))
	for name, c := range map[string]struct {
		layers []encryption.Layer
		ran    bool
	}{
		"the environment":              {layers: []encryption.Layer{encryption.Environment(lookup)}},
		"the environment over nothing": {layers: []encryption.Layer{encryption.Code("", "none"), encryption.Environment(lookup)}},
		"nothing over the environment": {layers: []encryption.Layer{encryption.Environment(lookup), encryption.Code("", "none")}},
		"allowed":                      {layers: []encryption.Layer{encryption.Environment(lookup, encryption.AllowCommands())}, ran: true},
	} {
		enc, err := encryption.Load(lighttest.Registry(), c.layers...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = enc.State().Encrypt(t.Context(), []byte(state))
		if err == nil || !c.ran && !errors.Is(err, entries.ErrCommand) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(mark); (err == nil) != c.ran {
			t.Errorf("%s: the command ran: %t", name, err == nil)
		}
	}
}

func TestLoadReportsEveryLayer(t *testing.T) {
	t.Parallel()
	_, err := encryption.Load(lighttest.Registry(), encryption.Code("nonsense {}", "code"),
		encryption.Environment(variables("TF_ENCRYPTION", "rubbish {}")))
	golden(t, "layers").Error(t, "mistakes in two", err)
}
