package git

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

func TestSSH(t *testing.T) {
	long(t)
	storetest.Run(t, again(harness(gittest.RepoOptions{}, func(t *testing.T, repo *gittest.Repo) texts {
		server := gittest.SSH(t, repo)
		t.Setenv("GIT_SSH_COMMAND", server.Command(server.KnownHosts))
		return texts{"repository": server.URL, "ssh_private_key_file": server.KeyFile}
	})))
}
