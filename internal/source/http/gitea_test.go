package http

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

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
	program := os.Getenv("STATECRYPT_GITEA")
	if program == "" {
		t.Skip("STATECRYPT_GITEA is not set; make test-services builds a Gitea and sets it")
	}
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	port := freePort(t)
	g := &gitea{
		url: "http://127.0.0.1:" + port, program: program, config: filepath.Join(dir, "app.ini"),
		env: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")},
	}
	write(t, g.config, fmt.Sprintf(`
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
`, dir, account.Username, os.Getuid() == 0, giteaFiles(t), port, g.url))
	g.run(t, "migrate")

	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--config", g.config, "web") //nolint:gosec // the server under test
	cmd.Dir, cmd.Env = dir, g.env
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("Gitea: %s", log.String())
		}
	})
	wait, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for g.status(t, "", "/api/healthz") != nethttp.StatusOK {
		select {
		case <-wait.Done():
			t.Fatal("Gitea did not start")
		case <-time.After(100 * time.Millisecond):
		}
	}
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

func freePort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run administers the server, and returns the last line of what it prints.
func (g *gitea) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), g.program, append([]string{"--config", g.config}, args...)...) //nolint:gosec // the server under test
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
	g.run(t, "admin", "user", "create", "--username", name, "--random-password", "--email", name+"@example.test", "--must-change-password=false")
}

func (g *gitea) newToken(t *testing.T, name, scopes string) string {
	t.Helper()
	return g.run(t, "admin", "user", "generate-access-token", "--username", name, "--token-name", scopes, "--scopes", scopes, "--raw")
}

// hide lets nobody but the user, and administrators, see what the user has.
func (g *gitea) hide(t *testing.T, name, adminToken string) {
	t.Helper()
	body := fmt.Sprintf(`{"source_id":0,"login_name":%q,"visibility":"private"}`, name)
	g.do(t, nethttp.MethodPatch, "/api/v1/admin/users/"+name, adminToken, body, nethttp.StatusOK)
}

func (g *gitea) do(t *testing.T, method, path, token, body string, want int) []byte {
	t.Helper()
	req, err := nethttp.NewRequestWithContext(t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := nethttp.DefaultClient.Do(req)
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
	req, err := nethttp.NewRequestWithContext(t.Context(), nethttp.MethodGet, g.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := nethttp.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

const giteaEncryption = `
key_provider "pbkdf2" "k" {
  passphrase = "a passphrase for one test"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state {
  method   = method.aes_gcm.m
  enforced = true
}`

// States that a real CLI stores in a real Gitea are read back with a token that
// may do nothing but read packages.
func TestRealGitea(t *testing.T) {
	g := startGitea(t)
	g.newUser(t, "ci")
	g.newUser(t, "stranger")
	g.run(t, "admin", "user", "create", "--admin", "--username", "root2", "--random-password", "--email", "root2@example.test", "--must-change-password=false")
	g.hide(t, "ci", g.newToken(t, "root2", "write:admin"))
	writer, reader := g.newToken(t, "ci", "write:package"), g.newToken(t, "ci", "read:package")
	states := "/api/packages/ci/terraform/state/"
	at := func(name, user, token string) reading {
		r := at(g.url + states + name)
		if token != "" {
			r.blocks = append(r.blocks, attrs{"url": cty.StringVal(g.url + "/api/packages/ci/"), "username": cty.StringVal(user), "password": cty.StringVal(token)})
		}
		return r
	}

	clis := map[string]string{"tofu": os.Getenv("STATECRYPT_TOFU"), "encrypted": os.Getenv("STATECRYPT_TOFU")}
	clis["terraform"], _ = exec.LookPath("terraform")
	var stored string // the name of one of the states
	for name, cli := range clis {
		if cli == "" {
			continue
		}
		env := []string{
			"TF_CLI_CONFIG_FILE=" + os.DevNull, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"),
			"TF_HTTP_USERNAME=ci", "TF_HTTP_PASSWORD=" + writer,
		}
		if name == "encrypted" {
			env = append(env, "TF_ENCRYPTION="+giteaEncryption)
		}
		run := func(dir string, args ...string) []byte {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), cli, args...)
			cmd.Dir, cmd.Env = dir, env
			var problems bytes.Buffer
			cmd.Stderr = &problems
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, problems.Bytes())
			}
			return out
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, "main.tf"), fmt.Sprintf(`
			terraform {
			  backend "http" {
			    address        = %[1]q
			    lock_address   = "%[1]s/lock"
			    unlock_address = "%[1]s/lock"
			    lock_method    = "POST"
			    unlock_method  = "DELETE"
			  }
			}
			output "greeting" { value = "hello" }
		`, g.url+states+name))
		run(dir, "init")
		run(dir, "apply", "-auto-approve")
		snap, err := at(name, "ci", reader).fetch(t)
		if err != nil {
			t.Fatal(err)
		}
		if want := g.do(t, nethttp.MethodGet, states+name, reader, "", nethttp.StatusOK); !bytes.Equal(snap.Data, want) {
			t.Errorf("%s: got other bytes than the server has", name)
		}
		if sealed := !bytes.Contains(snap.Data, []byte("hello")); sealed != (name == "encrypted") {
			t.Errorf("%s: got %.200s", name, snap.Data)
		}
		local := t.TempDir()
		write(t, filepath.Join(local, "terraform.tfstate"), string(snap.Data))
		if out := run(local, "output", "-json"); !bytes.Contains(out, []byte(`"hello"`)) {
			t.Errorf("%s: got %s", name, out)
		}
		// While somebody writes, it can be read.
		g.do(t, nethttp.MethodPost, states+name+"/lock", writer, `{"ID":"1","Operation":"OperationTypeApply","Who":"a@b"}`, nethttp.StatusOK)
		if _, err := at(name, "ci", reader).fetch(t); err != nil {
			t.Errorf("%s, locked: %v", name, err)
		}
		g.do(t, nethttp.MethodDelete, states+name+"/lock", writer, `{"ID":"1"}`, nethttp.StatusOK)
		stored = name
	}
	if stored == "" {
		t.Skip("there is neither STATECRYPT_TOFU nor terraform in PATH")
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
	g.do(t, nethttp.MethodPost, states+stored+"?ID=", reader, `{"version":4,"serial":99,"lineage":"x"}`, nethttp.StatusUnauthorized)
}
