//go:build unix

package replace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The name that is replaced is not the only one of the file.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	file := write(t, filepath.Join(t.TempDir(), "x"), "before")
	if note := OtherNames(file); note != "" {
		t.Errorf("got %q", note)
	}
	if err := os.Link(file, file+"-2"); err != nil {
		t.Skip("there are no hard links here")
	}
	if note := OtherNames(file); !strings.Contains(note, "another name") {
		t.Errorf("got %q", note)
	}
	if note := OtherNames(file + "-3"); note != "" {
		t.Errorf("got %q", note)
	}
}

// A file that this user may not write is not replaced, although the folder lets anyone
// do so: it would change its owner.
//
// Promise: Files of the command
func TestOfAnother(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/tmp", "") //nolint:usetesting // the folders above that of a test are closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // that is the case
		t.Fatal(err)
	}
	file := write(t, filepath.Join(dir, "x"), "before")
	if err := os.Chmod(file, 0o444); err != nil { //nolint:gosec // likewise
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	self, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, self, 0o755) //nolint:gosec // it is run by another user
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, file) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), replaces+"=1")
	if os.Getuid() == 0 { // whom no mode keeps from writing
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "permission denied") || read(t, file) != "before" {
		t.Errorf("got %v, %q, and the file has %q", err, out, read(t, file))
	}
}
