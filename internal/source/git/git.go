// Package git reads one file of a git repository. It runs the system's git, so
// that credential helpers, ssh configuration, proxies and certificates work as
// they do on the command line, and fetches as little as the server can send:
// the trees of one commit, then exactly the files that are wanted.
package git

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Kind is the source "git".
func Kind() source.Kind {
	return source.Kind{
		Table: table(), Credentials: credentialsTable(), Start: start,
		Home: source.Home{Vars: []string{repositoryVar}, Near: nearRepository, Secrets: []string{passwordFileVar}},
	}
}

func table() attr.Table {
	return attr.Table{
		Name: "git",
		Doc: "One file of a git repository, read with the `git` command (2.31 or newer) from `PATH`. Only the wanted files are downloaded, " +
			"if the server supports partial clones, and nothing stays on disk. All files that a run reads at one `ref` come from the same " +
			"commit. With terraform-backend-git's variables `TF_BACKEND_GIT_GIT_REPOSITORY`, `TF_BACKEND_GIT_GIT_REF` and " +
			"`TF_BACKEND_GIT_GIT_STATE` set, the block can be empty.",
		Attrs: []attr.Attr{
			{Name: "repository", Type: cty.String, Required: true, Env: []string{repositoryVar},
				Doc: "Where the repository is: `https://git.example.com/acme/infra.git`, `ssh://git@git.example.com/acme/infra.git`, " +
					"`git@git.example.com:acme/infra.git`, `file:///srv/git/infra.git` or an absolute local path. A password or token in it is " +
					"refused: set it in the provider's `credentials` block. The default is `TF_BACKEND_GIT_GIT_REPOSITORY`."},
			// Its variable is read by hand: it is meant for the repository that
			// the environment names, not for every one.
			{Name: "ref", Type: cty.String,
				Doc: "A branch (`main`), a tag (`v1.2.0`), a full ref (`refs/pull/7/head`) or a full commit id. A branch wins over a tag of the " +
					"same name. The default is the remote's `HEAD`, usually its default branch. For the repository that " +
					"`TF_BACKEND_GIT_GIT_REPOSITORY` names, it is `TF_BACKEND_GIT_GIT_REF`, or `master` as in terraform-backend-git; " +
					"`TF_BACKEND_GIT_GIT_REF` alone is the default for all repositories."},
			{Name: "path", Type: cty.String, Required: true, Env: []string{stateVar},
				Doc: "The file inside the repository, from its root, with `/` between folders: `envs/prod/terraform.tfstate`. The default is " +
					"`TF_BACKEND_GIT_GIT_STATE`."},
			{Name: "on_locked", Type: cty.String,
				Doc: "What to do while terraform-backend-git has the state locked, which is when the branch `locks/<path>` exists: `ignore`, " +
					"`warn` or `error`. A state in git changes in one commit, so a read never sees half of a change. A `ref` that is a commit id has " +
					"no lock. Defaults to `ignore`."},
		},
	}
}

func credentialsTable() attr.Table {
	return attr.Table{
		Name: "git",
		Doc: "Credentials for git repositories below one URL. Without a block that covers a repository, git's own setup is used: credential " +
			"helpers, `.netrc`, ssh keys and the ssh agent. `GITHUB_TOKEN` and `GITHUB_TOKEN_FILE` need no block for `https://github.com` or " +
			"`GITHUB_SERVER_URL`. The variables of this block need none for the repository that `TF_BACKEND_GIT_GIT_REPOSITORY` names; those " +
			"that are of use there then fill no block for another scheme, host or port. Variables of git's own, such as `GIT_SSL_NO_VERIFY`, " +
			"change nothing about TLS for a block with a `password` or a `ca_file`. With `use_environment = false`, git gets none of them, nor " +
			"proxies or the ssh agent (`SSH_AUTH_SOCK`); configuration files in the home directory stay in effect.",
		Attrs: []attr.Attr{
			{Name: "url", Type: cty.String, Required: true,
				Doc: "What the block covers: `https://git.example.com/acme/` stands for every repository below `/acme`, on this scheme, host and " +
					"port only. For `git@git.example.com:acme/infra.git`, write `ssh://git.example.com/acme/`. The secrets of this block, and those " +
					"that the environment fills in, go nowhere else."},
			{Name: "username", Type: cty.String, Follows: "authorization", Env: []string{"GIT_USERNAME"},
				Doc: "For http and https. The default is `GIT_USERNAME` if the block has no `password`, then the user in the repository's URL, " +
					"then `x-access-token` for a token from `GITHUB_TOKEN` or `GITHUB_TOKEN_FILE`."},
			{Name: "password", Type: cty.String, Sensitive: true, Group: "authorization", Env: []string{"GIT_PASSWORD"},
				Doc: "A password or token, for http and https. Absent, it comes from the first of `GIT_PASSWORD`, `GIT_PASSWORD_FILE`, " +
					"`GITHUB_TOKEN` and `GITHUB_TOKEN_FILE` that is set; with none, from git's own setup. The `_FILE` variables name a file that " +
					"holds it."},
			{Name: keyFileAttr, Type: cty.String, Secret: true, Env: []string{"SSH_PRIVATE_KEY"},
				Doc: "The path of a private key without a passphrase, for ssh. The default is what ssh uses: the agent, its configuration, then " +
					"its default keys."},
			{Name: hostKeysAttr, Type: cty.String, Guard: true, Safe: []string{"yes"}, Env: []string{"StrictHostKeyChecking"},
				Doc: "For ssh: `yes` accepts known hosts only; `accept-new` also accepts unknown ones, and ssh adds their keys to `known_hosts`; " +
					"`no` accepts any host, gives a warning, and adds nothing. The default is ssh's own setting; without one, it acts as `yes`. For " +
					"a block with a key of its own, the variable can only say `yes`. What your own ssh command (`GIT_SSH_COMMAND`, " +
					"`core.sshCommand`) says about host keys wins."},
			{Name: "ca_file", Type: cty.String,
				Doc: "The path of a PEM file with the certificates to trust instead of the system's, for https."},
			{Name: "allow_plain_http", Type: cty.Bool, Default: cty.False,
				Doc: "Send credentials over plain http. Without it they go over https, or to this machine itself."},
		},
	}
}

// run is what the git sources of one configured provider share.
type run struct {
	backend           backend
	http, ssh, github source.Credentials

	environ []string // before what git must not get is taken out
	tempDir string   // where throw-away repositories are made; "" is the system's place

	sweep sync.Once

	versionMu      sync.Mutex
	versionOK      bool
	largest        int64         // number that git takes in its configuration
	versionTimeout time.Duration // on a Mac without developer tools, git is a stub that opens a window and waits

	maxMemory int64 // bytes, for git
	maxObject int64 // bytes of a commit or a directory

	mu   sync.Mutex
	pins map[pinKey]*pin
}

// pinKey needs no credentials: one run has the same for every read of a repository.
type pinKey struct{ repository, ref string }

func start(settings source.Settings) source.Open { return newRun(settings).open }

func newRun(settings source.Settings) *run {
	all := settings.For(Kind())
	return &run{
		backend: newBackend(settings.LookupEnv), environ: userEnviron(settings.LookupEnv),
		http: forSSH(all, false), ssh: forSSH(all, true), github: github(settings.LookupEnv),
		pins: map[pinKey]*pin{}, versionTimeout: 20 * time.Second, maxMemory: maxMemory, maxObject: maxListing,
	}
}

func (r *run) open(req source.Request) (source.Source, error) {
	where, err := parseRepository(req.String("repository"))
	if err != nil {
		if text, _ := r.backend.lookup.Get(repositoryVar); text == req.String("repository") {
			err = fmt.Errorf("%w (the environment variable %s)", err, repositoryVar)
		}
		return nil, req.Errorf("repository", "%w", err)
	}
	at, err := parseRef(cmp.Or(req.String("ref"), r.backend.ref(where)))
	if err != nil {
		return nil, req.Errorf("ref", "%w", err)
	}
	path, err := cleanPath(req.String("path"))
	if err != nil {
		return nil, req.Errorf("path", "%w", err)
	}
	if strings.TrimPrefix(at.name, "refs/heads/") == "locks/"+path {
		return nil, req.Errorf("ref", "this branch is terraform-backend-git's lock of %s; its copy of the state may be old: "+
			"set ref to the branch with the state", shown(path))
	}
	locked := cmp.Or(onLocked(req.String("on_locked")), lockIgnored)
	if !slices.Contains([]onLocked{lockIgnored, lockWarns, lockFails}, locked) {
		return nil, req.Errorf("on_locked", `"ignore", "warn" or "error" is required`)
	}
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

// file is a [source.Source].
type file struct {
	pin      *pin
	path     string
	maxSize  int64
	onLocked onLocked
}

func (f *file) String() string {
	return fmt.Sprintf("%s in the git repository %s at %s", shown(f.path), f.pin.remote, f.pin.ref)
}

// Fetch waits for a visit to the repository that this file shares with others.
func (f *file) Fetch(ctx context.Context) (*source.Snapshot, error) {
	return f.pin.read(ctx, f)
}
