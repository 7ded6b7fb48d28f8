package git

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

const canary = "canary-7f3a9c-secret"

// attrs asks for envs/prod.tfstate on main.
func attrs(repository string) map[string]cty.Value {
	return map[string]cty.Value{
		"repository": cty.StringVal(repository),
		"ref":        cty.StringVal("main"),
		"path":       cty.StringVal("envs/prod.tfstate"),
	}
}

// withPassword covers the origin with a block.
func withPassword(origin, password string) source.Settings {
	return source.Settings{Credentials: source.Credentials{Entries: []*unstable.Entry{block("credentials.git[0]", map[string]cty.Value{
		"url": cty.StringVal(origin), "username": cty.StringVal("alice"), "password": cty.StringVal(password),
	})}}}
}

// Promise: Reading changes nothing (the suite of every source)
func TestSource(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{
		Kind: Kind(),
		Place: func(t *testing.T, data []byte) sourcetest.Place {
			repo := gittest.NewRepo(t, gittest.RepoOptions{})
			files := []gittest.File{{Path: "README", Data: "hello"}}
			if data != nil {
				files = append(files, gittest.File{Path: "envs/prod.tfstate", Data: string(data)})
			}
			repo.Commit("refs/heads/main", files...)
			refs := repo.Git("show-ref")
			server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "alice", Password: canary})
			return sourcetest.Place{
				Attrs:    attrs(server.URL),
				Settings: withPassword(server.Origin, canary),
				Secrets:  []string{canary, basicAuth("alice", canary)},
				Changed: func() error {
					if now := repo.Git("show-ref"); now != refs {
						t.Errorf("refs changed from %q to %q", refs, now)
					}
					return nil
				},
			}
		},
		Bad: map[string]func(t *testing.T) sourcetest.Place{
			"wrong password": func(t *testing.T) sourcetest.Place {
				repo := gittest.NewRepo(t, gittest.RepoOptions{})
				repo.Commit("refs/heads/main")
				server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "alice", Password: "other"})
				return sourcetest.Place{Attrs: attrs(server.URL), Settings: withPassword(server.Origin, canary),
					Secrets: []string{canary, basicAuth("alice", canary)}}
			},
			"missing ref": func(t *testing.T) sourcetest.Place {
				return sourcetest.Place{Attrs: attrs(gittest.NewRepo(t, gittest.RepoOptions{}).FileURL())}
			},
			"missing repository": func(t *testing.T) sourcetest.Place {
				return sourcetest.Place{Attrs: attrs("file://" + t.TempDir() + "/none.git")}
			},
			"nobody listens": func(t *testing.T) sourcetest.Place {
				return sourcetest.Place{Attrs: attrs("http://" + nettest.Dead(t) + "/a.git")}
			},
		},
		Stuck: func(t *testing.T) sourcetest.Place {
			server := gittest.HTTP(t, gittest.NewRepo(t, gittest.RepoOptions{}), gittest.HTTPOptions{Before: gittest.Stall})
			return sourcetest.Place{Attrs: attrs(server.URL)}
		},
	})
}

func basicAuth(user, password string) string {
	return (&access{username: user, password: password}).basic()
}
