package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// TestUserSettingsOnce checks that the visits to a server share the user's settings, because each question to git
// starts a process.
func TestUserSettingsOnce(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "gitconfig")
	v, err := block("backend.git", map[string]cty.Value{
		"repository": cty.StringVal("ssh://git@git.example.com/a.git"), "ref": cty.StringVal("main"), "path": cty.StringVal("s"),
		"ssh_private_key_file": cty.StringVal("visit_test.go"), // which is only named in the command
	}).Decode(Backend(), vars{}.lookup)
	if err != nil {
		t.Fatal(err)
	}
	server, err := Connect(v)
	if err != nil {
		t.Fatal(err)
	}
	server.run.environ = append(server.run.environ, "GIT_CONFIG_GLOBAL="+config)
	for _, command := range []string{"first", "second"} {
		if err := os.WriteFile(config, []byte("[core]\n\tsshCommand = "+command+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		visit, err := server.Visit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ssh, _ := visit.d.environ().Lookup("GIT_SSH_COMMAND")
		if left := visit.Close(); left != "" || !strings.HasPrefix(ssh, "first") {
			t.Errorf("the %s visit uses %q, %s", command, ssh, left)
		}
	}
}
