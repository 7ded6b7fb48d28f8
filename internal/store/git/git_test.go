package git

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	gitsource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/git"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/careful"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

const canary = "canary-7f3a9c-secret"

// TestMain takes the user's settings out of the environment, and looks for what was left.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "statecrypt-store-git-")
	if err == nil {
		err = os.Setenv("TMPDIR", dir)
	}
	if err != nil {
		panic(err)
	}
	for _, pair := range os.Environ() {
		if strings.HasPrefix(pair, "GIT_") || strings.HasPrefix(pair, "SSH_") || strings.HasPrefix(pair, "TF_") {
			name, _, _ := strings.Cut(pair, "=")
			_ = os.Unsetenv(name)
		}
	}
	for _, pair := range gittest.Environ(dir) {
		name, value, _ := strings.Cut(pair, "=")
		if slices.Contains([]string{"HOME", "USERPROFILE", "GIT_CONFIG_NOSYSTEM", "XDG_CONFIG_HOME"}, name) {
			_ = os.Setenv(name, value)
		}
	}
	code := m.Run()
	if left, _ := filepath.Glob(filepath.Join(dir, "statecrypt-git-*")); len(left) > 0 {
		_, _ = os.Stderr.WriteString("this is left: " + strings.Join(left, " ") + "\n")
		code = 1
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// texts are the arguments of a block.
type texts map[string]string

// opened is the state of a block whose arguments are all texts, but create_ref.
func opened(t *testing.T, env map[string]string, arguments ...texts) (store.State, error) {
	t.Helper()
	values := map[string]cty.Value{"ref": cty.StringVal("main")}
	for _, some := range arguments {
		for name, text := range some {
			values[name] = cty.StringVal(text)
		}
	}
	lookup := func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
	table := gitsource.Backend()
	v, err := unstable.NewEntry("backend.git", table, values).Decode(table, lookup)
	if err != nil {
		return nil, err
	}
	s, err := Kind().Open(store.Settings{Values: v, Limit: 512 << 20})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { must(t, s.Close()) })
	return s.State(v.String("path"))
}

func at(t *testing.T, arguments ...texts) store.State {
	t.Helper()
	s, err := opened(t, nil, arguments...)
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// carefully is a state as wrap uses it.
func carefully(s store.State) store.State { return careful.New(s, (*branch)(nil).Properties()) }

// harness is for one kind of server. Address returns the arguments that lead to it.
func harness(opts gittest.RepoOptions, address func(t *testing.T, repo *gittest.Repo) texts) storetest.Harness {
	places := func(opts gittest.RepoOptions, there ...gittest.File) storetest.Places {
		return func(t *testing.T, name string) storetest.Place {
			opts.Push = true
			repo := gittest.NewRepo(t, opts)
			path := "envs/" + name
			if there != nil {
				repo.Commit("refs/heads/main", there...)
			}
			arguments := address(t, repo)
			p := storetest.Place{
				Open: func(t *testing.T) store.State { return at(t, arguments, texts{"path": path}) },
				Put: func(_ *testing.T, data []byte) {
					repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"}, gittest.File{Path: path, Data: string(data)})
				},
				Lose:    func(*testing.T) { repo.Git("update-ref", "-d", "refs/heads/locks/"+path) },
				Secrets: []string{canary},
			}
			if strings.HasPrefix(arguments["repository"], "http:") {
				p.Lie = func(_ *testing.T, what storetest.Lie) {
					repo.Drop(func(ref string) bool {
						return strings.HasPrefix(ref, "refs/heads/locks/") == (what == storetest.LieOfLock)
					})
				}
			}
			return p
		}
	}
	special := opts
	special.FirstIsDefault = true
	return storetest.Harness{
		Properties: (*branch)(nil).Properties(), Slow: true, Nameless: []string{"with spaces", "a.b..c", ".hidden"},
		Place:        places(opts, gittest.File{Path: "README", Data: "hello"}, gittest.File{Path: "envs/other", Data: "other"}),
		FirstSpecial: places(special),
	}
}

func again(h storetest.Harness) storetest.Harness {
	h.Again = true
	return h
}

// long skips with -short what starts many processes, and shares no memory in another way.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts many processes")
	}
}

func local(_ *testing.T, repo *gittest.Repo) texts { return texts{"repository": repo.FileURL()} }

func overHTTP(opts gittest.HTTPOptions) func(*testing.T, *gittest.Repo) texts {
	return func(t *testing.T, repo *gittest.Repo) texts {
		opts.Username, opts.Password = "alice", canary
		return texts{"repository": gittest.HTTP(t, repo, opts).URL, "username": "alice", "password": canary}
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness(gittest.RepoOptions{}, local))
}

// Promise: States in stores (the suite of every store)
func TestHTTP(t *testing.T) {
	t.Parallel()
	storetest.Run(t, again(harness(gittest.RepoOptions{}, overHTTP(gittest.HTTPOptions{}))))
}

func TestHTTPWithoutFilter(t *testing.T) {
	t.Parallel()
	long(t)
	storetest.Run(t, again(harness(gittest.RepoOptions{NoFilter: true, NoObjectID: true}, overHTTP(gittest.HTTPOptions{ProtocolV0: true}))))
}

func TestSHA256(t *testing.T) {
	t.Parallel()
	long(t)
	storetest.Run(t, again(harness(gittest.RepoOptions{SHA256: true}, local)))
}
