package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a local path is in place of a repository is said.
func TestLocalPaths(t *testing.T) {
	t.Parallel()
	folder, work := t.TempDir(), t.TempDir()
	inside, file := filepath.Join(work, "a", "inside"), filepath.Join(folder, "file")
	if err := errors.Join(os.Mkdir(filepath.Join(work, ".git"), 0o700), os.MkdirAll(inside, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(folder, "none"): "there is no such folder on this machine; check repository, or give the address of the server",
		file:                          "this is a file, and the folder of a repository is required",
		inside:                        "this is a folder inside the repository " + work,
		folder:                        "this folder is no git repository",
	} {
		_, err := read(t, newTestRun(t, nil), place{repository: path, ref: "main", path: "s"})
		mustFail(t, err, want)
		if strings.Contains(err.Error(), "credentials") {
			t.Errorf("%s: nothing here requires credentials: %v", path, err)
		}
	}
}

// That a local repository sends no single files is mended by the user.
func TestSlowLocalRepository(t *testing.T) {
	t.Parallel()
	repo := stateRepo(t)
	repo.Git("config", "uploadpack.allowFilter", "false")
	s := mustRead(t, newTestRun(t, nil), place{repository: repo.Dir, ref: "main", path: "s"}, "state")
	want := "To change that: git -C " + repo.Dir + " config uploadpack.allowFilter true"
	if len(s.Warnings) != 1 || s.Warnings[0].Title != "Slow source" || !strings.HasSuffix(s.Warnings[0].Text, want) {
		t.Errorf("warnings %q, want %q", s.Warnings, want)
	}
}
