package wrap

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

// Mistakes are cases whose texts are in testdata/mistakes.txt.
type Mistakes struct{ *testkit.Golden }

// OpenMistakes opens a group of them.
func OpenMistakes(t *testing.T, group string) Mistakes {
	t.Helper()
	secrets := []string{canary, "6f6f706830656f67686f6834616872756f3751756165686565796f6f72653169", "hunter2"}
	return Mistakes{testkit.OpenGolden(t, filepath.Join("testdata", "mistakes.txt"), group, secrets...)}
}

// Said is for what wrap has said by itself, or has not.
func (m Mistakes) Said(t *testing.T, name, text string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	text = temporary.ReplaceAllString(strings.ReplaceAll(text, here, "/here"), "/folder")
	text = ofModule.ReplaceAllString(text, "/statecrypt/MODULE")
	text = heldLock.ReplaceAllString(loopback.ReplaceAllString(text, "127.0.0.1:PORT"), "the lock ID")
	m.Check(t, name, cmp.Or(text, "nothing"))
}

// Failed is for an error as well, if there is one.
func (m Mistakes) Failed(t *testing.T, name, said string, err error) {
	t.Helper()
	if err != nil {
		said += fmt.Sprintf("error: %s\n", words.Command{Name: "wrap"}.Text(err)) // as the command does
	}
	m.Said(t, name, said)
}

// Ended is for the end of a run.
func (m Mistakes) Ended(t *testing.T, name, said string, code int, err error) {
	t.Helper()
	if err != nil {
		said += fmt.Sprintf("error: %s\n", words.Command{Name: "wrap"}.Text(err)) // as the command does
	}
	m.Said(t, name, fmt.Sprintf("%sexit code %d", said, code))
}

// What differs from run to run: the folders of tests, data directories named after them, the ports of
// their servers, and locks.
var (
	temporary = regexp.MustCompile(regexp.QuoteMeta(filepath.Join(os.TempDir(), "Test")) + `[^/]*/\d+`)
	loopback  = regexp.MustCompile(`127\.0\.0\.1:\d\d+`)
	ofModule  = regexp.MustCompile(`/statecrypt/[0-9a-f]{16}\b`)
	heldLock  = regexp.MustCompile(`the lock [A-Z2-7]{26}`)
)
