package file

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWriting: a file that someone writes is read once more before anything is said of it.
//
// Promise: States in stores
func TestWriting(t *testing.T) {
	t.Parallel()
	const state = `{"version":4}`
	for name, half := range map[string]string{"overwritten": "!\"version\":4}", "emptied": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "terraform.tfstate")
			put := func(text string) {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Error(err)
				}
			}
			put(half)
			snap, err := location{path: path, limit: 1 << 20, pause: func(context.Context) { put(state) }}.Fetch(t.Context())
			if err != nil || string(snap.Data) != state {
				t.Errorf("got %v, %v", snap, err)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	if err := os.WriteFile(path, []byte("!half"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := location{path: path, limit: 1 << 20, pause: pause}.Fetch(t.Context())
	if err == nil || !strings.Contains(err.Error(), "statecrypt wrap") {
		t.Errorf("got %v", err)
	}
}
