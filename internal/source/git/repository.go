package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	remoteName = "state" // not "origin", for which a user's configuration may hold settings
	wantedRef  = "refs/statecrypt/wanted"

	maxListing = 256 << 20 // bytes: about three million files
)

// repository is a throw-away bare repository. It is made when something is
// fetched into it, by hand rather than with git init, which would copy the
// user's template with its hooks.
type repository struct {
	run    *run
	remote remote
	access *access
	ssh    string // GIT_SSH_COMMAND; "" leaves it as it is
	dir    string // "" when there is none
	format string // "sha1" or "sha256"

	withoutLocks  bool // the locks cannot be stored here
	wholeSnapshot bool // ask for all files, not for those that are wanted
	refusedBefore bool
	complete      bool // all files of the commit are here
}

// prepare finds out, once per visit, what git needs to be told.
func (d *repository) prepare(ctx context.Context, redirected bool) error {
	if d.access != nil {
		return nil
	}
	if err := d.run.checkVersion(ctx); err != nil {
		return err
	}
	a, err := d.run.accessTo(d.remote)
	if err != nil {
		return err
	}
	a.redirected = redirected
	if v, _ := lookup(d.run.environ, "GIT_SSL_NO_VERIFY"); v != "" && d.remote.protocol == "https" {
		a.warnings = append(a.warnings, "The TLS certificate of the git server was not verified (GIT_SSL_NO_VERIFY is set), so the state may come from somebody else's server.")
	}
	d.access = a
	if d.remote.protocol != "file" {
		d.ssh, err = d.run.sshCommand(ctx, a)
	}
	return err
}

func (d *repository) create() error {
	if d.dir != "" {
		return nil
	}
	if d.format == "" {
		d.format = "sha1"
	}
	dir, err := os.MkdirTemp(d.run.tempDir, "statecrypt-git-") // mode 0700
	if err != nil {
		return fmt.Errorf("a temporary directory for git cannot be made (TMPDIR says where): %w", err)
	}
	d.dir = dir
	for _, sub := range []string{"objects/pack", "refs"} {
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, filepath.FromSlash(sub)), 0o700)
		}
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/none\n", "config": d.config()} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("a temporary repository for git cannot be made (TMPDIR says where): %w", err)
	}
	return nil
}

// config puts the address into a quoted value, where it cannot be an option.
// The partial clone settings allow objects to be absent.
func (d *repository) config() string {
	extensions := "\tpartialClone = " + remoteName + "\n"
	if d.format != "sha1" {
		extensions += "\tobjectFormat = " + d.format + "\n"
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(d.access.address(d.remote))
	return "[core]\n\trepositoryformatversion = 1\n\tbare = true\n" +
		"[extensions]\n" + extensions +
		"[remote \"" + remoteName + "\"]\n\tpromisor = true\n\turl = \"" + quoted + "\"\n"
}

// remove deletes the repository and returns a warning when that failed.
func (d *repository) remove() string {
	if d.dir == "" {
		return ""
	}
	// A child that was just killed may still have been writing.
	err := os.RemoveAll(d.dir)
	for wait := time.Millisecond; err != nil && wait < time.Second; wait *= 2 {
		time.Sleep(wait)
		err = os.RemoveAll(d.dir)
	}
	left := d.dir
	d.dir, d.complete = "", false
	if err != nil {
		return fmt.Sprintf("The temporary directory %s could not be removed. It holds a copy of the state as it is in the repository.", shown(left))
	}
	return ""
}

// fetchTree fetches the commit and its trees, trying each name that the ref
// may stand for.
func (d *repository) fetchTree(ctx context.Context, at ref) (*tree, error) {
	if d.format == "" && at.isID && len(at.candidates[0]) == 64 {
		d.format = "sha256"
	}
	for i, full := range at.candidates {
		said, err := d.fetchRef(ctx, full, at.isID)
		if says(err, otherFormat) && !at.isID && d.format == "sha1" {
			d.remove()
			d.format = "sha256"
			said, err = d.fetchRef(ctx, full, at.isID)
		}
		if says(err, lockNotStored) {
			d.remove()
			d.withoutLocks = true
			said, err = d.fetchRef(ctx, full, at.isID)
		}
		if says(err, noSuchRef) && i+1 < len(at.candidates) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list, err := d.list(ctx, said)
		if err != nil || at.isID {
			return list, err
		}
		return list, d.listLocks(ctx, list)
	}
	return nil, errNoSuchRef
}

// fetchRef asks for all locks as well: the files that will be wanted are not
// all known yet, and where there is none, it costs nothing. A commit that was
// named by its id stays what it is whoever locks the state.
func (d *repository) fetchRef(ctx context.Context, full string, isID bool) (said string, err error) {
	args := []string{"--depth=1"}
	if !d.wholeSnapshot {
		args = append(args, "--filter=blob:none")
	}
	args = append(args, remoteName, "+"+full+":"+wantedRef)
	if !isID && !d.withoutLocks {
		args = append(args, "+"+remoteLocks+"*:"+localLocks+"*")
	}
	return d.fetch(ctx, "", args...)
}

func (d *repository) list(ctx context.Context, said string) (*tree, error) {
	t := &tree{format: d.format}
	switch d.complete = true; {
	case d.wholeSnapshot:
		t.warnings = []string{fmt.Sprintf("The server of the git repository %s does not send single files, so the whole snapshot was downloaded.", d.remote)}
	case filterIgnored.MatchString(said):
		t.warnings = []string{fmt.Sprintf("The server of the git repository %s ignored the filter, so the whole snapshot was downloaded.", d.remote)}
	default:
		d.complete = false
	}
	out, err := d.output(ctx, 1<<10, "rev-parse", "--verify", "-q", wantedRef+"^{commit}")
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if t.commit = strings.TrimSpace(string(out)); err != nil || !objectID.MatchString(t.commit) {
		return nil, errNoCommit
	}
	t.listing, err = d.output(ctx, maxListing, "ls-tree", "-r", "-t", "-z", "--full-tree", t.commit)
	if err != nil {
		return nil, err
	}
	return t, checkListing(t.listing)
}

// fetchBlobs fetches exactly these objects.
func (d *repository) fetchBlobs(ctx context.Context, ids []string) error {
	if len(ids) == 0 || d.complete {
		return nil
	}
	_, err := d.fetch(ctx, strings.Join(ids, "\n")+"\n", "--filter=blob:none", "--stdin", remoteName)
	return err
}

// fetch returns what git said. Credentials go out in a header, which costs no
// extra request, but would follow a redirect to anywhere; so with the header
// goes an order not to follow. If that was in the way, git tries again with a
// credential helper, whose answer is bound to the address that asks.
func (d *repository) fetch(ctx context.Context, stdin string, args ...string) (string, error) {
	if err := d.create(); err != nil {
		return "", err
	}
	command := append([]string{"git", "fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"}, args...)
	command = limitMemory(d.run.maxMemory, command)
	said, err := execute(ctx, d.environ(), strings.NewReader(stdin), nil, command)
	if says(err, redirect) && d.access.password != "" && !d.access.redirected {
		d.access.redirected = true
		said, err = execute(ctx, d.environ(), strings.NewReader(stdin), nil, command)
	}
	return said, err
}
