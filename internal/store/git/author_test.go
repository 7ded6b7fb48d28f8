package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// TestAuthor: what git knows of who makes a commit counts, and only what it does not know is that of
// the user of this machine.
func TestAuthor(t *testing.T) {
	alone := exec.CommandContext(t.Context(), "git", "var", "GIT_COMMITTER_IDENT")
	if alone.Dir = t.TempDir(); alone.Run() == nil {
		t.Skip("git makes an address of the name of this machine")
	}
	me := store.Me()
	says := golden(t, "author")
	for name, c := range map[string]struct {
		env       map[string]string
		config    string
		author    string // what it begins with, and ends with
		committer string
		refused   bool
	}{
		"nothing": {author: " <" + me + ">", committer: " <" + me + ">"},
		"the author": {env: map[string]string{"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@x"}, author: "A <a@x>",
			committer: " <" + me + ">"},
		"a name":          {config: "[user]\n\tname = Jane Doe\n", author: "Jane Doe <" + me + ">", committer: "Jane Doe <" + me + ">"},
		"an address":      {config: "[user]\n\temail = j@x\n", author: " <j@x>", committer: " <j@x>"},
		"a user's EMAIL":  {env: map[string]string{"EMAIL": "e@x"}, author: " <e@x>", committer: " <e@x>"},
		"the committer":   {env: map[string]string{"GIT_COMMITTER_NAME": "C"}, author: " <" + me + ">", committer: "C <" + me + ">"},
		"a date":          {env: map[string]string{"GIT_AUTHOR_DATE": "never"}, refused: true},
		"not allowed":     {config: "[user]\n\tuseConfigOnly = true\n", refused: true},
		"no name allowed": {config: "[user]\n\tuseConfigOnly = true\n\temail = j@x\n", refused: true},
		"a broken config": {config: "[user\n", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "config")
			must(t, os.WriteFile(config, []byte(c.config), 0o600))
			t.Setenv("GIT_CONFIG_GLOBAL", config)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
			err := takeLock(t, at(t, texts{"repository": repo.FileURL(), "path": "a"}))
			if c.refused {
				if err == nil {
					t.Fatal("there is no error")
				}
				says.Check(t, name, strings.ReplaceAll(err.Error(), config, "CONFIG"))
				return
			}
			must(t, err)
			who := strings.Split(repo.Git("log", "-1", "--format=%an <%ae>%n%cn <%ce>", "locks/a"), "\n")
			if !strings.HasSuffix(who[0], c.author) || !strings.HasSuffix(who[1], c.committer) {
				t.Errorf("it is %q, want %q and %q", who, c.author, c.committer)
			}
		})
	}
}
