package kindtest

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// OpenMistakes opens the golden of the kinds of this module, as seen from the folder of
// one.
func OpenMistakes(t *testing.T, group string, secrets ...string) *testkit.Golden {
	t.Helper()
	return testkit.OpenGolden(t, filepath.Join("..", "..", "testdata", "mistakes.txt"), group, append(secrets, "canary", "c4n4ry")...)
}

// Settings compares why settings are refused, as far as that is known before a key is
// asked for.
func Settings[T any](t *testing.T, golden *testkit.Golden, block driver.Block[T], bad []map[string]cty.Value) {
	t.Helper()
	for i, attrs := range bad {
		if _, err := TryBuild(block, attrs, nil); err != nil {
			golden.Error(t, fmt.Sprintf("settings %d", i+1), err)
		}
	}
}
