package git

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Kind returns the git source.
func Kind() source.Kind {
	return source.Kind{
		Table: table(), Credentials: credentialsTable(), Begin: start,
		Home: source.Home{Vars: []string{repositoryVar}, Compare: nearRepository},
	}
}

func table() attr.Table {
	return attr.Table{
		Name: "git",
		Doc: "Reads one file of a git repository with the `git` command (2.31 or later). If the server supports it, only the wanted files are " +
			"downloaded. Nothing stays on disk.",
		Attrs: []attr.Attr{
			{Name: "repository", Type: cty.String, Required: true, Env: []string{repositoryVar},
				Doc: "The address of the repository: an `https`, `ssh` or `file` URL, `git@host:path` or an absolute local path, without a password. " +
					"Defaults to `TF_BACKEND_GIT_GIT_REPOSITORY`."},
			// [defaults.ref] reads the variable for this attribute, which applies only to the repository that
			// the environment names.
			{Name: "ref", Type: cty.String, Form: attr.Version,
				Doc: "A branch (`main`), a tag (`v1.2.0`), a full ref (`refs/pull/7/head`) or a full commit id. Defaults to " +
					"`TF_BACKEND_GIT_GIT_REF`, then to the remote's `HEAD`."},
			{Name: "path", Type: cty.String, Required: true, Env: []string{stateVar},
				Doc: "The path of the file in the repository, with `/` between folders, for example `envs/prod/terraform.tfstate`. The default is " +
					"`TF_BACKEND_GIT_GIT_STATE`."},
			{Name: "on_locked", Type: cty.String,
				Check: attr.Is(harmless.OneOf(string(lockIgnored), string(lockWarns), string(lockFails)),
					`the value must be "ignore", "warn" or "error"`),
				Doc: "What to do if the branch `locks/<path>` exists, because terraform-backend-git has locked the state: `ignore`, `warn` or " +
					"`error`. Defaults to `ignore`."},
		},
	}
}

func credentialsTable() attr.Table {
	return attr.Table{
		Name: "git",
		Doc: "Credentials for git repositories below one URL. Without a block that covers a repository, git's own setup is used: " +
			"credential helpers, `.netrc`, ssh keys and the ssh agent.",
		Attrs: []attr.Attr{
			{Name: "url", Type: cty.String, Required: true,
				Doc: "The URL that the block covers: `https://git.example.com/acme/` covers all repositories below `/acme` with the same scheme, " +
					"host and port. For `git@git.example.com:…`, write `ssh://git.example.com/…`."},
			{Name: "username", Type: cty.String, UnlessGroup: "authorization", Env: []string{"GIT_USERNAME"},
				Harmless: "A user name proves nothing, and goes only where url says.",
				Doc: "The user name for http and https. The default is `GIT_USERNAME` if the block has no `password`, then the user in the " +
					"repository's URL, then `x-access-token` for a token from `GITHUB_TOKEN`."},
			{Name: "password", Type: cty.String, Secrecy: attr.Secret, Group: "authorization", Env: []string{"GIT_PASSWORD"},
				Harmless: harmless.Secret,
				Doc: "A password or token, for http and https. Defaults to the first of `GIT_PASSWORD`, `GIT_PASSWORD_FILE`, `GITHUB_TOKEN` and " +
					"`GITHUB_TOKEN_FILE` that is set, then to git's own setup."},
			{Name: keyFileAttr, Type: cty.String, Secrecy: attr.NamesSecret, Group: "key",
				Doc: "The path of a private key without a passphrase, for ssh. Only this key is offered. A key in `SSH_PRIVATE_KEY` is offered after " +
					"the keys of the agent. Defaults to the keys that ssh itself uses."},
			{Name: hostKeysAttr, Type: cty.String, Form: attr.OrEmpty, Env: []string{"StrictHostKeyChecking"},
				Harmless: "Only known hosts are then accepted.", HarmlessIf: harmless.OneOf("yes"),
				Doc: "Which hosts ssh accepts: only known hosts (`yes`), also unknown hosts, which ssh adds to `known_hosts` (`accept-new`), or " +
					"any host, with a warning (`no`). Defaults to ssh's own setting, then to `yes`."},
			{Name: "ca_file", Type: cty.String,
				Doc: "The path of a PEM file with the certificates to trust instead of the system's, for https."},
			{Name: "allow_plain_http", Type: cty.Bool, Default: cty.False,
				Doc: "Whether to send credentials over plain http. Without this, they are sent only over https, or to this machine."},
		},
		Variables: []attr.Attr{
			{Name: passwordFileVar, Type: cty.String, Secrecy: attr.NamesSecret, UnlessGroup: "authorization", Env: []string{passwordFileVar},
				StandsFor: "password", Harmless: harmless.Secret},
			{Name: keyFileVar, Type: cty.String, Secrecy: attr.NamesSecret, UnlessGroup: "key", Env: []string{keyFileVar}, StandsFor: keyFileAttr,
				Harmless: harmless.Secret},
		},
	}
}

// run holds the state that the git sources of one configured provider share.
type run struct {
	defaults  defaults
	lookup    attr.LookupEnv // nil if the environment must not be used
	http, ssh source.Credentials

	// followsRedirects allows git to follow redirects. It is set for sources; a program that writes only uses
	// the address in its block.
	followsRedirects bool

	// tokenForBlocks allows git to send a GitHub token to every server that has a credentials block. It is
	// not set for a backend block, which says where a state is but does not allow that server to get a token.
	tokenForBlocks bool

	world   world.World
	environ []string // additional environment variables, for tests
	tempDir string   // the parent of throw-away repositories; "" for the system's temporary directory

	sweep sync.Once

	versionMu      sync.Mutex
	versionOK      bool
	largest        int64         // the largest number that git accepts in its configuration
	versionTimeout time.Duration // limits "git version": on a Mac without developer tools, git is a stub that opens a window and waits

	maxStall  time.Duration // the longest pause in a transfer
	maxWork   time.Duration // limits git's processor time
	maxMemory int64         // limits git's memory, in bytes
	maxObject int64         // size limit of a commit or directory, in bytes
	maxGlance int64         // size limit of all directories together, if they are fetched at once, in bytes
	slow      int64         // a whole snapshot of more than this many bytes causes a warning

	mu   sync.Mutex
	pins map[pinKey]*pin
	said map[string]bool // addresses of slow repositories for which a warning was given
}

// pinKey identifies a pin. It does not contain credentials, because a run uses the same credentials for all
// reads from a repository.
type pinKey struct{ repository, ref string }

func start(settings source.Settings) source.Open { return newReader(settings).open }

// newReader returns a run for sources. It follows redirects and may send tokens to servers with credentials
// blocks.
func newReader(settings source.Settings) *run {
	r := newRun(settings)
	r.followsRedirects, r.tokenForBlocks = true, true
	return r
}

// newRun returns a run that does not follow redirects and does not send tokens to servers just because they
// have a block.
func newRun(settings source.Settings) *run {
	return &run{
		defaults: newDefaults(settings.LookupEnv), lookup: settings.LookupEnv, world: settings.World(),
		http: over(settings.Credentials, false), ssh: over(settings.Credentials, true),
		pins: map[pinKey]*pin{}, said: map[string]bool{},
		versionTimeout: 20 * time.Second, maxStall: maxStall, maxWork: maxWork, maxMemory: maxMemory,
		maxObject: maxListing, maxGlance: maxGlance, slow: slow,
	}
}

func (r *run) open(req source.Request) (source.Source, error) {
	where, err := parseRepository(req.String("repository"))
	if err != nil {
		return nil, req.Errorf("repository", "%w", err)
	}
	at, err := parseRef(cmp.Or(req.String("ref"), r.defaults.ref(where)))
	if err != nil {
		return nil, req.Errorf("ref", "%w", err)
	}
	path, err := CleanPath(req.String("path"))
	if err != nil {
		return nil, req.Errorf("path", "%w", err)
	}
	if strings.TrimPrefix(at.name, "refs/heads/") == "locks/"+path {
		return nil, req.Errorf("ref", "this branch is terraform-backend-git's lock of %s, so its copy of the state may be old; set the "+
			"argument ref to the branch with the state", shown(path))
	}
	locked := cmp.Or(onLocked(req.String("on_locked")), lockIgnored)
	return &file{pin: r.pin(where, at), path: path, maxSize: req.MaxSize, onLocked: locked}, nil
}

func (r *run) pin(where remote, at ref) *pin {
	key := pinKey{where.address, at.name}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pins[key] == nil {
		r.pins[key] = &pin{run: r, remote: where, ref: at}
	}
	return r.pins[key]
}

// first reports whether it is called for the first time for a repository.
func (r *run) first(where remote) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.said[where.address]
	r.said[where.address] = true
	return !before
}

// file is one file in a repository. It implements [source.Source].
type file struct {
	pin      *pin
	path     string
	maxSize  int64
	onLocked onLocked
}

func (f *file) String() string {
	return fmt.Sprintf("%s in the git repository %s at %s", shown(f.path), f.pin.remote, f.pin.ref)
}

// Fetch reads the file through a session, which it shares with other files of the repository.
func (f *file) Fetch(ctx context.Context) (*source.Snapshot, error) {
	return f.pin.read(ctx, f)
}
