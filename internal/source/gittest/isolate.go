// Package gittest runs real git servers on this machine for tests: over http
// and https (git http-backend), over ssh and from files. They need no network,
// no account and no rights, and are gone when the test ends.
package gittest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Isolate takes the user's git and ssh settings out of the environment for the
// time of a test, which cannot be parallel. home becomes $HOME.
func Isolate(tb testing.TB) (home string) {
	tb.Helper()
	home = tb.TempDir()
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if isPersonal(name) {
			tb.Setenv(name, value) // remembers the value
			_ = os.Unsetenv(name)
		}
	}
	for _, pair := range isolated(home) {
		name, value, _ := strings.Cut(pair, "=")
		tb.Setenv(name, value)
	}
	return home
}

// Environ is the environment of this process without the user's git and ssh
// settings.
func Environ(home string) []string {
	var env []string
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); !isPersonal(name) {
			env = append(env, pair)
		}
	}
	return append(env, isolated(home)...)
}

func isPersonal(name string) bool {
	for _, prefix := range []string{"GIT_", "GITHUB_", "SSH_", "XDG_CONFIG_", "TF_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == "StrictHostKeyChecking"
}

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
