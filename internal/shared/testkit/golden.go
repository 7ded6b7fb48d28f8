package testkit

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

const (
	writeGoldens = "STATECRYPT_GOLDENS" // if set, tests write goldens instead of comparing with them

	goldenHead = "What users see of each mistake, in full. Tests compare with this file; with " + writeGoldens +
		"=write, they\nwrite it: read the difference before you commit it.\n"
	goldenSection = "\n== "
)

// Golden is a group of test cases in a golden file, which contains the full text that users see in each case.
type Golden struct {
	path, group string
	secrets     []string
	want        map[string]string

	mu  sync.Mutex
	got map[string]string
}

// OpenGolden opens a golden file for the cases of a test and all of its subtests. The group is a prefix of
// their names; cases without a group must not have a colon in their names. Texts must not contain any of the
// secrets. At the end of the test, every text of the group in the file must have been checked.
func OpenGolden(t *testing.T, path, group string, secrets ...string) *Golden {
	t.Helper()
	if group != "" {
		group += ": "
	}
	g := &Golden{path: path, group: group, secrets: secrets, want: ReadGolden(t, path), got: map[string]string{}}
	t.Cleanup(func() { g.end(t) })
	return g
}

// Check compares the text that users see in a case with the golden file.
func (g *Golden) Check(t *testing.T, name, text string) {
	t.Helper()
	text = age.ReplaceAllString(text, "(some time ago)")
	text = strings.TrimSpace(text)
	for _, secret := range g.secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%s: there is a secret in\n%s", name, text)
			return
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, twice := g.got[g.group+name]; twice {
		t.Errorf("there are two cases %s", name)
	}
	g.got[g.group+name] = text
	if want, ok := g.want[g.group+name]; (text != want || !ok) && os.Getenv(writeGoldens) == "" {
		t.Errorf("%s: got\n%s\nwant\n%s", name, text, want)
	}
}

var (
	folderOfTest = regexp.MustCompile(regexp.QuoteMeta(os.TempDir()) + `/Test[^/"]*/\d+`)
	portOfTest   = regexp.MustCompile(`(127[._]0[._]0[._]1):\d{4,}|(localhost):\d{5}`)
	recipientOf  = regexp.MustCompile(`age1[0-9a-z]{58}`)
)

// Error compares the text of an error, which must not be nil, followed by a list of its facts. It replaces
// folders, ports and age keys, which differ between runs; the package's folder becomes "/here".
func (g *Golden) Error(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: there is no error", name)
		return
	}
	text := portOfTest.ReplaceAllString(folderOfTest.ReplaceAllString(WithFacts(err), "/dir"), "$1$2:PORT")
	if here, err := os.Getwd(); err == nil {
		text = strings.ReplaceAll(text, here, "/here")
	}
	g.Check(t, name, recipientOf.ReplaceAllString(text, "age1…"))
}

// WithFacts returns the text of an error, followed by a line for each of its facts.
func WithFacts(err error) string {
	text := err.Error()
	for _, f := range fault.In(err) {
		text += fmt.Sprintf("\n  (%T%+v)", f, f)
	}
	return text
}

// age matches the age of a time, which grows from run to run.
var age = regexp.MustCompile(`\((?:less than a|\d+) (?:minute|hour|day)s? ago\)`)

// files prevents tests from writing the same file at the same time.
var files sync.Mutex

func (g *Golden) end(t *testing.T) {
	t.Helper()
	missing := func(name, _ string) bool {
		_, ok := g.got[name]
		ours := strings.HasPrefix(name, g.group) && (g.group != "" || !strings.Contains(name, ": "))
		return ours && !ok
	}
	if testing.Short() || strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		missing = func(string, string) bool { return false } // only some of the cases run
	}
	files.Lock()
	defer files.Unlock()
	texts := ReadGolden(t, g.path)
	before := len(texts)
	maps.DeleteFunc(texts, missing)
	if os.Getenv(writeGoldens) == "" {
		if len(texts) != before && !t.Failed() {
			t.Errorf("%s has texts of cases that there are not: %d of %d", g.path, before-len(texts), before)
		}
		return
	}
	maps.Copy(texts, g.got)
	var b strings.Builder
	b.WriteString(goldenHead)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		b.WriteString(goldenSection + name + "\n" + texts[name] + "\n")
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(g.path), 0o750), os.WriteFile(g.path, []byte(b.String()), 0o600)); err != nil {
		t.Error(err)
	}
}

// ReadGolden returns the texts of all groups in a golden file, by name.
func ReadGolden(t *testing.T, path string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && os.Getenv(writeGoldens) == "" {
		t.Fatal(err)
	}
	out := map[string]string{}
	_, sections, _ := strings.Cut(string(content), goldenSection)
	for section := range strings.SplitSeq(sections, goldenSection) {
		if name, text, ok := strings.Cut(section, "\n"); ok {
			out[name] = strings.TrimSpace(text)
		}
	}
	return out
}
