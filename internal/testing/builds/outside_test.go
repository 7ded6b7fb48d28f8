package builds_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestOutside builds and tests a program in a module of its own, which uses this
// one as others would.
//
// Promise: API
// Promise: Plain states
func TestOutside(t *testing.T) {
	t.Parallel()
	needGo(t)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "builtin", "testdata", "outside"))); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "outside.exe")
	run := func(args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = dir
		// What has these flags was compiled before, wherever this clone is.
		c.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath -ldflags=-s", "GOWORK=off", "CGO_ENABLED=0",
			"OUTSIDE_PROGRAM="+program, "OUTSIDE_VECTORS="+filepath.Join(root, "conformance", "cases"))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", args[0], err, out)
		}
	}
	run("mod", "init", "example.com/outside")
	for _, folder := range []string{"", "/encryption", "/internal/shared"} {
		run("mod", "edit", "-require="+module+folder+"@"+version, "-replace="+module+folder+"="+root+folder)
	}
	run("build", "-o", program, ".")
	run("test", "-count=1", "-vet=off", ".")
}
