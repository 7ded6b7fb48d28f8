package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// mistakes are calls whose standard error and exit code are in testdata/mistakes.txt.
type mistakes struct{ *testkit.Golden }

func openMistakes(t *testing.T, group string) mistakes {
	t.Helper()
	return mistakes{testkit.OpenGolden(t, filepath.Join("testdata", "mistakes.txt"), group, canary, canaryKey, "hunter2", "AGE-SECRET-KEY-1")}
}

func (m mistakes) check(t *testing.T, name string, got called) {
	t.Helper()
	here, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(temporary.ReplaceAllString(got.stderr, "/folder"), here, "/repository") // a test may be in such a folder
	text = strings.TrimSpace(loopback.ReplaceAllString(text, "127.0.0.1:PORT"))
	m.Check(t, name, fmt.Sprintf("%s\nexit code %d", text, got.code))
}

// checkAll is for calls whose standard output is for people as well.
func (m mistakes) checkAll(t *testing.T, name string, got called) {
	t.Helper()
	m.check(t, name, called{code: got.code, stderr: got.stderr + got.stdout})
}

// What differs from run to run: the folders of tests, and the ports of their servers.
var (
	temporary = regexp.MustCompile(regexp.QuoteMeta(filepath.Join(os.TempDir(), "Test")) + `[^/]*/\d+`)
	loopback  = regexp.MustCompile(`127\.0\.0\.1:\d\d+`)
)
