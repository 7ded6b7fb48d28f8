package encryptiontest

import (
	"strings"
	"testing"
)

// noSecret checks that an error contains none of these texts.
func noSecret(t *testing.T, err error, texts []string) {
	t.Helper()
	for _, text := range texts {
		if err != nil && strings.Contains(err.Error(), text) {
			t.Errorf("an error holds a secret: %v", err)
			return
		}
	}
}
