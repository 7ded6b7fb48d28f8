package builds_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestInstalling: the commands of the guide install the provider and the command from
// a clone of this repository.
func TestInstalling(t *testing.T) {
	t.Parallel()
	needGo(t)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	needClone(t, root)
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", fromSource(t, root))
	cmd.Dir = home
	cmd.Env = append(os.Environ(), goCaches(t)...)
	cmd.Env = append(cmd.Env, "HOME="+home, "GOPATH="+filepath.Join(home, "go"), "GOBIN=", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url."+root+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+module)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\nstatecrypt dev\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, registry := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		name := filepath.Join(home, ".terraform.d", "plugins", registry, "statecrypt", "statecrypt", "0.1.0", runtime.GOOS+"_"+runtime.GOARCH,
			"terraform-provider-statecrypt")
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o100 == 0 {
			t.Errorf("the provider is not installed: %v", err)
		}
	}
}

// needClone skips a test where nobody could install from source, or nothing can be cloned.
func needClone(t *testing.T, root string) {
	t.Helper()
	for _, program := range []string{"bash", "git", "make"} {
		if _, err := exec.LookPath(program); err != nil || runtime.GOOS == "windows" {
			t.Skip("the commands are for Linux and macOS, with bash, git and make")
		}
	}
	if err := exec.CommandContext(t.Context(), "git", "-C", root, "rev-parse", "HEAD").Run(); err != nil {
		t.Skip("this is no repository that could be cloned")
	}
}

// fromSource is what the guide says to run.
func fromSource(t *testing.T, root string) string {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join(root, "templates", "guides", "installing.md.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## From source\n")
	section, _, _ = strings.Cut(section, "\n## ")
	script := "set -euo pipefail\n"
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		script += block[1]
	}
	return script
}

// goCaches are those of the user, who has another home than the test.
func goCaches(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	values := strings.Fields(string(out))
	if err != nil || len(values) != 2 {
		t.Fatalf("%v, %q", err, out)
	}
	return []string{"GOCACHE=" + values[0], "GOMODCACHE=" + values[1]}
}
