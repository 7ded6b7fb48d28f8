package file

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
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
	values, err := unstable.NewEntry("backend.file", Kind().Table, nil).Decode(Kind().Table, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Kind().Open(store.Settings{Values: values, Folder: dir, Module: dir})
	if err != nil {
		t.Fatal(err)
	}
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
