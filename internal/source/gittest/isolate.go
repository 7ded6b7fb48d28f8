// Package gittest runs real git servers on this machine for tests: over http and https (git http-backend),
// over ssh, and from files. The servers need no network, account or special permissions, and stop when the
// test ends.
package gittest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Isolate removes the user's git and ssh settings from the environment for the duration of a test. The test
// must not be parallel.
func Isolate(tb testing.TB) {
	tb.Helper()
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); personal.MatchString(pair) {
			tb.Setenv(name, value) // so that the value is restored after the test
			_ = os.Unsetenv(name)
		}
	}
	for _, pair := range isolated(tb.TempDir()) {
		name, value, _ := strings.Cut(pair, "=")
		tb.Setenv(name, value)
	}
}

// Environ returns the environment of this process without the user's git and ssh settings.
func Environ(home string) []string {
	return append(slices.DeleteFunc(os.Environ(), personal.MatchString), isolated(home)...)
}

var personal = regexp.MustCompile(`^((GIT|GITHUB|SSH|XDG_CONFIG|TF)_|StrictHostKeyChecking=)`)

func isolated(home string) []string {
	return []string{"HOME=" + home, "USERPROFILE=" + home, "GIT_CONFIG_NOSYSTEM=1", "XDG_CONFIG_HOME=" + filepath.Join(home, ".config")}
}

// needGit skips the test if git is not installed.
func needGit(tb testing.TB) {
	tb.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		tb.Skip("git is not installed")
	}
}
