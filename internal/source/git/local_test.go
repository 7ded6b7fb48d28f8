package git

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
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
	says := openMistakes(t, "local paths")
	for name, path := range map[string]string{
		"no folder": filepath.Join(folder, "none"), "a file": file, "a folder inside": inside, "another folder": folder,
	} {
		_, err := read(t, newTestRun(t, nil), place{repository: path, ref: "main", path: "s"})
		says.Error(t, name, err)
		if strings.Contains(err.Error(), "credentials") {
			t.Errorf("%s: nothing here requires credentials: %v", path, err)
		}
	}
}

// That a repository sends no single files is said if it has taken long, and once: the user
// can mend a local one.
func TestSlowSource(t *testing.T) {
	t.Parallel()
	repo, small := gittest.NewRepo(t, gittest.RepoOptions{}), stateRepo(t)
	repo.Git("config", "core.compression", "0")
	repo.Commit("refs/heads/main", gittest.File{Path: "large", Data: strings.Repeat("x", slow)}, gittest.File{Path: "s", Data: "state"},
		gittest.File{Path: "b", Data: "another"})
	repo.Git("config", "uploadpack.allowFilter", "false")
	small.Git("config", "uploadpack.allowFilter", "false")
	r := newTestRun(t, nil)
	var got []source.Warning
	for _, at := range []place{
		{repository: small.Dir, ref: "main", path: "s"}, {repository: repo.Dir, ref: "main", path: "b"},
		{repository: repo.Dir, ref: "main", path: "s"}, {repository: repo.Dir, ref: "HEAD", path: "s"},
	} {
		s, err := read(t, r, at)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.Warnings...)
	}
	if len(got) != 1 || got[0].Title != "Slow source" {
		t.Fatalf("warnings %q", got)
	}
	openMistakes(t, "a slow folder").Error(t, "without filters", errors.New(got[0].Text))
}

// TestRepositoryOfAnother: a local repository may come from an archive, with its configuration. It has a
// promise of objects that are absent, and names a program as the way to them, which older releases of git run
// for a reader: here, a newer one that is told to.
//
// Promise: Repositories of others
func TestRepositoryOfAnother(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	repo, dir := stateRepo(t), t.TempDir()
	marker := filepath.Join(dir, "marker")
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	program := script("program", "echo x >>'"+marker+"'\nexit 1\n")
	programs := repo.Git("--exec-path")
	script("git-upload-pack", "export GIT_NO_LAZY_FETCH=0 GIT_EXEC_PATH='"+programs+"'\nexec '"+programs+"/git-upload-pack' \"$@\"\n")
	older := func() *run {
		r := newTestRun(t, nil)
		r.environ = []string{"GIT_EXEC_PATH=" + dir}
		return r
	}
	mustRead(t, older(), place{repository: repo.FileURL(), path: "s"}, "state")
	repo.Git("update-index", "--add", "--cacheinfo", "100644,"+strings.Repeat("1", 40)+",s") // which is nowhere
	repo.Git("update-ref", "refs/heads/main", repo.Git("commit-tree", "-m", "x", repo.Git("write-tree", "--missing-ok")))
	for name, value := range map[string]string{
		"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
		"remote.origin.url": "file:///nonexistent", "remote.origin.uploadpack": program, "core.sshCommand": program,
	} {
		repo.Git("config", name, value)
	}
	if _, err := read(t, older(), place{repository: repo.FileURL(), path: "s"}); err == nil {
		t.Error("the state is not there, and was read")
	}
	if ran, err := os.ReadFile(marker); err == nil {
		t.Errorf("a program of the repository ran %d times", strings.Count(string(ran), "\n"))
	}
}
