package file

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestList: what is listed may be a state, and is named as it was asked for.
func TestList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{
		"net/a.tfstate", "net/a.tfstate.backup", "net/.a.tfstate.lock.info", "net/b/c", "network", "other", ".terraform/terraform.tfstate",
		"net/.terraform/x",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	s := in(t, dir)
	for prefix, want := range map[string][]string{
		"net/": {"net/a.tfstate", "net/b/c"}, "net": {"net/a.tfstate", "net/b/c", "network"}, "net/b": {"net/b/c"},
		"": {"net/a.tfstate", "net/b/c", "network", "other"}, "none": nil, filepath.Join(dir, "o"): {filepath.Join(dir, "other")},
	} {
		names, err := s.List(t.Context(), filepath.FromSlash(prefix))
		slices.Sort(names)
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%q: %q, %v", prefix, names, err)
		}
	}
	if names, err := s.List(t.Context(), "gone/x"); err == nil {
		t.Errorf("a folder that is not there: %q", names)
	}
}
