package builds_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/statecrypt/terraform-provider-statecrypt"

// needGo skips a test if programs cannot be compiled, or if there is no time.
func needGo(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("compiling takes too long for -short")
	}
	if _, err := exec.LookPath("go"); err != nil {
		tb.Skip("there is no go tool")
	}
}

// release builds a program as releases are built.
func release(tb testing.TB, program, version string) (file string, size int64) {
	tb.Helper()
	needGo(tb)
	file = filepath.Join(tb.TempDir(), path.Base(program)+".exe")
	compile(tb, []string{"CGO_ENABLED=0"}, "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", file, program)
	info, err := os.Stat(file)
	if err != nil {
		tb.Fatal(err)
	}
	return file, info.Size()
}

func compile(tb testing.TB, env []string, args ...string) {
	tb.Helper()
	build := exec.CommandContext(tb.Context(), "go", append([]string{"build"}, args...)...)
	build.Env = append(os.Environ(), env...)
	if out, err := build.CombinedOutput(); err != nil {
		tb.Errorf("%s: %v\n%s", strings.Join(env, " "), err, out)
	}
}

// TestCommand is about the command as a release builds it.
func TestCommand(t *testing.T) {
	const most = 45_000_000 // bytes; there is room for the SDKs of the key services
	file, size := release(t, module+"/cmd/statecrypt", "1.2.3")
	if size > most {
		t.Errorf("the binary has %d bytes, want at most %d", size, most)
	}
	if out, err := exec.Command(file, "-version").Output(); err != nil || string(out) != "statecrypt 1.2.3\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

// TestBuildsElsewhere: the example program, which has all kinds of package light, and sops build where no program
// can be started.
//
// Promise: Builds
func TestBuildsElsewhere(t *testing.T) {
	needGo(t)
	t.Parallel()
	for _, system := range []string{"js", "wasip1"} {
		compile(t, []string{"GOOS=" + system, "GOARCH=wasm", "CGO_ENABLED=0"}, "-trimpath", "-o", t.TempDir(),
			module+"/examples/library", module+"/builtin/method/sops")
	}
}
