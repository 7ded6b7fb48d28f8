package gittest

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// RepoOptions say which requests a repository accepts.
type RepoOptions struct {
	SHA256     bool // use object ids of 64 digits
	NoFilter   bool // refuse partial clones, as old servers do
	NoObjectID bool // serve branches and tags only; effective for protocol v0
	Push       bool // accept pushes over http and ssh
	RefTable   bool // keep refs in a reftable; a git before 2.45 skips the test

	// FirstIsDefault makes the first pushed branch the default branch, as many hosts do. The default branch
	// of a repository cannot be removed.
	FirstIsDefault bool
}

// Repo is a bare repository.
type Repo struct {
	Dir  string
	tb   testing.TB
	home string
	push bool

	drops atomic.Pointer[func(ref string) bool] // see Drop
}

// NewRepo creates an empty repository whose HEAD is refs/heads/main.
func NewRepo(tb testing.TB, opts RepoOptions) *Repo {
	tb.Helper()
	needGit(tb)
	r := &Repo{Dir: filepath.Join(tb.TempDir(), "repo.git"), tb: tb, home: tb.TempDir(), push: opts.Push}
	version, extensions := 0, ""
	if opts.SHA256 {
		version, extensions = 1, "[extensions]\n\tobjectFormat = sha256\n"
	}
	if opts.RefTable {
		version, extensions = 1, "[extensions]\n\trefStorage = reftable\n"
		init := exec.Command("git", "init", "-q", "--bare", "--ref-format=reftable", "--initial-branch=main", r.Dir)
		init.Env = Environ(r.home)
		if err := init.Run(); err != nil {
			tb.Skipf("this git has no reftables: %v", err)
		}
	} else {
		r.layOut()
	}
	// These settings make git start as few programs as possible.
	writeFile(tb, filepath.Join(r.Dir, "config"), fmt.Appendf(nil, "[core]\n\trepositoryformatversion = %d\n\tbare = true\n%s[uploadpack]\n"+
		"\tallowFilter = %t\n\tallowAnySHA1InWant = %t\n[gc]\n\tauto = 0\n[receive]\n\tautogc = false\n[fastimport]\n\tunpackLimit = 1\n"+
		"[http]\n\treceivepack = %t\n", version, extensions, !opts.NoFilter, !opts.NoObjectID, opts.Push))
	if opts.FirstIsDefault {
		r.hook("post-receive", "git rev-parse -q --verify HEAD >/dev/null && exit\nread -r _ _ ref && git symbolic-ref HEAD \"$ref\"\n")
	}
	return r
}

// layOut creates the files and folders that git init creates.
func (r *Repo) layOut() {
	for _, folder := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(r.Dir, folder), 0o700); err != nil {
			r.tb.Fatal(err)
		}
	}
	writeFile(r.tb, filepath.Join(r.Dir, "HEAD"), []byte("ref: refs/heads/main\n"))
}

// hook writes a script that git runs.
func (r *Repo) hook(name, script string) {
	path := filepath.Join(r.Dir, "hooks", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // git starts it
		r.tb.Fatal(err)
	}
}

// commitOf returns the commit of a ref that is stored in its own file, as a ref is after a write. It returns
// an empty string for other refs.
func (r *Repo) commitOf(ref string) string {
	id, _ := os.ReadFile(filepath.Join(r.Dir, filepath.FromSlash(ref)))
	return strings.TrimSpace(string(id))
}

// File is one entry of a tree.
type File struct {
	Path string
	Data string // the content, the target of a link, or the commit of a submodule
	Mode string // "" means "100644"; also "100755", "120000" (link), "160000" (submodule)

	Object string // the id of the content, instead of Data
}

// Commit makes ref, such as "refs/heads/main", point to a new commit that contains exactly the given files.
// It returns the commit id.
func (r *Repo) Commit(ref string, files ...File) string {
	r.tb.Helper()
	var in bytes.Buffer
	fmt.Fprintf(&in, "commit %s\ncommitter Test <test@example.com> 1700000000 +0000\n%s", ref, data("test\n"))
	if r.commitOf(ref) != "" || r.packed() && r.Git("for-each-ref", ref) != "" {
		fmt.Fprintf(&in, "from %s^0\n", ref)
	}
	in.WriteString("deleteall\n")
	for _, f := range files {
		mode := cmp.Or(f.Mode, "100644")
		if mode == "160000" {
			f.Object = f.Data
		}
		if f.Object != "" {
			fmt.Fprintf(&in, "M %s %s %q\n", mode, f.Object, f.Path)
			continue
		}
		fmt.Fprintf(&in, "M %s inline %q\n%s", mode, f.Path, data(f.Data))
	}
	r.run(r.Dir, in.String()+"\n", "-c", "core.bigFileThreshold=1g", "fast-import", "--quiet", "--force")
	if id := r.commitOf(ref); id != "" {
		return id
	}
	return r.Git("rev-parse", ref)
}

// packed reports whether some refs are not stored in their own files.
func (r *Repo) packed() bool {
	_, err := os.Stat(filepath.Join(r.Dir, "packed-refs"))
	return err == nil
}

// Import runs git fast-import commands.
func (r *Repo) Import(commands string) {
	r.tb.Helper()
	r.run(r.Dir, commands, "fast-import", "--quiet", "--force")
}

// Zeros stores a file of the given size that contains only zero bytes, and returns its id. Git compresses the
// file to a thousandth of its size.
func (r *Repo) Zeros(size int64) string {
	r.tb.Helper()
	path := filepath.Join(r.home, "zeros")
	writeFile(r.tb, path, nil)
	if err := os.Truncate(path, size); err != nil {
		r.tb.Fatal(err)
	}
	return r.Git("-c", "core.compression=1", "hash-object", "-w", path)
}

// Unbundle adds all refs of a bundle, which was written by git bundle.
func (r *Repo) Unbundle(path string) {
	r.tb.Helper()
	absolute, err := filepath.Abs(path)
	if err != nil {
		r.tb.Fatal(err)
	}
	r.Git("fetch", "-q", absolute, "+refs/*:refs/*")
}

func data(s string) string { return fmt.Sprintf("data %d\n%s\n", len(s), s) }

// Git runs git in the repository and returns its output.
func (r *Repo) Git(args ...string) string {
	r.tb.Helper()
	return r.run(r.Dir, "", args...)
}

func (r *Repo) run(dir, stdin string, args ...string) string {
	r.tb.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = append(Environ(r.home),
		"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_AUTHOR_DATE=1700000000 +0000",
		"GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@example.com", "GIT_COMMITTER_DATE=1700000000 +0000")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.tb.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// FileURL returns the file:// address of the repository.
func (r *Repo) FileURL() string {
	return "file:///" + strings.TrimPrefix(filepath.ToSlash(r.Dir), "/") // on Windows, the path has no leading slash
}

func writeFile(tb testing.TB, path string, data []byte) {
	tb.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
}
