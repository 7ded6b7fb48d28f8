package kindtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
)

// Vector is the name of a folder in testdata that holds a state that OpenTofu
// encrypted, the configuration that it had, and the state in plaintext.
type Vector string

// Registry has these key providers, and aes_gcm.
func Registry(keyProviders ...encryption.Block[encryption.KeyProvider]) encryption.Registry {
	return encryption.Registry{KeyProviders: keyProviders, Methods: []encryption.Block[encryption.Method]{aesgcm.Block()}}
}

// Target is that of states, for settings and an environment, which may be nil.
func Target(t *testing.T, registry encryption.Registry, settings string, env attr.LookupEnv) encryption.Target {
	t.Helper()
	enc, err := encryption.Load(registry, encryption.Code(settings, "test"), encryption.Environment(env))
	if err != nil {
		t.Fatal(err)
	}
	return enc.State()
}

// Target is that of the vector's own configuration, whose programs are in its
// folder.
func (v Vector) Target(t *testing.T, registry encryption.Registry, env attr.LookupEnv) encryption.Target {
	t.Helper()
	settings := strings.ReplaceAll(string(v.Read(t, "config.hcl")), "./", "testdata/"+string(v)+"/")
	return Target(t, registry, settings, env)
}

// Sealed is the encrypted state.
func (v Vector) Sealed(t *testing.T) []byte {
	t.Helper()
	return v.Read(t, "state.tfstate.enc")
}

// Read returns a file of the vector.
func (v Vector) Read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", string(v), name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Opens checks that target opens the vector to the state that was encrypted.
func (v Vector) Opens(t *testing.T, target encryption.Target) *encryption.Opened {
	t.Helper()
	opened, err := target.Decrypt(t.Context(), v.Sealed(t))
	if err != nil {
		t.Error(err)
		return new(encryption.Opened)
	}
	if want := v.Read(t, "plain_state.json"); !bytes.Equal(bytes.TrimSpace(opened.Data), bytes.TrimSpace(want)) {
		t.Errorf("got %s, want %s", opened.Data, want)
	}
	return opened
}
