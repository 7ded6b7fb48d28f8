package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/all"
	stores "github.com/statecrypt/terraform-provider-statecrypt/internal/store/all"
)

// TestDocsNameTests checks that the tests, the files and the folders exist that pages for developers name.
func TestDocsNameTests(t *testing.T) {
	tests, _ := functions(t)
	for path, least := range map[string]int{"DESIGN.md": 10, "CONTRIBUTING.md": 6, "docs/maintaining.md": 2} {
		names := regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]+)`").FindAllStringSubmatch(readText(t, path), -1)
		if len(names) < least {
			t.Errorf("%s names %d tests", path, len(names))
		}
		for _, name := range names {
			if !tests[name[1]] {
				t.Errorf("%s: there is no test %s", path, name[1])
			}
		}
		for _, file := range regexp.MustCompile("`((?:builtin|cmd|conformance|encryption|examples|internal|scripts|templates|tools)/[a-z_./]*)`").
			FindAllStringSubmatch(readText(t, path), -1) {
			if _, err := os.Stat(file[1]); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// promisesPage lists the tests of each promise. It is made from the comments at the tests.
const promisesPage = "docs/promises.md"

// TestPromises checks that each promise of SECURITY.md, of the library and of the threat model has a test
// whose comment names it, that each such comment names a promise, and that the page of promises has them
// all. STATECRYPT_GOLDENS=write writes the page.
func TestPromises(t *testing.T) {
	tests, lines := promised(t)
	attacks := lastAttacks(t)
	page := []string{"# Promises and their tests", "",
		"A test fails when its promise becomes false. The comment above a test names its promises:",
		"`// Promise: Pins`, with a note in brackets if the name of the test does not say enough. `TestPromises` reads these",
		"comments and writes this page, if `STATECRYPT_GOLDENS=write` is set. `go test -run '^TestPins$' work` runs a test.",
		"[attacks.md](attacks.md) has the attempts to break a promise by hand."}
	for _, from := range []struct {
		heading string
		names   []string
	}{
		{"[SECURITY.md](../SECURITY.md#what-we-promise)", leads(t, "SECURITY.md", "What we promise", 18)},
		{"The [threat model](guides/threat-model.md) alone", namedByAttacks(t)},
		{"The [library](../encryption/README.md)", leads(t, "encryption/README.md", "What it promises", 18)},
	} {
		if page = append(page, "", "## "+from.heading); len(from.names) == 0 {
			t.Errorf("%s has no promises", from.heading)
		}
		for _, name := range from.names {
			if len(tests[name]) == 0 {
				t.Errorf("%s: no test, or a promise that stands twice", name)
			}
			page = append(page, "", "### "+name, "")
			if day := attacks[name]; day != "" {
				page = append(page, "Last attack: "+day, "")
			}
			slices.Sort(tests[name])
			page = append(page, tests[name]...)
			delete(tests, name)
			delete(attacks, name)
		}
	}
	for name, those := range tests {
		t.Errorf("nobody makes the promise %s, which these tests keep: %s", name, those)
	}
	for name := range attacks {
		t.Errorf("docs/attacks.md has an attack on %s, which nobody promises", name)
	}
	if lines < 350 {
		t.Errorf("%d comments name a promise", lines)
	}
	text := strings.Join(page, "\n") + "\n"
	if os.Getenv("STATECRYPT_GOLDENS") == "write" {
		if err := os.WriteFile(promisesPage, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text != readText(t, promisesPage) {
		t.Errorf("%s is not up to date: STATECRYPT_GOLDENS=write go test -run '^TestPromises$' . writes it", promisesPage)
	}
}

var (
	promiseLine = regexp.MustCompile(`(?im)^\s*//\s*promises?:.*$`)
	promiseForm = regexp.MustCompile(`^// Promise: ([^()]+?)(?: (\(.+\)))?$`)
	testsOfFile = regexp.MustCompile(`(?m)((?:^//.*\n)+)^func ((?:Test|Fuzz)\w+)\(`)
)

// promised returns an item of a list for each test that keeps a promise, by the name of the promise, and
// the number of comments that name one.
func promised(t *testing.T) (tests map[string][]string, lines int) {
	t.Helper()
	tests = map[string][]string{}
	for file, code := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") || file == "docs_test.go" {
			continue
		}
		found := 0
		for _, test := range testsOfFile.FindAllStringSubmatch(code, -1) {
			for _, line := range promiseLine.FindAllString(test[1], -1) {
				found++
				form := promiseForm.FindStringSubmatch(line)
				if form == nil {
					t.Errorf("%s: %q is not of the form // Promise: NAME (NOTE)", file, line)
					continue
				}
				item := "- [`" + test[2] + "`](../" + file + ")"
				tests[form[1]] = append(tests[form[1]], strings.TrimSpace(item+" "+form[2]))
			}
		}
		if all := len(promiseLine.FindAllString(code, -1)); all != found {
			t.Errorf("%s has %d comments that name a promise, %d of them at a test", file, all, found)
		}
		lines += found
	}
	return tests, lines
}

// goFiles returns the code of the repository by its paths, which have slashes.
func goFiles(t *testing.T) map[string]string {
	t.Helper()
	code := map[string]string{}
	if err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go"):
			code[filepath.ToSlash(path)] = readText(t, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return code
}

// leads returns the words in bold with which the items below a heading begin.
func leads(t *testing.T, path, heading string, least int) (names []string) {
	t.Helper()
	items := section(t, path, heading)
	for _, lead := range regexp.MustCompile(`(?m)^- \*\*([^*]+?)\.?\*\*`).FindAllStringSubmatch(items, -1) {
		names = append(names, lead[1])
	}
	if all := strings.Count(items, "\n- "); len(names) != all || all < least {
		t.Errorf("%s has %d promises, and %d of them begin with a name", path, all, len(names))
	}
	return names
}

// namedByAttacks returns the promises that the tables of the threat model name in their last columns,
// without those of SECURITY.md. An attack that succeeds says so, and names none.
func namedByAttacks(t *testing.T) (names []string) {
	t.Helper()
	known := leads(t, "SECURITY.md", "What we promise", 18)
	rows := 0
	for _, table := range strings.Split(readText(t, "templates/guides/threat-model.md.tmpl"), "| Promise |\n")[1:] {
		table, _, _ = strings.Cut(table, "\n\n")
		for _, row := range strings.Split(table, "\n")[1:] {
			cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(row), "|"), " | ")
			last := strings.TrimSpace(cells[len(cells)-1])
			if rows++; strings.HasSuffix(row, " | |") {
				if last = ""; !regexp.MustCompile(`\*\*(?:they )?can|they can|verify them yourself`).MatchString(row) {
					t.Errorf("the threat model names no promise: %s", row)
				}
			}
			for _, name := range strings.Split(last, ", ") {
				if name != "" && !slices.Contains(known, name) {
					names, known = append(names, name), append(known, name)
				}
			}
		}
	}
	if rows < 60 {
		t.Errorf("the threat model has %d attacks", rows)
	}
	return names
}

// lastAttacks returns the day of the last attack on each promise.
func lastAttacks(t *testing.T) map[string]string {
	t.Helper()
	days := map[string]string{}
	rows := regexp.MustCompile(`(?m)^\| (\d{4}-\d\d-\d\d) \| ([^|]+) \| [^|]+ \|$`).FindAllStringSubmatch(readText(t, "docs/attacks.md"), -1)
	for i, row := range rows {
		if days[row[2]] = max(days[row[2]], row[1]); i > 0 && row[1] > rows[i-1][1] {
			t.Errorf("docs/attacks.md: the attack of %s stands below an older one", row[1])
		}
	}
	if all := strings.Count(readText(t, "docs/attacks.md"), "\n| 2"); len(rows) == 0 || all != len(rows) {
		t.Errorf("docs/attacks.md has %d rows, and %d of them have a day and a promise", all, len(rows))
	}
	return days
}

// The modules of this repository are released together, so each says the same version
// of the others.
func TestOneVersion(t *testing.T) {
	const other = `github\.com/statecrypt/terraform-provider-statecrypt/(?:encryption|internal/shared) (v\S+)`
	for path, count := range map[string]int{
		"go.mod": 2, "encryption/go.mod": 1, "internal/shared/go.mod": 0, "go.work": 2, "tools/bench/go.mod": 2,
	} {
		said := regexp.MustCompile(other).FindAllStringSubmatch(readText(t, path), -1)
		if len(said) != count {
			t.Errorf("%s names %d versions", path, len(said))
		}
		for _, version := range said {
			if !strings.Contains(readText(t, "CHANGELOG.md"), "\n## ["+strings.TrimPrefix(version[1], "v")+"]") {
				t.Errorf("%s has %s, which the changelog does not have", path, version[1])
			}
			if first := regexp.MustCompile(other).FindStringSubmatch(readText(t, "go.mod")); version[1] != first[1] {
				t.Errorf("%s has %s, and go.mod %s", path, version[1], first[1])
			}
		}
	}
}

// What the documentation loads and runs from this repository is that of its version.
func TestDocsAreOfTheirVersion(t *testing.T) {
	version := regexp.MustCompile(`/encryption (v\S+)`).FindStringSubmatch(readText(t, "go.mod"))[1]
	tag := regexp.MustCompile(`(?:githubusercontent\.com/)?statecrypt/terraform-provider-statecrypt/(?:(\S+?)/(?:docs/pictures|actions)/|actions/\S+@(\S+))`)
	input := regexp.MustCompile(`(?m)^ +version: (\d\S*)$`) // of GitLab's template
	pipelines, err := filepath.Glob("examples/guides/*/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range append(pipelines, "templates/index.md.tmpl") {
		text := readText(t, path)
		for _, at := range slices.Concat(tag.FindAllStringSubmatch(text, -1), input.FindAllStringSubmatch(text, -1)) {
			if found++; "v"+strings.TrimPrefix(strings.Join(at[1:], ""), "v") != version {
				t.Errorf("%s: %s is not of %s", path, at[0], version)
			}
		}
	}
	if found < 8 {
		t.Errorf("%d places have a version", found)
	}
}

// The threat model says of each kind what it connects to. Key providers and methods that need no SDK connect to
// nothing, see TestLinksLittle, so it need not name them.
func TestConnectionsAreComplete(t *testing.T) {
	said := section(t, "templates/guides/threat-model.md.tmpl", "What it connects to")
	var kinds []string
	for _, k := range all.Kinds() {
		kinds = append(kinds, k.Name)
	}
	for _, k := range stores.Kinds() {
		kinds = append(kinds, k.Name)
	}
	few := light.Registry()
	for _, k := range builtin.Registry().KeyProviders {
		if _, connectsToNothing := few.KeyProvider(k.Name); !connectsToNothing {
			kinds = append(kinds, k.Name)
		}
	}
	for _, k := range builtin.Registry().Methods {
		if _, connectsToNothing := few.Method(k.Name); !connectsToNothing {
			kinds = append(kinds, k.Name)
		}
	}
	for _, kind := range kinds {
		if !strings.Contains(said, "`"+kind+"`") {
			t.Errorf("%s is missing", kind)
		}
	}
}

// TestDesignNamesFolders checks that the house in DESIGN.md has all folders with code, and no others.
func TestDesignNamesFolders(t *testing.T) {
	_, list, _ := strings.Cut(section(t, "DESIGN.md", "The house"), "```\n")
	list, _, _ = strings.Cut(list, "```")
	rooms := map[string]*regexp.Regexp{}
	pattern := strings.NewReplacer(regexp.QuoteMeta("*"), "[^/]*", "…", ".*")
	for _, room := range regexp.MustCompile(`(?m)(?:^| )(\S*(?:/|/…))(?:$| )`).FindAllStringSubmatch(strings.ReplaceAll(list, " ", "  "), -1) {
		rooms[room[1]] = regexp.MustCompile("^" + pattern.Replace(regexp.QuoteMeta(room[1])) + "$")
	}
	alike := regexp.MustCompile(`(?:keyprovider|method|source|auth)/\w+$|test$|^(?:tools|examples|internal/testing)/`)
	found := map[string]bool{}
	if err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == "." {
			return err
		}
		if d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if code, _ := filepath.Glob(filepath.Join(path, "*.go")); len(code) == 0 {
			return nil
		}
		known := false
		for room, is := range rooms {
			if is.MatchString(filepath.ToSlash(path) + "/") {
				known, found[room] = true, true
			}
		}
		if !known || !alike.MatchString(filepath.ToSlash(path)) && !strings.Contains(list, d.Name()) {
			t.Errorf("DESIGN.md does not name %s", path)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(rooms) < 35 {
		t.Errorf("the house has %d rooms", len(rooms))
	}
	for room := range rooms {
		if !found[room] {
			t.Errorf("DESIGN.md names %s, which has no code", room)
		}
	}
}

// TestDesignNamesSteps checks that the paths in DESIGN.md name files that exist, and functions of the same
// folder.
func TestDesignNamesSteps(t *testing.T) {
	_, declared := functions(t)
	words := []string{"Fetch", "Write", "driver.ErrNoKey", "fmt.Errorf", "%w", "http", "max_size", "statecrypt_resource",
		"{settings}", "NoMethod", "tools/ownwords"}
	steps := 0
	for _, path := range []string{"The path of a read", "The path of a write", "The path of an error"} {
		folder := ""
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(section(t, "DESIGN.md", path), -1) {
			switch {
			case strings.HasSuffix(name[1], ".go"):
				if dir := filepath.Dir(name[1]); dir != "." {
					folder = dir
				}
				if _, err := os.Stat(filepath.Join(folder, filepath.Base(name[1]))); err != nil {
					t.Errorf("%s: there is no file %s in %q", path, name[1], folder)
				}
			case declared[folder+" "+name[1]]:
				steps++
			case !slices.Contains(words, name[1]):
				t.Errorf("%s: %q declares no function %s", path, folder, name[1])
			}
		}
	}
	if steps < 38 {
		t.Errorf("the paths name %d functions", steps)
	}
}

// functions returns the names of all tests, and all other functions, as folder and name or folder, type
// and name.
func functions(t *testing.T) (tests, others map[string]bool) {
	t.Helper()
	tests, others = map[string]bool{}, map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func (?:\(\w* ?\*?(\w+)(?:\[\w+\])?\) )?(\w+)`)
	for file, code := range goFiles(t) {
		for _, f := range declaration.FindAllStringSubmatch(code, -1) {
			switch folder := path.Dir(file); {
			case strings.HasSuffix(file, "_test.go"):
				tests[f[2]] = true
			case f[1] != "":
				others[folder+" "+f[1]+"."+f[2]] = true
			default:
				others[folder+" "+f[2]] = true
			}
		}
	}
	return tests, others
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns what stands below a heading of a Markdown file.
func section(t *testing.T, path, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(readText(t, path), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", path, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// TestReadme checks that README begins with two commands, and that its sample is a part of the demo, which
// the first one runs.
func TestReadme(t *testing.T) {
	readme := readText(t, "README.md")
	first, _, _ := strings.Cut(readme, "\n## ")
	for _, command := range []string{"demo", "test"} {
		if !regexp.MustCompile("(?s)```shell\n(?:make \\S+ #[^\n]*\n)*make " + command + " #").MatchString(first) {
			t.Errorf("README does not begin with make %s", command)
		}
	}
	samples := regexp.MustCompile("(?s)```terraform\n(.*?)```").FindAllStringSubmatch(readme, -1)
	for _, sample := range samples {
		if lines := strings.Count(sample[1], "\n"); lines > 5 || !strings.Contains(readText(t, "examples/demo/main.tf"), sample[1]) {
			t.Errorf("these %d lines are not in examples/demo/main.tf:\n%s", lines, sample[1])
		}
	}
	if len(samples) != 1 {
		t.Errorf("README has %d samples", len(samples))
	}
}

// TestVersionsAreTold checks that the pages and the workflow which say what is tested have all versions of
// scripts/versions.txt, and that no file names a program of another version, such as terraform-1.5.7.
func TestVersionsAreTold(t *testing.T) {
	versions := map[string][]string{}
	for line := range strings.Lines(readText(t, "scripts/versions.txt")) {
		form := regexp.MustCompile(`^(terraform|tofu)-(\d+\.\d+\.\d+\S*)( go\d\S+)?( # .+)?\n$`).FindStringSubmatch(line)
		if form == nil {
			t.Fatalf("%q is not a CLI with its version, perhaps a Go toolchain, and perhaps a note", line)
		}
		versions[form[1]] = append(versions[form[1]], form[2])
	}
	enumeration := func(all []string) string {
		return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
	}
	tested := "tested with Terraform " + enumeration(versions["terraform"]) + ", and with OpenTofu " + enumeration(versions["tofu"]) + "."
	for _, page := range []string{"README.md", "docs/index.md"} {
		if !strings.Contains(strings.Join(strings.Fields(readText(t, page)), " "), tested) {
			t.Errorf("%s does not say: %s", page, tested)
		}
	}
	const workflow = ".github/workflows/test.yml"
	for _, all := range versions {
		if list := `version: ["` + strings.Join(all, `", "`) + `", latest]`; !strings.Contains(readText(t, workflow), list) {
			t.Errorf("%s does not have: %s", workflow, list)
		}
	}
	pinned := regexp.MustCompile(`opentofu/opentofu v(\S+)`).FindStringSubmatch(readText(t, "tools/tofu/go.mod"))
	if pinned == nil || !slices.Contains(versions["tofu"], pinned[1]) {
		t.Errorf("tools/tofu pins %q, which is not in scripts/versions.txt", pinned)
	}
	named := append(docs(t), handwritten(t)...)
	for _, pattern := range []string{"GNUmakefile", "scripts/*", ".github/workflows/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		named = append(named, files...)
	}
	for _, file := range named {
		for _, name := range regexp.MustCompile(`\b(terraform|tofu)-(\d+\.\d+\.\d+(?:-\w+)?)`).FindAllStringSubmatch(readText(t, file), -1) {
			if !slices.Contains(versions[name[1]], name[2]) {
				t.Errorf("%s names %s, which is not in scripts/versions.txt", file, name[0])
			}
		}
	}
}

// TestServicesAreTold checks that the page on services has the versions that scripts/services.sh runs.
func TestServicesAreTold(t *testing.T) {
	page := readText(t, "docs/services.md")
	for service, pin := range map[string]struct{ file, version string }{
		"Vault":           {"tools/vault/go.mod", `hashicorp/vault v(\S+)\n`},
		"Consul":          {"tools/consul/go.mod", `hashicorp/consul v(\S+)\n`},
		"Kubernetes":      {"tools/kubeapiserver/go.mod", `k8s.io/kubernetes v(\S+)`},
		"Gitea":           {"tools/gitea/go.mod", `code.gitea.io/gitea v(\S+)`},
		"versitygw":       {"scripts/tool.sh", `versitygw@v(\S+)`},
		"rclone":          {"scripts/tool.sh", `rclone@v(\S+)`},
		"Azurite":         {"tools/azurite/package.json", `"azurite": "(\S+)"`},
		"fake-gcs-server": {"tools/fakegcs/go.mod", `fake-gcs-server v(\S+)`},
	} {
		found := regexp.MustCompile(pin.version).FindStringSubmatch(readText(t, pin.file))
		if found == nil {
			t.Errorf("%s has no version of %s", pin.file, service)
		} else if row := "\n| " + service + " | " + found[1] + " | "; !strings.Contains(page, row) {
			t.Errorf("docs/services.md has no row %q: run make test-services, and then change the version and the date", row)
		}
	}
}

// TestHelp checks that make help prints each target, and that the pages name no others.
func TestHelp(t *testing.T) {
	makefile := readText(t, "GNUmakefile")
	phony := regexp.MustCompile(`(?m)^\.PHONY: (.+)$`).FindStringSubmatch(makefile)
	if phony == nil {
		t.Fatal("no target is phony")
	}
	targets := strings.Fields(phony[1])
	for _, target := range targets {
		if !regexp.MustCompile(`(?m)^` + target + `:.* ## \S`).MatchString(makefile) {
			t.Errorf("make help lacks %s", target)
		}
	}
	for _, page := range handwritten(t) {
		for _, call := range regexp.MustCompile("`make ([a-z-]+)|(?m)^make ([a-z-]+)").FindAllStringSubmatch(readText(t, page), -1) {
			if !slices.Contains(targets, call[1]+call[2]) {
				t.Errorf("%s: there is no target %s", page, call[1]+call[2])
			}
		}
	}
}

// handwritten returns the pages for developers.
func handwritten(t *testing.T) []string {
	t.Helper()
	root, err := filepath.Glob("*.md")
	if err != nil || len(root) < 5 {
		t.Fatal(root, err)
	}
	return append(root, "docs/attacks.md", "docs/benchmarks.md", "docs/maintaining.md", promisesPage, "encryption/README.md")
}

// TestPagesAreShort limits the pages that developers read first.
func TestPagesAreShort(t *testing.T) {
	together := 0
	for _, page := range handwritten(t) {
		if filepath.Dir(page) == "." {
			together += len(readText(t, page))
		}
	}
	if together > 58_000 {
		t.Errorf("the pages in this folder have %d bytes", together)
	}
	for page, most := range map[string]int{"SECURITY.md": 6_000, "DESIGN.md": 18_000} {
		if size := len(readText(t, page)); size > most {
			t.Errorf("%s has %d bytes", page, size)
		}
	}
	for page, most := range map[string]int{"README.md": 150, "docs/maintaining.md": 120} {
		if lines := strings.Count(readText(t, page), "\n"); lines > most {
			t.Errorf("%s has %d lines", page, lines)
		}
	}
}

// Users search for what they saw, so the headings have to be parts of it.
func TestTroubleshootingQuotesErrors(t *testing.T) {
	guide, err := os.ReadFile("templates/guides/troubleshooting.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	mistakes, err := os.ReadFile("internal/provider/testdata/mistakes.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, own, _ := strings.Cut(string(guide), "## Errors of statecrypt\n")
	own, _, _ = strings.Cut(own, "## Errors of Terraform and OpenTofu\n")
	headings := regexp.MustCompile("(?m)^### `(.+)`$").FindAllStringSubmatch(own, -1)
	if len(headings) < 10 {
		t.Errorf("the guide quotes %d errors", len(headings))
	}
	for _, h := range headings {
		if !quotes(h[1]).Match(mistakes) {
			t.Errorf("nobody sees %q", h[1])
		}
	}
}

// quotes finds an error, the three dots in which are what differs.
func quotes(heading string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(heading), "…", ".*"))
}

// The same of the command, whose errors are in its code.
func TestTroubleshootingQuotesTheCommand(t *testing.T) {
	guide := section(t, "templates/guides/troubleshooting.md.tmpl", "Errors of the command, and of age")
	var code strings.Builder
	for _, pattern := range []string{"cmd/statecrypt/*.go", "encryption/internal/agefile/*.go", "encryption/internal/ageplugin/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range files {
			if !strings.HasSuffix(name, "_test.go") {
				code.WriteString(readText(t, name))
			}
		}
	}
	headings := regexp.MustCompile("(?m)^### `(.+)`$").FindAllStringSubmatch(guide, -1)
	if len(headings) < 4 {
		t.Errorf("the guide quotes %d errors", len(headings))
	}
	for _, h := range headings {
		if !quotes(h[1]).MatchString(code.String()) {
			t.Errorf("nobody sees %q", h[1])
		}
	}
}

// What people search for is a heading of the guide on troubleshooting.
func TestSearchesAreAnswered(t *testing.T) {
	guide := readText(t, "templates/guides/troubleshooting.md.tmpl")
	for _, word := range []string{"FAQ", "Debug", "Performance", "Upgrade", "Terragrunt", "Atlantis", "PowerShell", "401", "x509"} {
		if !regexp.MustCompile(`(?m)^##.*\b` + word + `\b`).MatchString(guide) {
			t.Errorf("no heading has %q", word)
		}
	}
}

// The guide on settings says things in the order in which people need them.
func TestSettingsStandAlone(t *testing.T) {
	guide := readText(t, "templates/guides/encryption-settings.md.tmpl")
	var order []string
	for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(guide, 5) {
		order = append(order, heading[1])
	}
	if got := strings.Join(order, ", "); got != "The minimum, Two keys, Text, Environment, Precedence" {
		t.Errorf("the guide begins with %s", got)
	}
	if strings.Contains(guide, "above") {
		t.Error("the guide refers to something above")
	}
}

// An example stands on one page; others link to it.
func TestExamplesStandOnce(t *testing.T) {
	const short = 5 // lines: a backend block, or what a provider requires, is everywhere
	comment := regexp.MustCompile(`(?m)(^|\s+)(#|//) .*$`)
	on, examples := map[string]string{}, 0
	for _, page := range docs(t) {
		for _, block := range regexp.MustCompile("(?ms)^ *```[a-z]+\n(.*?)^ *```$").FindAllStringSubmatch(readText(t, page), -1) {
			words := strings.Join(strings.Fields(comment.ReplaceAllString(block[1], "")), " ")
			if strings.Count(block[1], "\n") < short {
				continue
			}
			if examples++; on[words] != "" {
				t.Errorf("%s and %s have the same example:\n%s", on[words], page, block[1])
			}
			on[words] = page
		}
	}
	if examples < 80 {
		t.Errorf("there are %d examples", examples)
	}
}

// docs are all pages of the documentation.
func docs(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/*/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	return append(pages, "docs/index.md")
}

// Links lead to a page and one of its headings, or to a file.
func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	for _, page := range append(docs(t), handwritten(t)...) {
		for _, link := range regexp.MustCompile(`\]\(([^)#:\s]+)?(?:#([^)]+))?\)`).FindAllStringSubmatch(readText(t, page), -1) {
			target := page
			if link[1] != "" {
				target = filepath.Join(filepath.Dir(page), link[1])
			}
			var text []byte
			_, err := os.Stat(target)
			if err == nil && link[2] != "" {
				text, err = os.ReadFile(target)
			}
			if err != nil || link[2] != "" && !slices.Contains(anchors(string(text)), link[2]) {
				t.Errorf("%s: %s leads nowhere: %v", page, link[0], err)
			}
			links++
		}
	}
	if links < 800 {
		t.Errorf("there are %d links", links)
	}
}

// anchors are those that the registries and GitHub give to the headings of a page, and
// those of nested blocks.
func anchors(page string) (all []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		words := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(words, " ", "-"))
	}
	for _, id := range regexp.MustCompile(`<a id="([^"]+)"></a>`).FindAllStringSubmatch(page, -1) {
		all = append(all, id[1])
	}
	return all
}

// Whoever reads how to call the command also reads how to get it.
func TestCommandIsInstalled(t *testing.T) {
	guides, err := filepath.Glob("templates/guides/*.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	callers := 0
	for _, guide := range guides {
		text := readText(t, guide)
		if filepath.Base(guide) == "installing.md.tmpl" || !regexp.MustCompile(`(?m)^(?:.*\| |.*&& )?statecrypt [a-z]`).MatchString(text) {
			continue
		}
		callers++
		if !strings.Contains(text, "](installing.md") {
			t.Errorf("%s calls statecrypt, and does not say how to install it", guide)
		}
	}
	if callers < 4 {
		t.Errorf("%d guides call the command", callers)
	}
}

// What the guide downloads is what a release has.
func TestInstallingNamesTheArchive(t *testing.T) {
	guide := readText(t, "templates/guides/installing.md.tmpl")
	template := strings.NewReplacer("VERSION", "{{ .Version }}", "OS", "{{ .Os }}", "ARCH", "{{ .Arch }}")
	archive := regexp.MustCompile("`(statecrypt_[A-Z_]+)\\.tar\\.gz`").FindStringSubmatch(guide)
	if archive == nil {
		t.Fatal("the guide names no archive")
	}
	if want := template.Replace(archive[1]); !strings.Contains(readText(t, ".goreleaser.yml"), `name_template: "`+want+`"`) {
		t.Errorf("a release has no archive %s", want)
	}
}

// The registry lists guides without a subcategory after all others, in one heap. None is
// longer than people read, apart from that in which they search.
func TestGuidesAreGrouped(t *testing.T) {
	guides, err := filepath.Glob("docs/guides/*.md")
	if err != nil || len(guides) == 0 {
		t.Fatal(guides, err)
	}
	const most = 230
	group := regexp.MustCompile(`(?m)\A---\n(?:.+\n)*?subcategory: "(?:Start|Write encrypted state|Pipelines|Operate|Reference|Go library|Sources|Key services)"\n`)
	for _, guide := range guides {
		text := readText(t, guide)
		if !group.MatchString(text) {
			t.Errorf("%s has no known subcategory", guide)
		}
		prose := regexp.MustCompile("(?ms)^ *```[a-z]+\n.*?^ *```$").ReplaceAllString(text, "")
		if lines := strings.Count(prose, "\n"); lines > most && filepath.Base(guide) != "troubleshooting.md" {
			t.Errorf("%s has %d lines without its code", guide, lines)
		}
	}
}

// The page that has the guide for each job leads to every one, and README and the index to
// that page; sources and key services are in the tables of the index.
func TestStartLeadsEverywhere(t *testing.T) {
	start, index := readText(t, "docs/guides/start.md"), readText(t, "docs/index.md")
	for _, page := range []string{"docs/index.md", "README.md"} {
		if !strings.Contains(readText(t, page), "guides/start.md)") {
			t.Errorf("%s does not lead to the page for each job", page)
		}
	}
	for _, page := range []string{"variables", "command", "troubleshooting"} {
		if !strings.Contains(index, "](guides/"+page+".md)") {
			t.Errorf("the index lacks %s", page)
		}
	}
	pages, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		if folder := filepath.Base(filepath.Dir(page)); folder != "guides" {
			name = "../" + folder + "/" + name
		}
		if regexp.MustCompile(`^(?:source|key-provider)-|^start`).MatchString(name) {
			if !strings.Contains(index, "](guides/"+name+")") {
				t.Errorf("the index lacks %s", name)
			}
		} else if !strings.Contains(start, "]("+name+")") {
			t.Errorf("the page for each job lacks %s", name)
		}
	}
}

// jobs are what people come for, the words that they look for, the page that has it, and what
// they then search for there.
var jobs = []struct{ job, words, page, search string }{
	{"read an OpenTofu-encrypted state in S3 from Terraform", "read OpenTofu encrypted", "guides/terraform-reading-opentofu-state.md",
		`\n  s3 \{\n`},
	{"move from terraform_remote_state, without a big step", "terraform_remote_state steps", "guides/from-terraform-remote-state.md",
		`\n## In small steps\n`},
	{"keep our Terraform state encrypted in git", "Terraform state encrypted git", "guides/encrypted-state-git.md", `\nbackend "git" \{\n`},
	{"the passphrase has leaked: rotate the key", "rotate key", "guides/rotating-and-converting.md", `\nstatecrypt rotate -from `},
	{"see in review what changed in an encrypted state", "review encrypted changes", "guides/reviewing-encrypted-states.md",
		`pull request`},
	{"plan in CI without the key", "plan CI key", "guides/pipelines.md", `\n## A key that only the second job has\n`},
	{"a key for each colleague", "colleague key", "guides/keys-for-a-team.md", `\nage-keygen -o `},
	{"install it in an air-gapped network", "install air-gapped", "guides/air-gapped.md", `filesystem_mirror`},
	{"decrypt a state in our Go program", "decrypt Go program", "guides/go-library.md", `tfstate\.Parse\(opened\.Data\)`},
	{"what does this error mean?", "error", "guides/troubleshooting.md", "\n### `No selected method has the key for this file`\n"},
	{"configure a provider with a secret output", "configure provider output", "ephemeral-resources/remote_state.md", `\nprovider "`},
	{"the variable for the endpoint of S3", "environment variable argument", "guides/variables.md",
		"\n\\| `AWS_ENDPOINT_URL_S3`.*`credentials\\.s3\\.endpoints\\.s3`"},
	{"refuse an old copy of a state: which flag?", "flag command", "guides/command.md", `\n  -minimum-serial N +refuse a state`},
}

// TestJobsAreFound: for each job, a line of the index, or of the page to which it sends everybody,
// has the words that people look for and a link to the page; there, they find what they search.
func TestJobsAreFound(t *testing.T) {
	lines := regexp.MustCompile(`\n(?:\n|- |\| )`) // paragraphs, items and rows
	entries := lines.Split(readText(t, "docs/index.md"), -1)
	for _, row := range lines.Split(readText(t, "docs/guides/start.md"), -1) {
		entries = append(entries, strings.NewReplacer("](../", "](", "](", "](guides/").Replace(row))
	}
	for _, j := range jobs {
		leads := func(entry string) bool {
			return strings.Contains(entry, "]("+j.page+")") && !slices.ContainsFunc(strings.Fields(j.words), func(word string) bool {
				return !strings.Contains(strings.ToLower(entry), strings.ToLower(word))
			})
		}
		if !slices.ContainsFunc(entries, leads) {
			t.Errorf("%s: no line with %q leads to %s", j.job, j.words, j.page)
		}
		if !regexp.MustCompile(j.search).MatchString(readText(t, "docs/"+j.page)) {
			t.Errorf("%s: %s does not have %s", j.job, j.page, j.search)
		}
	}
}

// TestReleaseCheck: a clone that is ready passes, and whatever is missing is said.
func TestReleaseCheck(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it is a script for a shell")
	}
	dir := filepath.Join(t.TempDir(), "clone")
	run := func(in, name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = in, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(".", "git", "clone", "-q", ".", dir); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	change := func(name string, by func(string) string) (before string) {
		t.Helper()
		path := filepath.Join(dir, name)
		before = readText(t, path)
		if err := os.WriteFile(path, []byte(by(before)), 0o600); err != nil {
			t.Fatal(err)
		}
		return before
	}
	says := regexp.MustCompile(`(?i)there\s+is\s+no\s+release|before\s+the\s+first\s+release`)
	files, err := run(dir, "git", "ls-files", "README.md", "conformance/README.md", "templates", "examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(files) {
		change(name, func(text string) string { return says.ReplaceAllString(text, "as ever") })
	}
	change("CHANGELOG.md", func(text string) string {
		return strings.Replace(text, "\n## [0.1.0] - Unreleased\n", "\n## [0.1.0] - 2026-12-01\n", 1)
	})
	check := []string{"scripts/release-check.sh", "-texts", "v0.1.0"}
	if out, err := run(dir, "sh", check...); err != nil {
		t.Fatalf("it is ready: %v\n%s", err, out)
	}
	replace := func(old, with string) func(string) string {
		return func(text string) string { return strings.Replace(text, old, with, 1) }
	}
	for name, spoil := range map[string]func(string) string{
		"README.md":                              func(text string) string { return text + "There is\nno release yet.\n" },
		"CHANGELOG.md":                           replace("\n## [0.1.0]", "\n## [Unreleased]\n\n- Something.\n\n## [0.1.0]"),
		"go.work":                                replace("/encryption v0.1.0", "/encryption v0.1.1"),
		"tools/bench/go.mod":                     replace("/encryption v0.1.0", "/encryption v0.10.0"),
		"templates/index.md.tmpl":                replace("terraform-provider-statecrypt/v0.1.0/", "terraform-provider-statecrypt/v0.1.10/"),
		"examples/guides/plans-in-ci/github.yml": replace("@v0.1.0", "@v0.0.9"),
		"templates/guides/installing.md.tmpl":    replace("VERSION=0.1.0 ", "VERSION=1.0.0 "),
		"templates/guides/air-gapped.md.tmpl":    replace("statecrypt/statecrypt/0.1.0/", "statecrypt/statecrypt/0.0.1/"),
	} {
		before := change(name, spoil)
		if out, err := run(dir, "sh", check...); err == nil || !strings.Contains(out, "missing: "+name) || strings.Count(out, "missing: ") != 1 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		change(name, func(string) string { return before })
	}
	if out, err := run(dir, "git", "tag", "encryption/v0.1.0"); err != nil {
		t.Fatal(out)
	}
	if out, err := run(dir, "sh", check...); err == nil || !strings.Contains(out, "encryption/v0.1.0") {
		t.Errorf("a tag is there: %v\n%s", err, out)
	}
}
