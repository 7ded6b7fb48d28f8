package httpsource

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/servertest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// gitea is a real server that keeps states.
type gitea struct {
	url, program, config string
	env                  []string
}

// startGitea starts the server whose binary STATECRYPT_GITEA names. It ends
// with the test.
func startGitea(t *testing.T) *gitea {
	t.Helper()
	program := servertest.Program(t, "STATECRYPT_GITEA")
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	port := servertest.Port(t)
	g := &gitea{
		url: "http://127.0.0.1:" + port, program: program, config: filepath.Join(dir, "app.ini"),
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
`, dir, account.Username, os.Getuid() == 0, giteaFiles(t), port, g.url)
	if err := os.WriteFile(g.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	g.run(t, "migrate")
	servertest.Start(t, program, []string{"--config", g.config, "web"}, g.env...).Await(t, func() bool {
		return g.status(t, "", "/api/healthz") == http.StatusOK
	})
	return g
}

// giteaFiles is the folder of Gitea's module: what is beside the program.
func giteaFiles(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "code.gitea.io/gitea")
	cmd.Dir = filepath.Join("..", "..", "..", "tools", "gitea")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Fatalf("%v: %s", err, out)
	}
	return module.Dir
}

// run administers the server, and returns the last line of what it prints.
func (g *gitea) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), g.program, append([]string{"--config", g.config},
		args...)...) //nolint:gosec // the server under test
	cmd.Env = g.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

func (g *gitea) newUser(t *testing.T, name string) {
	t.Helper()
	g.run(t, "admin", "user", "create", "--username", name, "--random-password", "--email", name+"@example.test",
		"--must-change-password=false")
}

func (g *gitea) newToken(t *testing.T, name, scopes string) string {
	t.Helper()
	return g.run(t, "admin", "user", "generate-access-token", "--username", name, "--token-name", scopes, "--scopes", scopes, "--raw")
}

// hide lets nobody but the user, and administrators, see what the user has.
func (g *gitea) hide(t *testing.T, name, adminToken string) {
	t.Helper()
	body := fmt.Sprintf(`{"source_id":0,"login_name":%q,"visibility":"private"}`, name)
	g.do(t, http.MethodPatch, "/api/v1/admin/users/"+name, adminToken, body, http.StatusOK)
}

func (g *gitea) do(t *testing.T, method, path, token, body string, want int) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || resp.StatusCode != want {
		t.Fatalf("%s %s: %s, %v\n%.300s", method, path, resp.Status, err, answer)
	}
	return answer
}

// status is what a GET is answered with; 0 for nothing.
func (g *gitea) status(t *testing.T, token, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// States that a real CLI stores in a real Gitea are read back with a token that
// may do nothing but read packages.
func TestRealGitea(t *testing.T) {
	g := startGitea(t)
	g.newUser(t, "ci")
	g.newUser(t, "stranger")
	g.run(t, "admin", "user", "create", "--admin", "--username", "root2", "--random-password", "--email", "root2@example.test",
		"--must-change-password=false")
	g.hide(t, "ci", g.newToken(t, "root2", "write:admin"))
	writer, reader := g.newToken(t, "ci", "write:package"), g.newToken(t, "ci", "read:package")
	states := "/api/packages/ci/terraform/state/"
	at := func(name, user, token string) reading {
		r := at(g.url + states + name)
		if token != "" {
			r.blocks = append(r.blocks, attrs{"url": cty.StringVal(g.url + "/api/packages/ci/"), "username": cty.StringVal(user),
				"password": cty.StringVal(token)})
		}
		return r
	}

	var stored string // the name of one of the states
	for _, cli := range clitest.All(t) {
		name := cli.Name
		p := cli.Project(t, fmt.Sprintf(`backend "http" {
  address        = %[1]q
  lock_address   = "%[1]s/lock"
  unlock_address = "%[1]s/lock"
  lock_method    = "POST"
  unlock_method  = "DELETE"
}`, g.url+states+name), "TF_HTTP_USERNAME=ci", "TF_HTTP_PASSWORD="+writer)
		p.Apply(t, "default")
		snap, err := at(name, "ci", reader).fetch(t)
		if err != nil {
			t.Fatal(err)
		}
		p.Compare(t, "default", snap.Data, g.do(t, http.MethodGet, states+name, reader, "", http.StatusOK))
		p.CheckShown(t, "default", snap.Data)
		// While somebody writes, it can be read.
		g.do(t, http.MethodPost, states+name+"/lock", writer, `{"ID":"1","Operation":"OperationTypeApply","Who":"a@b"}`, http.StatusOK)
		if _, err := at(name, "ci", reader).fetch(t); err != nil {
			t.Errorf("%s, locked: %v", name, err)
		}
		g.do(t, http.MethodDelete, states+name+"/lock", writer, `{"ID":"1"}`, http.StatusOK)
		stored = name
	}

	_, err := at("never-written", "ci", reader).fetch(t)
	if m, ok := source.IsMissing(err); !ok || !m.CredentialsSent {
		t.Errorf("never written: got %v", err)
	}
	for name, c := range map[string]struct{ user, token string }{
		"no token":               {},
		"wrong token":            {"ci", "0123456789012345678901234567890123456789"},
		"token for other things": {"ci", g.newToken(t, "ci", "read:repository")},
		"token of somebody else": {"stranger", g.newToken(t, "stranger", "read:package")},
		"wrong password":         {"stranger", "wrong"},
	} {
		for _, state := range []string{stored, "never-written"} {
			_, err := at(state, c.user, c.token).fetch(t)
			if _, ok := source.IsMissing(err); err == nil || ok {
				t.Errorf("%s, %s: got %v; a refusal does not show that there is no state", name, state, err)
			}
		}
	}
	// The token that is enough to read is not enough to write.
	g.do(t, http.MethodPost, states+stored+"?ID=", reader, `{"version":4,"serial":99,"lineage":"x"}`, http.StatusUnauthorized)
}
