package drift

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
)

// version is a line of scripts/versions.txt.
type version struct{ name, number, toolchain string }

func (v version) String() string { return v.name + "-" + strings.TrimPrefix(v.number, "v") }

func (v version) module() string {
	if v.name == "tofu" {
		return "github.com/opentofu/opentofu"
	}
	return "github.com/hashicorp/" + v.name
}

// versions returns the versions of scripts/versions.txt.
func versions(t *testing.T) (all []version) {
	data, err := os.ReadFile(root + "scripts/versions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		words := append(strings.Fields(line), "auto")
		if len(words) == 1 {
			continue
		}
		name, number, _ := strings.Cut(words[0], "-")
		all = append(all, version{name, "v" + number, words[1]})
	}
	return all
}

// goTool runs the go command outside all modules. The proxy alone answers it: a repository would take long to say that
// it does not have a version.
func goTool(t *testing.T, toolchain string, args ...string) (string, error) {
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir = t.TempDir()
	c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOTOOLCHAIN="+toolchain, "GOPROXY="+proxy(t))
	out, err := c.Output()
	return string(out), err
}

// proxy returns the setting GOPROXY without repositories.
func proxy(t *testing.T) string {
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimSpace(string(out)), ",direct")
}

// download returns the folder with the source of a version.
func (v version) download(t *testing.T) string {
	out, err := goTool(t, v.toolchain, "mod", "download", "-json", v.module()+"@"+v.number)
	dir := regexp.MustCompile(`"Dir": "(.*)"`).FindStringSubmatch(out)
	if err != nil || dir == nil {
		t.Fatalf("the source of %s cannot be had: %v\n%s", v, err, out)
	}
	return dir[1]
}

// newer returns the versions, and those of the proxy that are newer, which are findings. A proxy may have versions
// that its list does not name, so the next ones are asked for by name.
func newer(t *testing.T, found findings, pinned []version) []version {
	all := slices.Clone(pinned)
	for _, name := range []string{"terraform", "tofu"} {
		var ours []string
		for _, v := range pinned {
			if v.name == name {
				ours = append(ours, v.number)
			}
		}
		if len(ours) == 0 {
			t.Fatalf("scripts/versions.txt has no %s", name)
		}
		semver.Sort(ours)
		module := version{name: name}.module()
		theirs := listed(t, module)
		if len(theirs) == 0 || semver.Compare(theirs[len(theirs)-1], ours[len(ours)-1]) < 0 {
			t.Logf("the proxy's list of %s ends before %s, so only the next versions after that are asked for", name, ours[len(ours)-1])
		}
		for _, next := range following(ours) {
			if _, err := goTool(t, "auto", "list", "-m", module+"@"+next); err == nil {
				theirs = append(theirs, next)
			}
		}
		semver.Sort(theirs)
		for _, number := range slices.Compact(theirs) {
			if isNews(number, ours) {
				v := version{name, number, "auto"}
				found.add(v.String(), "versions", []string{v.String()}, nil)
				all = append(all, v)
			}
		}
	}
	return all
}

// listed returns the versions in the proxy's list of a module, sorted.
func listed(t *testing.T, module string) []string {
	out, err := goTool(t, "auto", "list", "-m", "-versions", module)
	if err != nil {
		t.Fatalf("the proxy names no versions of %s: %v", module, err)
	}
	all := strings.Fields(out)[1:]
	semver.Sort(all)
	return all
}

// newestPlugins returns the newest version of terraform-plugin-go: ours, or that of the proxy.
func newestPlugins(t *testing.T) string {
	module := version{name: "terraform-plugin-go"}.module()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	all := append(listed(t, module), strings.TrimSpace(string(out)))
	semver.Sort(all)
	return all[len(all)-1]
}

// newest returns the newest version and the newest release of a sorted list.
func newest(sorted []string) (last, release string) {
	for _, v := range sorted {
		if last = v; semver.Prerelease(v) == "" {
			release = v
		}
	}
	return last, release
}

// isNews reports whether a version is newer than ours. Alphas are not.
func isNews(v string, ours []string) bool {
	last, release := newest(ours)
	return !strings.HasPrefix(semver.Prerelease(v), "-alpha") &&
		(semver.Compare(v, last) > 0 || semver.Prerelease(v) == "" && semver.Compare(v, release) > 0)
}

// following returns the versions that may come next.
func following(ours []string) (next []string) {
	last, release := newest(ours)
	var major, minor, patch int
	if _, err := fmt.Sscanf(release, "v%d.%d.%d", &major, &minor, &patch); err == nil {
		next = append(next, fmt.Sprintf("v%d.%d.%d", major, minor, patch+1))
	}
	if _, err := fmt.Sscanf(last, "v%d.%d.%d", &major, &minor, &patch); err == nil {
		for _, suffix := range []string{"", "-beta1", "-rc1"} {
			next = append(next, fmt.Sprintf("v%d.%d.0%s", major, minor+1, suffix))
		}
	}
	if pre := semver.Prerelease(last); pre != "" {
		base := strings.TrimSuffix(last, pre)
		stage := strings.TrimRight(pre, "0123456789")
		n, _ := strconv.Atoi(strings.TrimPrefix(pre, stage))
		next = append(next, base, base+"-rc1", base+stage+strconv.Itoa(n+1))
	}
	return next
}

var (
	helpFlag    = regexp.MustCompile(`(?m)^\s+-([a-z][a-z0-9-]*)`)
	helpCommand = regexp.MustCompile(`(?m)^ {2,4}([a-z][a-z-]*)  +\S`)
)

// help adds the commands and flags that a program names in its help.
func (t *theirs) help(test *testing.T, program string) {
	program, err := filepath.Abs(program)
	if err != nil {
		test.Fatal(err)
	}
	about := func(command string) string {
		c := exec.CommandContext(test.Context(), program, append(strings.Fields(command), "-help")...)
		c.Dir = test.TempDir()
		out, err := c.CombinedOutput()
		if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) { // its status says nothing
			test.Fatal(err)
		}
		_, help, _ := strings.Cut(string(out), "Usage:")
		return help
	}
	for _, above := range []string{"", "state", "providers", "workspace"} {
		for _, m := range helpCommand.FindAllStringSubmatch(about(above), -1) {
			name := strings.TrimSpace(above + " " + m[1])
			if t.commands[name] == nil {
				t.commands[name] = flags{}
			}
		}
	}
	if !strings.Contains(about("plan"), "-out") {
		test.Fatalf("the help of %s does not look as it did", program)
	}
	for name, has := range t.commands {
		for _, m := range helpFlag.FindAllStringSubmatch(about(name), -1) {
			if _, ok := has[m[1]]; !ok {
				has[m[1]] = "?"
			}
		}
	}
}

// literals returns the texts of cases, of keys and of arguments in a function of ours: the names that it knows.
func literals(t *testing.T, folder, function string) (names []string) {
	s := &source{dir: root, files: token.NewFileSet()}
	names, err := s.names(filepath.FromSlash(folder), func(n ast.Node, add func(string)) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return n.Name.Name == function
		case *ast.BasicLit:
			add(text(n))
		}
		return true
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("%s of %s names nothing: %v", function, folder, err)
	}
	return names
}
