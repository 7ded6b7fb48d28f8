package kindtest

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// OpenMistakes opens the golden file for the kinds in this module. It must be called from the folder of a kind.
func OpenMistakes(t *testing.T, group string, secrets ...string) *testkit.Golden {
	t.Helper()
	return testkit.OpenGolden(t, filepath.Join("..", "..", "testdata", "mistakes.txt"), group, append(secrets, "canary", "c4n4ry")...)
}

// Settings compares the errors for bad settings with the golden file. It covers the errors that are known before a key
// is requested.
func Settings[T any](t *testing.T, golden *testkit.Golden, block driver.Block[T], bad []map[string]cty.Value) {
	t.Helper()
	for i, attrs := range bad {
		if _, err := TryBuild(block, attrs, nil); err != nil {
			golden.Error(t, fmt.Sprintf("settings %d", i+1), err)
		}
	}
}
