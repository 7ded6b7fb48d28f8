// Package gittest runs real git servers on this machine for tests: over http
// and https (git http-backend), over ssh and from files. They need no network,
// no account and no rights, and are gone when the test ends.
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

// Isolate takes the user's git and ssh settings out of the environment for the
// time of a test, which cannot be parallel.
func Isolate(tb testing.TB) {
	tb.Helper()
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); personal.MatchString(pair) {
			tb.Setenv(name, value) // remembers the value
			_ = os.Unsetenv(name)
		}
	}
	for _, pair := range isolated(tb.TempDir()) {
		name, value, _ := strings.Cut(pair, "=")
		tb.Setenv(name, value)
	}
}

// Environ is the environment of this process without the user's git and ssh
// settings.
func Environ(home string) []string {
	return append(slices.DeleteFunc(os.Environ(), personal.MatchString), isolated(home)...)
}

var personal = regexp.MustCompile(`^((GIT|GITHUB|SSH|XDG_CONFIG|TF)_|StrictHostKeyChecking=)`)

func isolated(home string) []string {
	return []string{"HOME=" + home, "USERPROFILE=" + home, "GIT_CONFIG_NOSYSTEM=1", "XDG_CONFIG_HOME=" + filepath.Join(home, ".config")}
}

// needGit skips the test where git is absent, or a part of it.
func needGit(tb testing.TB) {
	tb.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		tb.Skip("git is not installed")
	}
}
