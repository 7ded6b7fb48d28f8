package servertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Gitea is a real Gitea server, which can store states.
type Gitea struct {
	URL string // for example, http://127.0.0.1:12345

	program, config string
	env             []string
}

// StartGitea starts the server whose binary STATECRYPT_GITEA names. The server is stopped at the end of the test.
func StartGitea(t *testing.T) *Gitea {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_GITEA")
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	port := nettest.Port(t)
	g := &Gitea{
		URL: "http://127.0.0.1:" + port, program: program, config: filepath.Join(dir, "app.ini"),
		env: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")},
	}
	config := fmt.Sprintf(`
WORK_PATH = %[1]s
RUN_USER = %[2]s
RUN_MODE = prod
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = %[3]t
[server]
STATIC_ROOT_PATH = %[4]s
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[5]s
ROOT_URL = %[6]s/
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = %[1]s/gitea.db
[security]
INSTALL_LOCK = true
SECRET_KEY = for-tests
[log]
LEVEL = error
[cron]
ENABLED = false
`, dir, account.Username, os.Getuid() == 0, giteaFiles(t), port, g.URL)
	if err := os.WriteFile(g.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	g.Run(t, "migrate")
	Start(t, program, []string{"--config", g.config, "web"}, g.env...).Await(t, func() bool {
		resp, err := http.Get(g.URL + "/api/healthz") //nolint:noctx // the test ends it with the server
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return g
}

// giteaFiles returns the folder of Gitea's module, which contains the files that the program needs.
func giteaFiles(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/statecrypt/terraform-provider-statecrypt").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "code.gitea.io/gitea")
	cmd.Dir = filepath.Join(strings.TrimSpace(string(root)), "tools", "gitea")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Fatalf("%v: %s", err, out)
	}
	return module.Dir
}

// Run runs an administration command, and returns its output, which includes log messages in any order.
func (g *Gitea) Run(t *testing.T, args ...string) string {
	t.Helper()
	args = append([]string{"--config", g.config}, args...)
	cmd := exec.CommandContext(t.Context(), g.program, args...) //nolint:gosec // the server under test
	cmd.Env = g.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// NewUser creates a user.
func (g *Gitea) NewUser(t *testing.T, name string) {
	t.Helper()
	g.Run(t, "admin", "user", "create", "--username", name, "--random-password", "--email", name+"@example.test",
		"--must-change-password=false")
}

// NewToken returns an access token for a user, with scopes such as "write:package".
func (g *Gitea) NewToken(t *testing.T, name, scopes string) string {
	t.Helper()
	out := g.Run(t, "admin", "user", "generate-access-token", "--username", name, "--token-name", scopes, "--scopes", scopes, "--raw")
	token := regexp.MustCompile(`(?m)^[0-9a-f]{40}$`).FindString(out)
	if token == "" {
		t.Fatalf("there is no token in %q", out)
	}
	return token
}

// Do sends a request, and returns the response body. The response must have the status want.
func (g *Gitea) Do(t *testing.T, method, path, token, body string, want int) []byte {
	t.Helper()
	return Do(t, method, g.URL+path, body, want, "Content-Type", "application/json", "Authorization", "Bearer "+token)
}
