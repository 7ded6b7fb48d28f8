package file

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// repository runs git in a folder, as its user.
type repository struct {
	dir  string
	home string
}

func newRepository(t *testing.T, args ...string) repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := repository{dir: t.TempDir(), home: t.TempDir()}
	r.git(t, append([]string{"init", "-q"}, args...)...)
	return r
}

func (r repository) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=T", "-c", "user.email=t@example.com",
		"-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir, cmd.Env = r.dir, gittest.Environ(r.home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// file makes one, with the folders above it.
func (r repository) file(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	put(t, path, []byte(name))
	return path
}

// TestReverts: a file reverts if git tracks it, in repositories of all forms, which git itself has made.
func TestReverts(t *testing.T) {
	t.Parallel()
	// add has git track files that stand before and behind the state in the index, and the state.
	add := func(t *testing.T, r repository) string {
		t.Helper()
		path := r.file(t, "live/app/terraform.tfstate")
		for _, name := range []string{"live/app/main.tf", "live/app/terraform.tf", "live/app/terraform.tfstates", "zoo/é"} {
			r.file(t, name)
		}
		r.git(t, "add", ".")
		return path
	}
	for name, c := range map[string]struct {
		make func(t *testing.T) string
		want bool
	}{
		"tracked": {want: true, make: func(t *testing.T) string { return add(t, newRepository(t)) }},
		"tracked, at the top": {want: true, make: func(t *testing.T) string {
			r := newRepository(t)
			path := r.file(t, "terraform.tfstate")
			r.git(t, "add", ".")
			return path
		}},
		"tracked, through a link to its folder": {want: true, make: func(t *testing.T) string {
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(filepath.Dir(add(t, newRepository(t))), link); err != nil {
				t.Skip(err)
			}
			return filepath.Join(link, "terraform.tfstate")
		}},
		"tracked, with SHA-256": {want: true, make: func(t *testing.T) string {
			return add(t, newRepository(t, "--object-format=sha256"))
		}},
		"tracked, in version 3": {want: true, make: func(t *testing.T) string {
			r := newRepository(t)
			path := add(t, r)
			r.file(t, "live/another")
			r.git(t, "add", "-N", "live/another") // which version 2 cannot say
			return path
		}},
		"tracked, in version 4": {want: true, make: func(t *testing.T) string {
			r := newRepository(t)
			path := add(t, r)
			r.git(t, "update-index", "--index-version=4")
			return path
		}},
		"tracked, in version 4, with SHA-256": {want: true, make: func(t *testing.T) string {
			r := newRepository(t, "--object-format=sha256")
			path := add(t, r)
			r.git(t, "update-index", "--index-version=4")
			return path
		}},
		"tracked, in another worktree": {want: true, make: func(t *testing.T) string {
			r, other := newRepository(t), filepath.Join(t.TempDir(), "other")
			add(t, r)
			r.git(t, "commit", "-q", "-m", "x")
			r.git(t, "worktree", "add", "-q", other)
			return filepath.Join(other, "live", "app", "terraform.tfstate")
		}},
		"tracked, in a submodule": {want: true, make: func(t *testing.T) string {
			r, whole := newRepository(t), newRepository(t)
			add(t, r)
			r.git(t, "commit", "-q", "-m", "x")
			whole.git(t, "submodule", "--quiet", "add", r.dir, "sub")
			return filepath.Join(whole.dir, "sub", "live", "app", "terraform.tfstate")
		}},
		"not tracked": {make: func(t *testing.T) string {
			r := newRepository(t)
			add(t, r)
			return r.file(t, "live/app/other.tfstate")
		}},
		"not tracked, and the last of all": {make: func(t *testing.T) string {
			r := newRepository(t)
			add(t, r)
			return r.file(t, "zoo/ö")
		}},
		"no longer tracked": {make: func(t *testing.T) string {
			r := newRepository(t)
			path := add(t, r)
			r.git(t, "rm", "-q", "--cached", path)
			return path
		}},
		"a tracked link to another file": {make: func(t *testing.T) string {
			r := newRepository(t)
			link := filepath.Join(r.dir, "terraform.tfstate")
			if err := os.Symlink(add(t, newRepository(t))+".other", link); err != nil {
				t.Skip(err)
			}
			r.git(t, "add", ".")
			return link
		}},
		"nothing was added": {make: func(t *testing.T) string { return newRepository(t).file(t, "terraform.tfstate") }},
		"no repository":     {make: func(t *testing.T) string { return repository{dir: t.TempDir()}.file(t, "terraform.tfstate") }},
		"no file":           {make: func(t *testing.T) string { return filepath.Join(newRepository(t).dir, "terraform.tfstate") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if path := c.make(t); at(t, path).Reverts(t.Context()) != c.want {
				t.Errorf("got %t for %s", !c.want, path)
			}
		})
	}
}

// TestRepositoryOfAnother: what the configuration of a repository names does not run: the module
// may come from an archive, with the folder .git in it.
//
// Promise: Repositories of others
func TestRepositoryOfAnother(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	r, marker := newRepository(t), filepath.Join(t.TempDir(), "marker")
	program := filepath.Join(r.home, "program")
	must(t, os.WriteFile(program, []byte("#!/bin/sh\necho x >>'"+marker+"'\nexit 1\n"), 0o700))
	path := r.file(t, "terraform.tfstate")
	r.file(t, "zoo/lion")
	r.git(t, "add", ".")
	r.git(t, "commit", "-q", "-m", "x")
	// git fetches a folder that the index leaves out, and that is missing.
	r.git(t, "sparse-checkout", "set", "--cone", "--sparse-index")
	missing := r.git(t, "rev-parse", "HEAD:zoo")
	must(t, os.Remove(filepath.Join(r.dir, ".git", "objects", missing[:2], missing[2:])))
	for name, value := range map[string]string{
		"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
		"remote.origin.url": "ssh://localhost/x", "core.sshCommand": program, "core.fsmonitor": program, "core.pager": program,
		"alias.ls-files": "!" + program,
	} {
		r.git(t, "config", name, value)
	}
	if !at(t, path).Reverts(t.Context()) {
		t.Error("git tracks the file")
	}
	if ran, err := os.ReadFile(marker); err == nil {
		t.Errorf("a program of the repository ran %d times", bytes.Count(ran, []byte("\n")))
	}
}

// TestDamagedIndex: what is no index, or not all of one, tracks nothing that it does not list.
func TestDamagedIndex(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	path := r.file(t, "terraform.tfstate")
	r.file(t, "main.tf")
	index := filepath.Join(r.dir, ".git", "index")
	for _, version := range []string{"2", "4"} {
		_ = os.Remove(index)
		r.git(t, "add", "main.tf", "terraform.tfstate")
		r.git(t, "update-index", "--index-version="+version)
		whole, err := os.ReadFile(index)
		must(t, err)
		listed := bytes.Index(whole, []byte("tfstate\x00")) + len("tfstate\x00")
		for end := range listed {
			put(t, index, whole[:end])
			if at(t, path).Reverts(t.Context()) {
				t.Errorf("version %s, %d of %d bytes: it is tracked", version, end, len(whole))
			}
		}
		put(t, index, whole)
		if !at(t, path).Reverts(t.Context()) {
			t.Errorf("version %s: it is not tracked", version)
		}
		long := bytes.Clone(whole)
		copy(long[len("DIRC....\x00\x00"):], "\xff\xff") // more entries than there are
		put(t, index, long)
		if at(t, r.file(t, "x.tfstate")).Reverts(t.Context()) {
			t.Errorf("version %s: a file is tracked that no entry names", version)
		}
	}
	must(t, os.RemoveAll(filepath.Join(r.dir, ".git")))
	put(t, filepath.Join(r.dir, ".git"), []byte("gitdir: /nonexistent\n"))
	if at(t, path).Reverts(t.Context()) {
		t.Error("there is no repository")
	}
}
