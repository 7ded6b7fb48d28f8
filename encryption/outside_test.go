package encryption_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
	if err := os.WriteFile(to, []byte(readText(t, from)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestShortestProgram: what the documentation shows is what runs.
func TestShortestProgram(t *testing.T) {
	t.Parallel()
	_, example, _ := strings.Cut(readText(t, "example_test.go"), "\nfunc Example() {\n")
	example, _, _ = strings.Cut(example, "\n}\n")
	var statements []string
	for _, line := range lines(example) {
		if strings.Contains(line, ", err := ") && !strings.Contains(line, "os.ReadFile") {
			statements = append(statements, line)
		}
	}
	if len(statements) != 4 {
		t.Fatalf("the example has the statements %q", statements)
	}
	for _, path := range []string{
		"encryption.go", "testdata/outside/main.go", "../README.md", "../templates/guides/go-library.md.tmpl",
	} {
		there := lines(readText(t, path))
		for _, statement := range statements {
			if !slices.Contains(there, statement) {
				t.Errorf("%s lacks %s", path, statement)
			}
		}
	}
}

// lines returns the lines of a text without indentation, as those of a comment
// in Go have it too, and without comments behind them.
func lines(text string) []string {
	all := strings.Split(text, "\n")
	for i, line := range all {
		line, _, _ = strings.Cut(strings.TrimLeft(line, "/\t"), " // ")
		all[i] = strings.TrimSpace(line)
	}
	return all
}

func readText(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
