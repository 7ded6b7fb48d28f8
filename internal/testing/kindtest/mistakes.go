package kindtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// Mistakes is a group of errors in the golden of the kinds of this module.
type Mistakes struct{ golden *testkit.Golden }

// OpenMistakes opens the golden, as seen from the folder of a kind. None of its texts has
// a canary or another secret in it.
func OpenMistakes(t *testing.T, group string, secrets ...string) Mistakes {
	t.Helper()
	return Mistakes{testkit.OpenGolden(t, filepath.Join("..", "..", "testdata", "mistakes.txt"), group, append(secrets, "canary", "c4n4ry")...)}
}

var (
	folderOfTest = regexp.MustCompile(regexp.QuoteMeta(os.TempDir()) + `/Test[^/]*/\d+`)
	portOfTest   = regexp.MustCompile(`127\.0\.0\.1:\d{4,}`)
	recipient    = regexp.MustCompile(`age1[0-9a-z]{58}`)
)

// Error compares the text of an error, without what differs from run to run.
func (m Mistakes) Error(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: there is no error", name)
		return
	}
	text := folderOfTest.ReplaceAllString(err.Error(), "/dir")
	m.golden.Check(t, name, recipient.ReplaceAllString(portOfTest.ReplaceAllString(text, "127.0.0.1:PORT"), "age1…"))
}

// Settings compares why settings are refused, as far as that is known before a key is
// asked for.
func Settings[T any](t *testing.T, m Mistakes, block encryption.Block[T], bad []map[string]cty.Value) {
	t.Helper()
	for i, attrs := range bad {
		if _, err := TryBuild(block, attrs, nil); err != nil {
			m.Error(t, fmt.Sprintf("settings %d", i+1), err)
		}
	}
}
