package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// TestVariablesOfGit: what git gets is on a list. What writes down secrets, loads
// code into git or belongs to another repository is not.
//
// Promise: Secrets of programs
func TestVariablesOfGit(t *testing.T) {
	kept := []string{
		"GIT_SSH_COMMAND=x", "GIT_SSH=x", "SSH_AUTH_SOCK=x", "GIT_ASKPASS=x", "SSH_ASKPASS=x", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=x", "GIT_CONFIG_VALUE_0=x", "GIT_CONFIG_PARAMETERS=x", "GIT_CONFIG_GLOBAL=x", "GIT_CONFIG_NOSYSTEM=x",
		"XDG_CONFIG_HOME=x", "HTTPS_PROXY=x", "https_proxy=x", "no_proxy=x", "GIT_SSL_CAINFO=x", "GIT_HTTP_LOW_SPEED_TIME=x",
		"SSL_CERT_FILE=x", "NIX_SSL_CERT_FILE=x", "AWS_SECRET_ACCESS_KEY=x", "GH_TOKEN=x", "KRB5CCNAME=x", "VSCODE_GIT_IPC_HANDLE=x",
		"LC_CTYPE=x", "GIT_EXEC_PATH=x", "SHELL=x", "COMSPEC=x",
	}
	r := newTestRun(t, nil)
	r.environ = append(slices.Clone(kept), withheldFromGit...)
	got := r.environment(false).Pairs()
	for _, pair := range kept {
		if !slices.Contains(got, pair) {
			t.Errorf("git does not get %s", pair)
		}
	}
	for _, pair := range withheldFromGit {
		if slices.Contains(got, pair) {
			t.Errorf("git gets %s", pair)
		}
	}
	for _, pair := range r.environment(true).Pairs() {
		machines := []string{"HTTPS_PROXY=x", "https_proxy=x", "no_proxy=x", "SSL_CERT_FILE=x", "NIX_SSL_CERT_FILE=x", "LC_CTYPE=x"}
		if slices.Contains(kept, pair) != slices.Contains(machines, pair) {
			t.Errorf("beside a secret of the code, git gets %s", pair)
		}
	}
}

// withheldFromGit write down secrets, load code or belong to another repository.
var withheldFromGit = []string{
	"TF_ENCRYPTION=s", "TF_VAR_password=s", "TF_HTTP_PASSWORD=s", "TF_TOKEN_app_terraform_io=s", "GIT_PASSWORD=s", "git_password=s",
	"GITHUB_TOKEN=s", "STATE_PASSPHRASE=s", "GIT_DIR=s", "git_dir=s", "GIT_TRACE_CURL=s", "GIT_TRACE2_EVENT=s", "GIT_CURL_VERBOSE=s",
	"SSLKEYLOGFILE=s", "GNUTLS_KEYLOGFILE=s", "GNUTLS_SYSTEM_PRIORITY_FILE=s", "GNUTLS_DEBUG_LEVEL=s", "OPENSSL_CONF=s",
	"OPENSSL_MODULES=s", "OPENSSL_ENGINES=s", "CURL_CA_BUNDLE=s", "CURL_SSL_BACKEND=s", "KRB5_TRACE=s", "LD_PRELOAD=s",
	"GIT_PROXY_COMMAND=s", "GIT_TEMPLATE_DIR=s", "GIT_ALLOW_PROTOCOL=s", "PKCS11_PROVIDER_MODULE=s", "BAO_TOKEN=s",
}

// TestWithheldSettings: beside a block's authority, git gets of the configuration in
// variables nothing about TLS, also where git by itself would prefer ours.
func TestWithheldSettings(t *testing.T) {
	for setting, withheld := range map[string]bool{
		"http.sslVerify":               true,
		"http.https://x/.proxySSLCert": true,
		"http.schannelUseSSLCAInfo":    true,
		"include.path":                 true,
		"includeIf.gitdir:/x.path":     true,
		"core.sshCommand":              false,
		"credential.https://x/.helper": false,
		"url.https://x/.insteadOf":     false,
		"http.proxy":                   false,
	} {
		environ := world.World{}.Environ().With("GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0="+setting, "GIT_CONFIG_VALUE_0=x")
		for _, a := range []access{{}, {caFile: "/ca.pem"}} {
			if got, _ := a.withhold(environ).Lookup("GIT_CONFIG_KEY_0"); (got != setting) != (withheld && a.caFile != "") {
				t.Errorf("beside the authority %q, %s is %s", a.caFile, setting, got)
			}
		}
	}
}

// git sets these for the repository at hand.
func TestVariablesOfAnotherRepository(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--local-env-vars").Output()
	if err != nil {
		t.Skip(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if isForGit(name) && !strings.HasPrefix(name, "GIT_CONFIG_") {
			t.Errorf("git gets %s", name)
		}
	}
}

// TestKeysOfConnections: nobody can decrypt a connection that a password goes
// over, whichever variable of a TLS library asks for its keys.
//
// Promise: Secrets in text
func TestKeysOfConnections(t *testing.T) {
	long(t)
	server := gittest.HTTP(t, stateRepo(t), gittest.HTTPOptions{TLS: true, Username: "u", Password: "p"})
	for _, on := range []bool{true, false} {
		dir := t.TempDir()
		for _, name := range []string{"SSLKEYLOGFILE", "GNUTLS_KEYLOGFILE"} {
			t.Setenv(name, filepath.Join(dir, name))
		}
		env := vars{}
		r := newTestRun(t, env, vars{"url": server.Origin, "username": "u", "password": "p", "ca_file": server.CAFile})
		if !on {
			r = newReader(source.Settings{Credentials: r.http}.For(Kind()))
			r.tempDir = t.TempDir()
		}
		mustRead(t, r, place{repository: server.URL, path: "s"}, "state")
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("the environment is on: %v; the keys are in %v, %v", on, left, err)
		}
	}
}

// TestOnlyBackendsPush: what a source is made of knows nothing of writing.
//
// Promise: Reading changes nothing
func TestOnlyBackendsPush(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pushes := strings.Contains(string(text), `"push"`) || strings.Contains(string(text), ".Push(")
		if pushes != (name == "backend.go") && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s pushes: %t", name, pushes)
		}
	}
}
