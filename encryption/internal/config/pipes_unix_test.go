//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPipesInAFolder: what is found in a folder, and is no regular file, is not opened.
func TestPipesInAFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"terraform.tfvars", "x.auto.tfvars", "x.auto.tfvars.json", "more.tf", "more.tf.json"} {
		dir := t.TempDir()
		module := "terraform {\nencryption {}\n}\n"
		if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(module), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := ParseModule(dir, Options{})
			ended <- err
		}()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), name+"\" cannot be read: it is not a regular file") {
				t.Errorf("%s: got %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s is waited for", name)
		}
	}
}
