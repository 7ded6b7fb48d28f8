package encryption_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestOutside builds and tests a program in a module of its own, which uses this
// one as others would.
func TestOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program with everything in it")
	}
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go tool")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "outside"))); err != nil {
		t.Fatal(err)
	}
	copyFile(t, filepath.Join(root, "go.sum"), filepath.Join(dir, "go.sum"))
	program := filepath.Join(dir, "outside.exe")
	run := func(args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off",
			"OUTSIDE_PROGRAM="+program, "OUTSIDE_VECTORS="+filepath.Join(root, "internal", "vectors"))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", args[0], err, out)
		}
	}
	run("mod", "init", "example.com/outside")
	run("mod", "edit", "-require="+module[:len(module)-1]+"@v0.0.0", "-replace="+module[:len(module)-1]+"="+root)
	run("build", "-o", program, ".")
	run("test", "-count=1", ".")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
