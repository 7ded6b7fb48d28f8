package wrap

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestRecordIsNoLink: a link that a module brings along in place of the record leads to no
// file of the user.
func TestRecordIsNoLink(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	file := filepath.Join(t.TempDir(), "precious")
	if err := errors.Join(os.WriteFile(file, []byte("mine"), 0o600), os.Symlink(file, filepath.Join(data, recordName))); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writeRecord(t.Context(), data), checkRecord(data)); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadFile(file); err != nil || string(left) != "mine" {
		t.Errorf("it holds %q, %v", left, err)
	}
}
