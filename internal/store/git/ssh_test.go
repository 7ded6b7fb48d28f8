package git

import (
	"errors"
	"runtime"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// Promise: States in stores (the suite of every store)
func TestSSH(t *testing.T) {
	long(t)
	storetest.Run(t, again(harness(gittest.RepoOptions{}, func(t *testing.T, repo *gittest.Repo) texts {
		server := gittest.SSH(t, repo)
		t.Setenv("GIT_SSH_COMMAND", server.Command(server.KnownHosts))
		return texts{"repository": server.URL, "ssh_private_key_file": server.KeyFile}
	})))
}

// TestSSHAgent: without a key in the block, the user's agent has one.
func TestSSHAgent(t *testing.T) {
	long(t)
	if runtime.GOOS == "windows" {
		t.Skip("agents are no sockets on Windows")
	}
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	repo.Commit("refs/heads/main", gittest.File{Path: "README", Data: "hello"})
	server := gittest.SSH(t, repo)
	t.Setenv("GIT_SSH_COMMAND", "ssh -F '"+server.Config(server.KnownHosts, "IdentitiesOnly no")+"'")
	s := at(t, texts{"repository": server.URL, "path": "net/prod"})
	if err := takeLock(t, s); !errors.Is(err, store.ErrDenied) {
		t.Errorf("without one: %v", err)
	}
	t.Setenv("SSH_AUTH_SOCK", gittest.Agent(t, server.KeyFile))
	s = at(t, texts{"repository": server.URL, "path": "net/prod"})
	must(t, errors.Join(takeLock(t, s), writeState(t, s), s.Unlock(t.Context(), "1")))
}
