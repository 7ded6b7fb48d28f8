package git

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const (
	// Remote is the name of the remote. It is not "origin", because the user's configuration may contain
	// settings for that name.
	Remote    = "state"
	wantedRef = "refs/statecrypt/wanted"

	// dirPattern is the name pattern of throw-away repositories, for os.MkdirTemp and filepath.Match. A
	// matching directory is either held by a running process or left behind by one that has ended.
	dirPattern = "statecrypt-git-*.held"

	maxListing = 256 << 20 // size limit of a list of files, in bytes: about three million files
	maxNames   = 1 << 20   // size limit of a list of names, in bytes: about ten thousand branches and tags

	// slow is the size, in bytes, above which the download of a whole snapshot causes a warning. A snapshot
	// of this size takes 0.6 s from a local disk, and a single file 0.07 s, on two busy cores with git 2.39.
	// Over 100 Mbit/s, the snapshot takes a second.
	slow = 10 << 20
)

// repository is a throw-away bare repository. The first fetch creates it. It does not use git init, which
// would copy the user's template with its hooks.
type repository struct {
	run    *run
	remote remote
	access *access
	users  *userSettings // nil until git is asked
	dir    string        // empty until it is created
	held   *os.File
	format string // "sha1" or "sha256"

	withoutLocks  bool     // whether locks are not fetched: they are not needed, or cannot be stored on this system
	beside        []string // further refspecs to fetch
	reach         reach
	refusedBefore bool
	complete      bool            // whether all files of the commit are present
	allHere       bool            // whether all folders of the commit are present
	here          map[string]bool // ids of the folders that are present, if not all are

	tooLarge map[string]bool // by id of a requested file, whether it was too large to fetch
	others   []string        // short names of the server's branches and tags, for errors about a missing ref; nil if unknown
}

// prepare checks git's version, and sets d.access and d.users. It does this once per visit.
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
	d.access = a
	if d.remote.protocol == "file" {
		return nil
	}
	if d.users == nil {
		if d.users, err = d.askUserSettings(ctx); err != nil {
			return err
		}
	}
	if d.users.unverified {
		a.warnings = append(a.warnings, source.Warning{Title: netfail.NotVerified, Text: "The TLS certificate of the git server was not " +
			"verified (GIT_SSL_NO_VERIFY is set, or http.sslVerify in the git configuration is false), so the state may come from " +
			"someone else's server."})
	}
	return nil
}

// userSettings are the user's settings for one repository and one credentials block.
type userSettings struct {
	elsewhere  bool   // whether an insteadOf setting leads to another address, which does not get the password of the block
	unverified bool   // whether git accepts any certificate
	ssh        string // GIT_SSH_COMMAND; left unchanged if empty
}

// askUserSettings asks git for the user's settings. It ignores most errors, because the fetch will report them.
func (d *repository) askUserSettings(ctx context.Context) (_ *userSettings, err error) {
	u := new(userSettings)
	address := d.access.address(d.remote)
	if out, err := d.output(ctx, 64<<10, "ls-remote", "--get-url", address); err == nil {
		actual := strings.TrimSpace(string(out)) // after url.<base>.insteadOf
		if u.elsewhere = d.access.ownPassword && actual != address; !u.elsewhere {
			address = actual
		}
	}
	if strings.HasPrefix(address, "https://") {
		u.unverified = d.acceptsAnyCertificate(ctx, address)
	}
	if !d.access.ownPassword {
		u.ssh, err = d.sshCommand(ctx)
	}
	return u, err
}

// acceptsAnyCertificate reports whether git would not verify the certificate of the server at address.
func (d *repository) acceptsAnyCertificate(ctx context.Context, address string) bool {
	if _, set := d.environ().Lookup("GIT_SSL_NO_VERIFY"); set { // any value disables verification
		return true
	}
	verify, err := d.output(ctx, 64, "config", "--type=bool", "--get-urlmatch", "http.sslVerify", address)
	return err == nil && strings.TrimSpace(string(verify)) == "false"
}

func (d *repository) create() error {
	if d.dir != "" {
		return nil
	}
	if d.format == "" {
		d.format = "sha1"
	}
	d.run.sweep.Do(d.run.removeDead)
	dir, held, err := d.run.makeDir()
	if err != nil {
		return fmt.Errorf("could not create a temporary directory for git: %w; check the folder in TMPDIR", err)
	}
	d.held = held
	d.dir, d.tooLarge = dir, map[string]bool{}
	err = cmp.Or(
		os.MkdirAll(filepath.Join(dir, "objects", "pack"), 0o700),
		os.Mkdir(filepath.Join(dir, "refs"), 0o700),
		os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600),
		d.configure(true),
	)
	if err != nil {
		return fmt.Errorf("could not create a temporary repository for git: %w; check the folder in TMPDIR", err)
	}
	return nil
}

// makeDir creates a directory and holds it. It tries three times, because another process may claim the
// directory before it is held. If directories cannot be locked, held is nil, and no other process can claim
// the directory either.
func (r *run) makeDir() (dir string, held *os.File, err error) {
	for range 3 {
		dir, err = os.MkdirTemp(r.tempDir, dirPattern) // mode 0700
		if err != nil {
			return "", nil, err
		}
		if held = hold(dir); held != nil {
			break
		}
	}
	return dir, held, nil
}

// removeDead removes the directories of processes that were killed.
func (r *run) removeDead() {
	parent := cmp.Or(r.tempDir, os.TempDir())
	entries, _ := os.ReadDir(parent) // creating a directory will report the error
	for _, e := range entries {
		if matches, _ := filepath.Match(dirPattern, e.Name()); !matches {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		if held, ok := claim(dir); ok {
			_ = os.RemoveAll(dir)
			_ = held.Close()
		}
	}
}

// configure writes the configuration file. If promised is true, git fetches missing objects when it needs
// them.
func (d *repository) configure(promised bool) error {
	return os.WriteFile(filepath.Join(d.dir, "config"), []byte(d.config(promised)), 0o600)
}

// config returns the content of the configuration file. The address is a quoted value there, so it cannot be
// mistaken for an option.
func (d *repository) config(promised bool) string {
	extensions, promisor := "", ""
	if promised {
		extensions, promisor = "\tpartialClone = "+Remote+"\n", "\tpromisor = true\n"
	}
	if d.format != "sha1" {
		extensions += "\tobjectFormat = " + d.format + "\n"
	}
	address := cmp.Or(d.access.placeholder, d.access.address(d.remote))
	if d.access.ownPassword { // if pushurl is set, no url.<base>.pushInsteadOf applies
		promisor += "\tpushurl = \"" + d.access.placeholder + "\"\n"
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(address)
	// The server side of a local fetch is our child process. It must neither run a program to pack objects
	// nor fetch objects, because an untrusted repository could name that program. A push does run the
	// repository's hooks.
	programs := ""
	if d.remote.protocol == "file" {
		programs = "\tuploadpack = \"unset GIT_ALLOC_LIMIT; GIT_ALLOW_PROTOCOL=none git-upload-pack\"\n" +
			"\treceivepack = \"unset GIT_ALLOC_LIMIT; git-receive-pack\"\n"
	}
	return "[core]\n\trepositoryformatversion = 1\n\tbare = true\n" +
		"[extensions]\n" + extensions +
		"[remote \"" + Remote + "\"]\n" + promisor + "\turl = \"" + quoted + "\"\n" + programs
}

// remove deletes the repository. If that fails, it returns a warning.
func (d *repository) remove() string {
	if d.dir == "" {
		return ""
	}
	_ = d.held.Close() // Windows cannot remove an open file
	// A child process that was just killed may still be writing.
	err := os.RemoveAll(d.dir)
	for wait := time.Millisecond; err != nil && wait < time.Second; wait *= 2 {
		time.Sleep(wait)
		err = os.RemoveAll(d.dir)
	}
	left := d.dir
	d.dir, d.complete, d.allHere, d.here, d.tooLarge = "", false, false, nil, nil
	if err != nil {
		return fmt.Sprintf("The temporary directory %s could not be removed. It holds a copy of the state.", shown(left))
	}
	return ""
}

// fetchTree fetches the commit and its trees. If a fetch does not find a ref that the server lists
// afterwards, the ref was created in between, and fetchTree fetches it again.
func (d *repository) fetchTree(ctx context.Context, at ref) (*tree, error) {
	if d.format == "" && at.isID && len(at.candidates[0]) == 64 {
		d.format = "sha256"
	}
	said, err := d.fetchAny(ctx, at)
	if says(err, noSuchRef) && d.isListed(ctx, at) {
		said, err = d.fetchAny(ctx, at)
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

// fetchAny fetches the first candidate of the ref that exists on the server.
func (d *repository) fetchAny(ctx context.Context, at ref) (said string, err error) {
	for _, full := range at.candidates {
		said, err = d.fetchRef(ctx, full, at.isID)
		for d.adapt(err, at) {
			d.remove()
			said, err = d.fetchRef(ctx, full, at.isID)
		}
		if !says(err, noSuchRef) {
			break
		}
	}
	return said, err
}

// adapt changes one setting for the next fetch after an error, and reports whether it did. It never undoes a
// change, so the number of attempts is limited.
func (d *repository) adapt(err error, at ref) bool {
	switch {
	case says(err, otherFormat) && !at.isID && d.format == "sha1":
		d.format = "sha256"
	case says(err, lockNotStored) && !d.withoutLocks:
		d.withoutLocks = true
	case says(err, tooLarge) && d.reach == glance:
		d.reach = allFolders
		if says(err, badPack) && !says(err, filterIgnored) {
			d.reach = walk
		}
	case says(err, filterRefused) && d.reach == walk:
		d.reach = allFolders
	case says(err, filterIgnored) && says(err, brokenOff) && d.reach != wholeSnapshot: // git printed both messages
		d.reach = wholeSnapshot
	default:
		return false
	}
	return true
}

// fetchRef fetches a ref and all locks, because more files may be requested later and fetching locks costs
// nothing if there are none. For a commit id, it does not fetch locks.
func (d *repository) fetchRef(ctx context.Context, full string, isID bool) (said string, err error) {
	args := []string{"--depth=1"}
	if filter := d.reach.filter(); filter != "" {
		args = append(args, "--filter="+filter)
	}
	args = append(args, Remote, "+"+full+":"+wantedRef)
	if !isID && !d.withoutLocks {
		args = append(args, "+"+remoteLocks+"*:"+localLocks+"*")
	}
	args = append(args, d.beside...)
	return d.fetch(ctx, nil, d.reach.limits(d.run), args...)
}

func (d *repository) list(ctx context.Context, said string) (*tree, error) {
	t := &tree{format: d.format}
	why, setting := "", "uploadpack.allowFilter"
	switch {
	case d.reach == wholeSnapshot:
		why, setting = "does not send single files", "uploadpack.allowAnySHA1InWant"
	case filterIgnored.MatchString(said):
		why = "does not filter snapshots"
	}
	if d.complete = why != ""; d.complete {
		who := "To change that, the server's administrator can run: git -C REPOSITORY"
		if folder := d.remote.folder(); folder != "" {
			who = "To change that, run: git -C " + shown(folder)
		}
		if size := d.packed(); size > d.run.slow {
			t.slow = fmt.Sprintf("The server of the git repository %s %s, so the whole snapshot was downloaded (%d MB). %s config %s true",
				d.remote, why, size>>20, who, setting)
		}
	}
	var err error
	if t.commit, err = d.idOf(ctx, wantedRef+"^{commit}"); err != nil {
		return nil, err
	}
	if d.reach == walk && !d.complete {
		t.root, err = d.idOf(ctx, t.commit+"^{tree}")
		d.here = map[string]bool{t.root: true}
		return t, err
	}
	d.allHere = true
	t.listing, err = d.output(ctx, d.listingLimit(), "ls-tree", "-r", "-t", "-z", "--full-tree", t.commit)
	if err != nil {
		return nil, err
	}
	return t, checkListing(t.listing)
}

func (d *repository) idOf(ctx context.Context, name string) (string, error) {
	out, err := d.output(ctx, 1<<10, "rev-parse", "--verify", "-q", name)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if id := strings.TrimSpace(string(out)); err == nil && objectID.MatchString(id) {
		return id, nil
	}
	return "", errNoCommit
}

// listingLimit returns the size limit, in bytes, of the list of files in the fetched objects. A folder that
// occurs many times is fetched once, but listed each time.
func (d *repository) listingLimit() int64 {
	return min(meter.Expanded(d.packed()), maxListing)
}

// packed returns the number of bytes that were fetched.
func (d *repository) packed() (size int64) {
	packs, _ := filepath.Glob(filepath.Join(d.dir, "objects", "pack", "*.pack"))
	for _, pack := range packs {
		if info, err := os.Stat(pack); err == nil {
			size += info.Size()
		}
	}
	return size
}

// fetchBlobs fetches the files in wanted, which maps each id to the largest size allowed, in bytes. It
// records in d.tooLarge which files are larger. If one file is too large, git fetches none and does not say
// which one it is, so fetchBlobs tries each half separately.
func (d *repository) fetchBlobs(ctx context.Context, wanted map[string]int64) error {
	if len(wanted) == 0 || d.complete {
		return nil
	}
	_, err := d.fetch(ctx, lines(wanted), d.run.limitsOf(wanted), "--filter=blob:none", "--stdin", Remote)
	isTooLarge := says(err, tooLarge)
	if err != nil && !isTooLarge {
		return err
	}
	if !isTooLarge || len(wanted) == 1 {
		for id := range wanted {
			d.tooLarge[id] = isTooLarge
		}
		return nil
	}
	for half := range slices.Chunk(slices.Sorted(maps.Keys(wanted)), (len(wanted)+1)/2) {
		part := map[string]int64{}
		for _, id := range half {
			part[id] = wanted[id]
		}
		if err := d.fetchBlobs(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// fetch runs git fetch and returns its stderr. The credentials are sent in a header, which costs no extra
// request. Since the header would also be sent to the target of a redirect, git must not follow redirects;
// see ask.
func (d *repository) fetch(ctx context.Context, ids []byte, most limits, args ...string) (string, error) {
	if err := d.create(); err != nil {
		return "", err
	}
	command := append([]string{"git", "fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"}, args...)
	return d.ask(ctx, ids, nil, most, command)
}

// ask calls talk. If the server redirects, ask calls talk again with a credential helper, which gives the
// credentials to one address only.
func (d *repository) ask(ctx context.Context, ids []byte, read func(io.Reader) error, most limits, command []string) (string, error) {
	said, err := d.talk(ctx, ids, read, most, command)
	if says(err, redirect) && d.access.password != "" && !d.access.redirected && !d.access.stays {
		d.access.redirected = true
		said, err = d.talk(ctx, ids, read, most, command)
	}
	return said, err
}

// isListed reports whether the server lists the ref after all. For error messages, it records the short names
// of the other branches and tags in d.others, in the server's order. d.others is nil if the ref cannot be a
// branch or a tag, or if the server does not list them.
func (d *repository) isListed(ctx context.Context, at ref) (is bool) {
	d.others = nil
	if strings.HasPrefix(at.name, "refs/") && shortName(at.name) == at.name {
		return false
	}
	refs, err := d.refs(ctx, "refs/heads/*", "refs/tags/*")
	if err != nil {
		return false
	}
	d.others = []string{}
	for _, full := range refs {
		if slices.Contains(at.candidates, full) {
			is = true
		} else if name := shortName(full); name != full && !strings.HasPrefix(full, remoteLocks) {
			d.others = append(d.others, shown(name))
		}
	}
	return is
}

// refs returns the full names of the server's refs that match one of the patterns.
func (d *repository) refs(ctx context.Context, patterns ...string) (names []string, err error) {
	length := 0
	err = d.eachRef(ctx, func(_, name string) error {
		if length += len(name); length > maxNames {
			return errTooManyNames
		}
		names = append(names, name)
		return nil
	}, append([]string{"--refs", Remote}, patterns...)...)
	return names, err
}

var errTooManyNames = errors.New("the repository has too many branches and tags")

// eachRef calls do for each line of git ls-remote, with an object id and the full name of a ref. It uses
// protocol version 0, in which the server sends the list with its first response. Version 2 needs another
// request, and git then asks for all refs, too.
func (d *repository) eachRef(ctx context.Context, do func(id, name string) error, args ...string) error {
	command := append([]string{"git", "-c", "protocol.version=0", "ls-remote", "-q"}, args...)
	_, err := d.ask(ctx, nil, func(stdout io.Reader) error {
		lines := bufio.NewScanner(stdout) // a ref fits into a line of git's protocol, which is shorter than a Scanner's limit
		for lines.Scan() {
			if id, name, ok := strings.Cut(lines.Text(), "\t"); ok {
				if err := do(id, name); err != nil {
					return err
				}
			}
		}
		return lines.Err()
	}, d.reach.limits(d.run), command)
	return err
}

// shortName returns the name of a branch or tag without its prefix. It returns other names unchanged.
func shortName(full string) string {
	return strings.TrimPrefix(strings.TrimPrefix(full, "refs/heads/"), "refs/tags/")
}

// talk runs a git command within limits, with the credentials for the remote.
func (d *repository) talk(ctx context.Context, ids []byte, read func(io.Reader) error, most limits, command []string) (string, error) {
	environ, secret, err := d.access.handOver(most.apply(d.environ(), d.run.largest))
	if err != nil {
		return "", err
	}
	run := world.RunDependent
	if secret != nil {
		defer secret.Close()
		run = func(cmd *exec.Cmd) error {
			cmd.ExtraFiles = []*os.File{secret}
			return world.RunDependent(cmd)
		}
	}
	return execute(ctx, environ, bytes.NewReader(ids), read, run, limited(d.run.maxWork, d.run.maxMemory, most.file, command))
}
