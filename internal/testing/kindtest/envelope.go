package kindtest

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
)

// StoredIn returns the metadata stored under name in the envelope at path. If name is empty, the envelope must have a
// single entry, which is returned.
func StoredIn(tb testing.TB, path, name string) string {
	tb.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var envelope struct {
		Meta map[string][]byte `json:"meta"`
	}
	err = json.Unmarshal(file, &envelope)
	if err == nil && name == "" && len(envelope.Meta) != 1 {
		err = errors.New("there is not one entry")
	}
	for key, stored := range envelope.Meta {
		if err == nil && (name == "" || name == key) {
			return string(stored)
		}
	}
	tb.Fatalf("%s: the metadata %q: %v", path, name, err)
	return ""
}
