package git

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// readBlock reads with a git block that holds attrs and nothing else.
func readBlock(t *testing.T, r *run, env vars, attrs vars) (*source.Snapshot, error) {
	t.Helper()
	values := map[string]cty.Value{}
	for name, value := range attrs {
		values[name] = cty.StringVal(value)
	}
	v, err := block("data.git", values).Decode(table(), env.lookup)
	if err != nil {
		return nil, err
	}
	src, err := r.open(source.Request{Values: v, Workspace: "default", MaxSize: 1 << 20})
	if err != nil {
		return nil, err
	}
	return src.Fetch(t.Context())
}

// written are the repositories that terraform-backend-git wrote, one for each
// of its modes, and the SHA-256 of the file in each.
var written = map[string]struct{ ref, path, sha256 string }{
	"plain":                         {"master", "my/state.json", "2b11380969ae2539265e4b8117d5f419b750baae2b4a8e6001db51d6024db90e"},
	"aes":                           {"master", "my/state.json", "6153b842f40fe3bcb1f42db12405b2fa389886e8e0a4d429956de21422b739b6"},
	"aes_amend":                     {"master", "amended.json", "c5bb54c7c5f72761cac20d8eca2bd5aff7b1d537eb984e228e9208f18128ece8"},
	"aes_implicit_locked":           {"main", "deep/path/to/prod.tfstate", "885f663c270b9d11b39f6f4245903e479494e374931f5e2a8b2d275715c3dfd5"},
	"aes_over_tofu_encryption":      {"master", "my/state.json", "ee5fe0d6511e4fe242c51b7ea786ffb4e61f9fe8722b11b78264f22e798d2b89"},
	"sops_age":                      {"master", "my/state.json", "6f372b5ade8f16cea838e66278fcf62419a7e3e56257b55e6a0f70664f8dc76e"},
	"sops_age_over_tofu_encryption": {"master", "my/state.json", "238571a45be0389a4f059225432395eef2a9a257cc90e37a999b53a98c30ab31"},
	"sops_pgp":                      {"main", "deep/path/to/prod.tfstate", "fac96fc1607726259a647735e8afad1a878ef9502467bc710b01595f17b5d14a"},
	"sops_shamir_2of3":              {"master", "my/state.json", "3d64822f8073d3c7a1e19fe2c30ef5cd688c39075e34d4fa12f615183cba1f3e"},
	"sops_shamir_age_pgp":           {"master", "my/state.json", "ceb4b76777a8078b3a4ee38df686ac7fd5f91953cb3332a4c95386dec0f34394"},
	"sops_vault":                    {"master", "my/state.json", "1fbcb928234fd98cda591f0a187b96724dd7e7398d6a6f37a5e3d94786df3d70"},
}

func writtenRepo(t *testing.T, name string) *gittest.Repo {
	t.Helper()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Unbundle(filepath.Join("testdata", "terraform-backend-git", name+".bundle"))
	return repo
}

// TestWrittenByTerraformBackendGit reads with the same variables as that
// program, over http, ssh and from a file, and an empty block. It was started
// without a ref where that is master.
func TestWrittenByTerraformBackendGit(t *testing.T) {
	t.Parallel()
	bundles, err := filepath.Glob(filepath.Join("testdata", "terraform-backend-git", "*.bundle"))
	if err != nil || len(bundles) != len(written) {
		t.Fatalf("%d bundles, want %d; %v", len(bundles), len(written), err)
	}
	for name, c := range testkit.Some(written) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := writtenRepo(t, name)
			env := vars{stateVar: "./" + strings.Replace(c.path, "/", "//x/../", 1)}
			if c.ref != "master" {
				env[refVar] = c.ref
			}
			check := func(t *testing.T, r *run, env vars) {
				t.Helper()
				s, err := readBlock(t, r, env, nil)
				if err != nil {
					t.Fatal(err)
				}
				if sum := sha256.Sum256(s.Data); hex.EncodeToString(sum[:]) != c.sha256 {
					t.Errorf("read %d bytes with SHA-256 %x", len(s.Data), sum)
				}
				if tip := repo.Git("rev-parse", "refs/heads/"+c.ref); s.Revision != tip || len(s.Warnings) > 0 {
					t.Errorf("revision %s, want %s; warnings %q", s.Revision, tip, s.Warnings)
				}
				want := source.Lock{}
				if name == "aes_implicit_locked" {
					want = source.Lock{ID: "aaaaaaaa-1111-2222-3333-444444444444", Who: "tester@example.test",
						Operation: "OperationTypeApply", Created: "2024-05-06T07:08:09.123456789Z"}
				}
				if s.Lock == nil && want != (source.Lock{}) || s.Lock != nil && *s.Lock != want {
					t.Errorf("lock %+v, want %+v", s.Lock, want)
				}
			}
			t.Run("http", func(t *testing.T) {
				server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "u", Password: "p"})
				env := with(env, vars{repositoryVar: server.URL, "GIT_USERNAME": "u", "GIT_PASSWORD": "p"})
				check(t, newTestRun(t, env), env)
				if n := len(server.Requests()); n != 5 {
					t.Errorf("%d requests, want 5", n)
				}
			})
			t.Run("file", func(t *testing.T) {
				env := with(env, vars{repositoryVar: repo.Dir})
				check(t, newTestRun(t, env), env)
			})
			if strings.HasPrefix(name, "sops") {
				return // a login takes long, and these differ from the others in their content only
			}
			t.Run("ssh", func(t *testing.T) {
				server := gittest.SSH(t, repo)
				env := with(env, vars{repositoryVar: server.URL, "SSH_PRIVATE_KEY": server.KeyFile})
				check(t, sshRun(t, server, server.KnownHosts, env), env)
			})
		})
	}
}

func TestBackendVariables(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	for _, branch := range []string{"main", "master", "states"} {
		repo.Commit("refs/heads/"+branch, gittest.File{Path: "a/c", Data: branch}, gittest.File{Path: "b", Data: branch + " b"})
	}
	other := gittest.NewRepo(t, gittest.RepoOptions{})
	other.Commit("refs/heads/main", gittest.File{Path: "a/c", Data: "other"})
	here, elsewhere := repo.FileURL(), other.FileURL()

	says := openMistakes(t, "variables of terraform-backend-git")
	for name, c := range map[string]struct {
		env, block vars
		want       string
		fails      bool
	}{
		"all three":        {env: vars{repositoryVar: here, refVar: "states", stateVar: "a//b/../c"}, want: "states"},
		"no ref is master": {env: vars{repositoryVar: here, stateVar: "a/c"}, want: "master"},
		"the block wins": {env: vars{repositoryVar: elsewhere, refVar: "none", stateVar: "none"},
			block: vars{"repository": here, "ref": "states", "path": "b"}, want: "states b"},
		"another path there": {env: vars{repositoryVar: here, refVar: "states", stateVar: "a/c"}, block: vars{"path": "b"},
			want: "states b"},
		"another ref there": {env: vars{repositoryVar: here, refVar: "states", stateVar: "a/c"}, block: vars{"ref": "main"},
			want: "main"},
		"HEAD by name": {env: vars{repositoryVar: here, refVar: "states", stateVar: "a/c"}, block: vars{"ref": "HEAD"},
			want: "main"},
		"the same repository": {env: vars{repositoryVar: here, refVar: "states"}, block: vars{"repository": here, "path": "b"},
			want: "states b"},
		"the same, no ref": {env: vars{repositoryVar: here}, block: vars{"repository": here, "path": "b"}, want: "master b"},
		"the ref is of its repository": {env: vars{repositoryVar: elsewhere, refVar: "states"}, block: vars{"repository": here, "path": "b"},
			want: "main b"},
		"a ref alone is for all":   {env: vars{refVar: "states"}, block: vars{"repository": here, "path": "b"}, want: "states b"},
		"a state alone is for all": {env: vars{stateVar: "b"}, block: vars{"repository": here}, want: "main b"},
		"an empty variable is none": {env: vars{repositoryVar: "", refVar: "", stateVar: ""}, block: vars{"repository": here, "path": "b"},
			want: "main b"},
		"nothing":  {fails: true},
		"no state": {env: vars{repositoryVar: here}, fails: true},
		"a password": {env: vars{repositoryVar: "https://u:" + canary + "@git.example.com/a", stateVar: "b"},
			fails: true},
		"no address": {env: vars{repositoryVar: "ext::sh -c " + canary, stateVar: "b"},
			fails: true},
		"a pattern as ref": {env: vars{repositoryVar: here, refVar: "*", stateVar: "b"}, fails: true},
		"a path that leaves": {env: vars{repositoryVar: here, stateVar: "a/../../b"},
			fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := readBlock(t, newTestRun(t, c.env), c.env, c.block)
			if c.fails {
				says.Error(t, name, err)
				mustNotHold(t, "the error", err.Error(), canary)
				return
			}
			if err != nil || string(s.Data) != c.want {
				t.Errorf("%v, %v; want %q", s, err, c.want)
			}
		})
	}
	t.Run("environment is not to be used", func(t *testing.T) {
		r := newReader(source.Settings{}.For(Kind()))
		values := map[string]cty.Value{"repository": cty.StringVal(here), "path": cty.StringVal("b")}
		v, err := block("data.git", values).Decode(table(), nil)
		if err != nil {
			t.Fatal(err)
		}
		src, err := r.open(source.Request{Values: v, Workspace: "default", MaxSize: 100})
		if err != nil || src.(*file).pin.ref.name != "HEAD" {
			t.Errorf("%v, %v", src, err)
		}
	})
}

// TestBackendSecrets: terraform-backend-git's variables name a repository, and
// its credentials go there and to nothing else.
func TestBackendSecrets(t *testing.T) {
	t.Parallel()
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{})
	dir := t.TempDir()
	secretFile := filepath.Join(dir, "token")
	if err := os.WriteFile(secretFile, []byte(" "+canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := func(more vars) vars { return with(vars{repositoryVar: server.URL}, more) }
	sameServer := server.Origin + "/acme/other.git"
	says := openMistakes(t, "credentials of terraform-backend-git")
	for name, c := range testkit.Some(map[string]struct {
		env        vars
		block      vars // credentials
		repository string
		sent       string // username
		fails      bool
	}{
		"password":                     {env: named(vars{"GIT_USERNAME": "u", "GIT_PASSWORD": canary, "GITHUB_TOKEN": "z"}), sent: "u"},
		"password file":                {env: named(vars{"GIT_USERNAME": "u", "GIT_PASSWORD_FILE": secretFile, "GITHUB_TOKEN": "z"}), sent: "u"},
		"token with a name":            {env: named(vars{"GIT_USERNAME": "u", "GITHUB_TOKEN": canary}), sent: "u"},
		"token file with a name":       {env: named(vars{"GIT_USERNAME": "u", "GITHUB_TOKEN_FILE": secretFile}), sent: "u"},
		"token without a name":         {env: named(vars{"GITHUB_TOKEN": canary})},
		"token without, but of GitHub": {env: named(vars{"GITHUB_TOKEN": canary, "GITHUB_SERVER_URL": server.Origin}), sent: "x-access-token"},
		"name in the variable's URL": {env: vars{repositoryVar: strings.Replace(server.URL, "://", "://bob@", 1), "GIT_PASSWORD": canary},
			sent: "bob"},
		"the variable's name wins": {env: vars{repositoryVar: strings.Replace(server.URL, "://", "://bob@", 1), "GIT_PASSWORD": canary},
			repository: strings.Replace(server.URL, "://", "://eve@", 1), sent: "bob"},
		"no name":    {env: named(vars{"GIT_PASSWORD": canary}), fails: true},
		"line break": {env: named(vars{"GIT_USERNAME": "u", "GIT_PASSWORD": canary + "\nx"}), fails: true},
		"bad file": {env: named(vars{"GIT_USERNAME": "u", "GIT_PASSWORD_FILE": dir}),
			fails: true},
		"the repository, written again": {env: named(vars{"GIT_USERNAME": "u", "GIT_PASSWORD": canary}), repository: server.URL + "/", sent: "u"},
		"another repository":            {env: named(vars{"GIT_USERNAME": "u", "GIT_PASSWORD": canary}), repository: sameServer},
		"below the repository":          {env: named(vars{"GIT_USERNAME": "u", "GIT_PASSWORD": canary}), repository: server.URL + "/x"},
		"above the repository":          {env: named(vars{"GIT_USERNAME": "u", "GIT_PASSWORD": canary}), repository: server.Origin + "/acme"},
		"with dots": {env: named(vars{"GIT_USERNAME": "u", "GIT_PASSWORD": canary}), repository: server.Origin +
			"/x/../acme/infra.git"},
		"encoded": {env: named(vars{"GIT_USERNAME": "u", "GIT_PASSWORD": canary}), repository: server.Origin +
			"/%61cme/infra.git"},
		"another spelling of the host": {env: named(vars{"GIT_USERNAME": "u", "GIT_PASSWORD": canary}),
			repository: strings.Replace(server.URL, "127.0.0.1", "127.1", 1)},
		"a variable that is no address": {env: vars{repositoryVar: "::", "GIT_USERNAME": "u", "GIT_PASSWORD": canary}, repository: server.URL},
		"a block of the same server": {env: named(vars{"GIT_USERNAME": "u", "GIT_PASSWORD": canary}), block: vars{"url": server.Origin},
			repository: sameServer, sent: "u"},
		"a block wins": {env: named(vars{"GIT_USERNAME": "x", "GIT_PASSWORD": "y"}),
			block: vars{"url": server.Origin, "username": "u", "password": canary}, sent: "u"},
		"a block, the repository over ssh": {env: vars{repositoryVar: "git@git.example.com:acme/infra.git", "GIT_USERNAME": "u",
			"GIT_PASSWORD": canary},
			block: vars{"url": server.Origin}, repository: server.URL, sent: "u"},
		"no block, the repository over ssh": {env: vars{repositoryVar: "git@git.example.com:acme/infra.git", "GIT_USERNAME": "u",
			"GIT_PASSWORD": canary},
			repository: server.URL, fails: true},
		"no block, the repository a folder": {env: vars{repositoryVar: "/srv/git/a", "GIT_USERNAME": "u", "GIT_PASSWORD": canary},
			repository: server.URL, fails: true},
		"a block of another server": {env: vars{repositoryVar: "https://git.example.com/acme/infra.git", "GIT_USERNAME": "u",
			"GIT_PASSWORD": canary},
			block: vars{"url": server.Origin}, repository: server.URL},
		"a block of another server, file": {env: vars{repositoryVar: "https://git.example.com/acme/infra.git", "GIT_USERNAME": "u",
			"GIT_PASSWORD_FILE": secretFile},
			block: vars{"url": server.Origin}, repository: server.URL},
	}) {
		t.Run(name, func(t *testing.T) {
			server.Reset()
			attrs := vars{"path": "s", "ref": "HEAD"}
			if c.repository != "" {
				attrs["repository"] = c.repository
			}
			var blocks []vars
			if c.block != nil {
				blocks = append(blocks, c.block)
			}
			s, err := readBlock(t, newTestRun(t, c.env, blocks...), c.env, attrs)
			if c.fails {
				says.Error(t, name, err)
				mustNotHold(t, "the error", err.Error(), canary)
			} else if err != nil || string(s.Data) != "state" {
				t.Fatal(err)
			}
			got := server.Authorizations()
			if c.sent == "" && len(got) > 0 {
				t.Errorf("sent %q", got)
			}
			if c.sent != "" && (len(got) != 5 || got[0] != "Basic "+basicAuth(c.sent, canary)) {
				t.Errorf("sent %q, want five times %s", got, c.sent)
			}
			if !c.fails && len(server.Requests()) == 0 {
				t.Error("the server was never asked: this shows nothing")
			}
		})
	}
}

func TestBackendPlainHTTP(t *testing.T) {
	t.Parallel()
	env := vars{repositoryVar: "http://git.example.com/a.git", stateVar: "s", "GIT_USERNAME": "u", "GIT_PASSWORD": canary}
	_, err := readBlock(t, newTestRun(t, env), env, nil)
	says := openMistakes(t, "plain http of terraform-backend-git")
	says.Error(t, "a password", err)
	mustNotHold(t, "the error", err.Error(), canary)
}

func TestBackendSSH(t *testing.T) {
	long(t)
	t.Parallel()
	server := gittest.SSH(t, stateRepo(t))
	env := vars{repositoryVar: server.URL, refVar: "main", stateVar: "s", "SSH_PRIVATE_KEY": server.KeyFile}
	says := openMistakes(t, "ssh of terraform-backend-git")
	t.Run("unknown host", func(t *testing.T) {
		_, err := readBlock(t, sshRun(t, server, filepath.Join(t.TempDir(), "none"), env), env, nil)
		says.Error(t, "an unknown host", err)
	})
	t.Run("StrictHostKeyChecking=no", func(t *testing.T) {
		env := with(env, vars{"StrictHostKeyChecking": "no"})
		s, err := readBlock(t, sshRun(t, server, filepath.Join(t.TempDir(), "none"), env), env, nil)
		if err != nil || string(s.Data) != "state" || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0].Text, "not verified") {
			t.Errorf("%+v, %v", s, err)
		}
	})
	t.Run("another repository of the server", func(t *testing.T) {
		_, err := readBlock(t, sshRun(t, server, server.KnownHosts, env), env,
			vars{"repository": strings.Replace(server.URL, "infra", "other", 1)})
		says.Error(t, "another repository of the server", err)
	})
	t.Run("another server's block", func(t *testing.T) {
		env := with(env, vars{repositoryVar: "git@git.example.com:acme/infra.git"})
		_, err := readBlock(t, sshRun(t, server, server.KnownHosts, env, vars{"url": sshOrigin(server)}), env, vars{"repository": server.URL})
		says.Error(t, "another server's block", err)
	})
	for _, name := range []string{"SSH_PRIVATE_KEY", "StrictHostKeyChecking"} {
		env := with(env, vars{name: "/nonexistent/" + canary})
		_, err := readBlock(t, sshRun(t, server, server.KnownHosts, env), env, nil)
		says.Error(t, name, err)
		mustNotHold(t, "the error", err.Error(), canary)
	}
}

// GitLab redirects from infra to infra.git. The credentials follow there, and
// to nothing else of the server.
func TestBackendRedirects(t *testing.T) {
	long(t)
	t.Parallel()
	for to, allowed := range map[string]bool{"/acme/infra.git": true, "/acme/infra.github": false, "/acme/other.git": false} {
		server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{Username: "u", Password: canary,
			Before: gittest.RedirectTo(301, func(r *http.Request) string {
				if rest, ok := strings.CutPrefix(r.URL.RequestURI(), "/acme/infra/"); ok {
					return to + "/" + rest
				}
				return ""
			})})
		env := vars{repositoryVar: server.Origin + "/acme/infra", refVar: "main", stateVar: "s", "GIT_USERNAME": "u", "GIT_PASSWORD": canary}
		s, err := readBlock(t, newTestRun(t, env), env, nil)
		if allowed && (err != nil || string(s.Data) != "state") {
			t.Errorf("%s: %v", to, err)
		}
		if !allowed {
			mustFail(t, err)
			mustNotHold(t, "the error", err.Error(), canary, basicAuth("u", canary))
		}
		for _, r := range server.Requests() {
			if !allowed && r.Authorization != "" && strings.HasPrefix(r.Path, to) {
				t.Errorf("%s got the credentials", r.Path)
			}
		}
	}
}
