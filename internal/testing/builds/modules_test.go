package builds_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	modules "golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// version is what the modules of this repository say of each other.
const version = "v0.1.0"

// elsewhere is the environment of the go command on a machine that has nothing of
// this repository but what a release publishes. What others published comes from
// this machine, or else from where it always does.
func elsewhere(t *testing.T) []string {
	t.Helper()
	proxy := t.TempDir()
	for _, folder := range []string{"internal/shared", "encryption", "."} {
		publish(t, proxy, folder)
	}
	settings := strings.Split(goTool(t, ".", nil, "env", "GOMODCACHE", "GOPROXY"), "\n")
	return []string{
		"GOWORK=off", "GOFLAGS=-mod=mod -modcacherw", "CGO_ENABLED=0", "GOMODCACHE=" + t.TempDir(), "GONOSUMDB=" + module + "*",
		"GOPROXY=" + fileURL(proxy) + "," + fileURL(filepath.Join(settings[0], "cache", "download")) + "," + settings[1],
	}
}

func fileURL(path string) string { return "file:///" + strings.TrimPrefix(filepath.ToSlash(path), "/") }

// publish puts a module where the go command looks for one.
func publish(t *testing.T, proxy, folder string) {
	t.Helper()
	path := strings.TrimSuffix(module+"/"+folder, "/.")
	root := filepath.Join("../../..", folder)
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Skip("this is no clone")
	}
	files := t.TempDir()
	for name := range strings.SplitSeq(strings.Trim(string(names), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // it was deleted, and this is not committed yet
		}
		err = os.MkdirAll(filepath.Join(files, filepath.Dir(name)), 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(files, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := zip.CreateFromDir(archive, modules.Version{Path: path, Version: version}, files); err != nil {
		t.Fatal(err)
	}
	goMod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	for name, content := range map[string]string{
		"list": version + "\n", version + ".info": fmt.Sprintf(`{"Version":%q}`, version), version + ".mod": string(goMod),
	} {
		if err == nil {
			err = os.WriteFile(filepath.Join(at, name), []byte(content), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func goTool(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// TestInstall: "go install …@version" builds the command, and the suite with its cases,
// from what a release publishes.
func TestInstall(t *testing.T) {
	needGo(t)
	t.Parallel()
	bin := t.TempDir()
	goTool(t, t.TempDir(), append(elsewhere(t), "GOFLAGS=-modcacherw", "GOBIN="+bin),
		"install", "-trimpath", "-ldflags", "-s -w", module+"/cmd/statecrypt@"+version, module+"/conformance/cmd/conformance@"+version)
	run := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, program+goTool(t, ".", nil, "env", "GOEXE")), args...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", program, err)
		}
		return string(out)
	}
	if out := run("statecrypt", "-version"); !strings.HasPrefix(out, "statecrypt ") {
		t.Errorf("got %q", out)
	}
	if _, err := exec.LookPath("cat"); err != nil {
		t.Skip("there is no cat, which passes with a case that is not encrypted")
	}
	if out := run("conformance", "-run", "^tbg_plain$", "cat"); !strings.Contains(out, ": 1 passed, ") {
		t.Errorf("got %q", out)
	}
}

// TestModuleGraph: a program that opens states takes over the versions of no SDK.
func TestModuleGraph(t *testing.T) {
	needGo(t)
	t.Parallel()
	const most = 40
	dir := t.TempDir()
	const program = `package main

import (
	_ "` + module + `/encryption"
	_ "` + module + `/encryption/light"
	_ "` + module + `/encryption/tfstate"
)

func main() {}
`
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	env := elsewhere(t)
	goTool(t, dir, env, "mod", "init", "example.com/adopter")
	goTool(t, dir, env, "mod", "edit", "-require="+module+"/encryption@"+version)
	goTool(t, dir, env, "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "adopter.exe"), ".")
	graph := strings.Fields(goTool(t, dir, env, "list", "-m", "-f", "{{.Path}}", "all"))
	if len(graph) > most || !testkit.Within(graph, module+"/encryption") {
		t.Errorf("the program has %d modules, and may have %d: %q", len(graph), most, graph)
	}
	for _, heavy := range testkit.HeavyPackages() {
		if testkit.Within(graph, heavy) {
			t.Errorf("among them is %s: %q", heavy, graph)
		}
	}
	if testkit.Within(graph, module+"/cmd") || strings.Contains(" "+strings.Join(graph, " ")+" ", " "+module+" ") {
		t.Errorf("the provider is among them: %q", graph)
	}
}
