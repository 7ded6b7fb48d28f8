package module

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestRecordIsNoLink: a link that a module brings along in place of the record leads to no
// file of the user.
//
// Promise: Only encrypted states
// Promise: Links in modules
func TestRecordIsNoLink(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	r := Record{files.Directory{Path: data}, Settings{"address": "x"}}
	file := filepath.Join(t.TempDir(), "precious")
	if err := errors.Join(os.WriteFile(file, []byte("mine"), 0o600), os.Symlink(file, filepath.Join(data, recordName))); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Write(t.Context(), 0), r.Check()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadFile(file); err != nil || string(left) != "mine" {
		t.Errorf("it holds %q, %v", left, err)
	}
}

// TestCheckRecord: what the child may have written down in place of our record.
func TestCheckRecord(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "record")
	ours := Settings{"address": "x", "retry_max": int64(2)}
	for name, record := range map[string]string{
		"ours":          recordOf("http", ours, 5),
		"another":       `{"backend":{"type":"s3","config":{}}}`,
		"with settings": `{"backend":{"type":"http","config":{"address":"y"}}}`,
		"with one more": `{"backend":{"type":"http","config":{"address":"x","lock_method":"POST"}}}`,
		"none":          `{}`,
		"a state store": strings.Replace(recordOf("http", ours, 5), `{`, `{"state_store":{"type":"x"},`, 1),
	} {
		data := t.TempDir()
		if err := os.WriteFile(filepath.Join(data, recordName), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		mistakes.Failed(t, name, "", Record{files.Directory{Path: data}, ours}.Check())
	}
}
