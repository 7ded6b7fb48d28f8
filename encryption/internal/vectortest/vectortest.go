// Package vectortest reads the cases in the folder conformance, which real tools wrote, for tests
// of this module.
package vectortest

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Cases is the path of the folder with the cases, relative to a kind's folder.
const Cases = "../../../../conformance/cases/"

// Vector is a file that a tool wrote, with the secrets it was encrypted with.
type Vector struct {
	SecretKey  string            `json:"secret_key_base64"` // for Kubeform
	BackendEnv map[string]string `json:"backend_env"`       // for terraform-backend-git

	StateFile     string `json:"state_file"`
	RawBlob       string `json:"raw_blob"`
	StatusState   string `json:"status_state"`
	DecryptedFile string `json:"decrypted"`
	PlainFile     string `json:"plain_state_file"`

	name string
}

// Get returns the vector called name.
func Get(tb testing.TB, name string) Vector {
	tb.Helper()
	v := Vector{name: name}
	if err := json.Unmarshal(v.read(tb, "case.json"), &v); err != nil {
		tb.Fatal(err)
	}
	return v
}

// State returns the encrypted file.
func (v Vector) State(tb testing.TB) []byte {
	tb.Helper()
	return v.read(tb, cmp.Or(v.StateFile, v.RawBlob, v.StatusState))
}

// Plain returns the plaintext, as the real tool decrypted it.
func (v Vector) Plain(tb testing.TB) []byte {
	tb.Helper()
	return v.read(tb, cmp.Or(v.DecryptedFile, v.PlainFile))
}

func (v Vector) read(tb testing.TB, file string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(Cases, v.name, file))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}
