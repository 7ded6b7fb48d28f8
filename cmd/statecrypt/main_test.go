package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const maxBinary = 45_000_000 // bytes; there is room for the SDKs of the key services

// built builds the program as a release does, once for all tests.
func built(t *testing.T) (path string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the command")
	}
	path, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var buildOnce = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "statecrypt")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=1.2.3", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return path, err
})

// folder is for what all tests share.
var folder string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "statecrypt")
	if err != nil {
		panic(err)
	}
	folder = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// The program itself, as a release builds it.
func TestBinary(t *testing.T) {
	t.Parallel()
	path := built(t)
	if info, err := os.Stat(path); err != nil || info.Size() > maxBinary {
		t.Errorf("the binary has %d bytes, want at most %d: %v", info.Size(), maxBinary, err)
	}
	if out, err := exec.Command(path, "-version").Output(); err != nil || string(out) != "statecrypt 1.2.3\n" {
		t.Errorf("got %q, %v", out, err)
	}
	text := plain
	for _, name := range []string{"encrypt", "decrypt"} { // by a pipe
		cmd := exec.Command(path, name)
		cmd.Env = append(os.Environ(), "TF_ENCRYPTION="+onlyOld)
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		text = string(out)
	}
	if text != plain {
		t.Errorf("got %s", text)
	}
	if runtime.GOOS != "windows" {
		interrupted(t, path)
	}
}

// interrupted sends the signal of Ctrl-C while the program waits for its input.
func interrupted(t *testing.T, path string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), path, "decrypt", "-o", filepath.Join(dir, "x"))
	cmd.Env = append(os.Environ(), "TF_ENCRYPTION="+onlyOld)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds, so it is reading.
	_, _ = in.Write(make([]byte, 1<<20))
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err == nil || err.Error() != "signal: interrupt" {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("these were left: %v, %v", left, err)
	}
}
