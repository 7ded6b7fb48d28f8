package sourcetest

import (
	"path/filepath"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// OpenMistakes opens the sources' golden file. The test must run in the folder of one source.
func OpenMistakes(t *testing.T, group string, secrets ...string) *testkit.Golden {
	t.Helper()
	return testkit.OpenGolden(t, filepath.Join("..", "testdata", "mistakes.txt"), group, append(secrets, "canary", "c4n4ry")...)
}
