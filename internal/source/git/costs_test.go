package git

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// Whoever can push to a repository writes its trees, its locks and its packs, and
// git is started no more often for that.
func TestCosts(t *testing.T) {
	long(t)
	const most = 40 // programs, those of the server included
	runs := countGit(t)
	amplification.Grow(t, 80, []amplification.Grammar{repositories()}, func(t *testing.T, file string) func() error {
		repo := gittest.NewRepo(t, gittest.RepoOptions{})
		repo.Import(file)
		src, err := newTestRun(t, nil).open(place{repository: repo.FileURL(), path: "a"}.request(t))
		if err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(runs)
		return func() error {
			_, err := src.Fetch(t.Context())
			if started, _ := os.ReadFile(runs); len(started) > most {
				t.Errorf("git was started %d times for %d bytes", len(started), len(file))
			}
			return err
		}
	})
}

// repositories are what git fast-import makes them of. git lists each folder with
// those above it, so that deep ones are long for what they are; TestRepeatedFolders
// has more of that.
func repositories() amplification.Grammar {
	return amplification.Grammar{
		Name: "repositories",
		Productions: []amplification.Production{
			{Name: "files"}, {Name: "length of names", Most: 200}, {Name: "folders", Most: 100}, {Name: "length of messages"},
			{Name: "locks"}, {Name: "length of locks"},
		},
		File: func(n amplification.Counts) string {
			var b strings.Builder
			commit := func(ref string, length int) {
				fmt.Fprintf(&b, "commit %s\ncommitter T <t@example.com> 1700000000 +0000\ndata %d\n%s\n", ref, length, strings.Repeat("x", length))
			}
			content := func(path, data string) { fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", path, len(data), data) }
			commit("refs/heads/main", n["length of messages"])
			content("a", "{}")
			for i := range n["files"] {
				content(fmt.Sprint(i, strings.Repeat("x", n["length of names"])), "")
			}
			content(strings.Repeat("d/", n["folders"])+"f", "")
			for i := range n["locks"] {
				path := "a"
				if i > 0 {
					path = fmt.Sprint("b", i)
				}
				commit("refs/heads/locks/"+path, 1)
				content(path+".lock", fmt.Sprintf(`{"ID":"%s"}`, strings.Repeat("x", n["length of locks"])))
			}
			return b.String()
		},
	}
}

// A folder that is in two others, which are in two others, and so on, is listed each
// time: a pack of a few kB would give any number of files. Copies are honest.
//
// Promise: Cost
func TestRepeatedFolders(t *testing.T) {
	long(t)
	fetch := func(files, copies, levels int) (allocated int, err error) {
		repo := gittest.NewRepo(t, gittest.RepoOptions{})
		repo.Import(repeated(files, copies, levels))
		src, err := newTestRun(t, nil).open(place{repository: repo.FileURL(), path: "a"}.request(t))
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = src.Fetch(t.Context())
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc - before.TotalAlloc), err //nolint:gosec // far below 2^63
	}
	if _, err := fetch(1000, 100, 1); err != nil {
		t.Errorf("100 copies of a folder of 1,000 files: %v", err)
	}
	if allocated, err := fetch(1, 2, 19); !errors.Is(err, errTooManyFiles) || allocated > 160<<20 {
		t.Errorf("folders in folders: %v, with %d MB", err, allocated>>20)
	}
}

// repeated are the commands that put files into a folder, copies of it into another
// one, copies of that into a third, and so on.
func repeated(files, copies, levels int) string {
	var b strings.Builder
	b.WriteString("commit refs/heads/main\ncommitter T <t@example.com> 1700000000 +0000\ndata 1\nx\nM 100644 inline a\ndata 2\n{}\n")
	for i := range files {
		fmt.Fprintf(&b, "M 100644 inline d0/%d\ndata 0\n\n", i)
	}
	for level := range levels {
		for i := range copies {
			fmt.Fprintf(&b, "C d%d d%d/%d\n", level, level+1, i)
		}
	}
	return b.String()
}

// countGit has each start of git add a byte to a file.
func countGit(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for git is a shell script")
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	runs := filepath.Join(dir, "runs")
	script := fmt.Sprintf("#!/bin/sh\nprintf x >>'%s'\nexec '%s' \"$@\"\n", runs, git)
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return runs
}
