package wrap_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/consul/consultest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// tofuKeys are settings that OpenTofu understands too.
const tofuKeys = `
key_provider "pbkdf2" "k" {
  passphrase = "passphrase-` + canary + `"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state { method = method.aes_gcm.m }
`

// secret is in every state.
const secret = "what-only-the-state-holds"

// module is a root module with a backend, and an input that changes its state.
func module(backend string) string {
	return "terraform {\n" + backend + "\n}\n" + `
variable "text" { default = "` + secret + `" }
resource "terraform_data" "x" { input = var.text }
output "text" { value = terraform_data.x.output }
`
}

// project is a folder where the CLI under test works, with wrap or without.
type project struct {
	store  []string // variables that describe the backend
	dir    string
	cli    string // a name that wrap accepts
	env    []string
	target encryption.Target
	with   wrap.Options // what else wrap is told
	typed  string       // what the user enters
}

// cliUnderTest is a link to the CLI that is called what it is.
func cliUnderTest(t *testing.T) string {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests are skipped unless TF_ACC is set")
	}
	path := os.Getenv("TF_ACC_TERRAFORM_PATH")
	if path == "" {
		path, _ = exec.LookPath("terraform")
	}
	if path == "" {
		t.Skip("there is no CLI: terraform is not on PATH, and TF_ACC_TERRAFORM_PATH is not set")
	}
	name := "terraform"
	if strings.Contains(filepath.Base(path), "tofu") {
		name = "tofu"
	}
	return called(t, path, name)
}

// called is a link of that name to a program.
func called(t *testing.T, path, name string) string {
	t.Helper()
	if strings.HasSuffix(path, ".exe") {
		name += ".exe"
	}
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	return link
}

// folder returns the path of a folder whose name could be taken for a setting.
func folder(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "env=prod")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func newProject(t *testing.T, store []string, backend string) *project {
	t.Helper()
	home := t.TempDir()
	p := &project{store: store, dir: folder(t), cli: cliUnderTest(t), target: target(t, tofuKeys)}
	p.env = append(cloudtest.Isolated(world.World{}.Environ().Pairs()), "HOME="+home, "USERPROFILE="+home,
		"TF_CLI_CONFIG_FILE="+os.DevNull, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1", "TF_CLI_ARGS=-no-color")
	write(t, filepath.Join(p.dir, "main.tf"), module(backend))
	return p
}

// wrapped runs the CLI with wrap.
func (p *project) wrapped(t *testing.T, args ...string) (int, error, string) { //nolint:staticcheck // in the order of Run
	t.Helper()
	out, o := &lines{}, p.with
	o.Keys.State, o.Command = p.target, append([]string{p.cli, "-chdir=" + p.dir}, args...)
	o.Environ = append(append(p.env, p.store...), "TF_ENCRYPTION="+tofuKeys, "TF_LOG=TRACE", "TF_LOG_PATH="+p.dir+".log")
	o.Stdin, o.Stdout, o.Stderr = strings.NewReader(p.typed), out, out
	code, err := wrap.Run(t.Context(), o)
	if strings.Contains(out.String(), canary) {
		t.Errorf("%q: this was printed: %s", args, out)
	}
	return code, err, out.String()
}

// must runs the CLI with wrap, successfully.
func (p *project) must(t *testing.T, args ...string) string {
	t.Helper()
	code, err, out := p.wrapped(t, args...)
	if code != 0 || err != nil {
		t.Fatalf("%q: %d, %v\n%s", args, code, err, out)
	}
	return out
}

// bare runs a CLI without wrap. It skips the test if scripts/tool.sh has compiled the CLI without the backend.
func (p *project) bare(t *testing.T, cli string, env []string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), cli, args...)
	cmd.Dir, cmd.Env = p.dir, append(p.env, env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte("stub of the backend")) {
		t.Skip("this CLI was compiled without the backend")
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// checkClean looks for keys and passwords in everything that was left behind.
func (p *project) checkClean(t *testing.T) {
	t.Helper()
	paths := []string{p.dir + ".log"}
	_ = filepath.Walk(p.dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil || bytes.Contains(content, []byte(canary)) {
			t.Errorf("%s holds a secret, or: %v", path, err)
		}
	}
	if len(paths) < 3 {
		t.Errorf("too few files: %q", paths)
	}
}

// A state is written, changed, planned on one port and applied on another, locked
// by others, unlocked by force, and destroyed; what is in the backend is
// encrypted all the time.
//
// Promise: Only encrypted states
func TestAccWrap(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode"); code != 0 || err != nil {
		t.Errorf("after apply: %d, %v\n%s", code, err, out)
	}
	p.must(t, "plan", "-out=tfplan", "-var=text="+secret+"2")
	p.must(t, "apply", "tfplan")
	if out := p.must(t, "output", "-raw", "text"); !strings.HasSuffix(out, secret+"2") {
		t.Errorf("the output is %s", out)
	}
	if seen := s.requests(); count(seen, "POST /s?ID=") != 2 || count(seen, "LOCK /s/lock") != 4 || count(seen, "UNLOCK /s/lock") != 4 {
		t.Errorf("the backend was asked to %q", seen)
	}

	s.hold([]byte(`{"ID":"4711","Operation":"OperationTypeApply","Who":"someone","Created":"2026-01-01T00:00:00Z"}`))
	code, err, out := p.wrapped(t, "apply", "-auto-approve")
	if code != 1 || err != nil || !strings.Contains(out, "already locked: ID=4711") {
		t.Errorf("locked: %d, %v\n%s", code, err, out)
	}
	p.must(t, "force-unlock", "-force", "4711")
	p.must(t, "destroy", "-auto-approve")
	p.checkClean(t)
	s.checkSealed(t, secret)
}

// OpenTofu reads and writes the same file without wrap.
func TestAccTofuAlone(t *testing.T) {
	t.Parallel()
	tofu := testkit.Program(t, "STATECRYPT_TOFU")
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")

	alone := append(s.terraform(), "TF_ENCRYPTION="+tofuKeys, "TF_DATA_DIR=.tofu")
	text := "-var=text=" + secret + "2"
	for _, c := range []struct {
		args []string
		code int
	}{
		{args: []string{"init"}},
		{args: []string{"plan", "-detailed-exitcode"}},
		{args: []string{"apply", "-auto-approve", text}},
	} {
		if code, out := p.bare(t, tofu, alone, c.args...); code != c.code {
			t.Fatalf("tofu %q: %d\n%s", c.args, code, out)
		}
	}
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode", text); code != 0 || err != nil {
		t.Errorf("after tofu: %d, %v\n%s", code, err, out)
	}
	s.checkSealed(t, secret)
}

// Two runs at once: while one writes, the other is told who has the lock.
func TestAccTwoAtOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	p.must(t, "init")
	writes, goOn := make(chan struct{}), make(chan struct{})
	s.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			close(writes)
			<-goOn
			s.intercept(nil)
		}
		return false
	})
	first := make(chan string)
	go func() {
		code, err, out := p.wrapped(t, "apply", "-auto-approve")
		if code != 0 || err != nil {
			t.Errorf("%d, %v\n%s", code, err, out)
		}
		close(first)
	}()
	select {
	case <-writes:
	case <-first:
		t.Fatal("nothing was written")
	}
	code, err, out := p.wrapped(t, "apply", "-auto-approve")
	if code != 1 || err != nil || !strings.Contains(out, "already locked") {
		t.Errorf("the second: %d, %v\n%s", code, err, out)
	}
	close(goOn)
	<-first
	s.checkSealed(t, secret)
}

// TestAccHostileLock: what a lock of someone else says does not get through the CLI to the terminal, and the lock
// can be given back by the ID that is shown.
//
// Promise: Text from outside
func TestAccHostileLock(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b[2K::add-mask::x"
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	p.must(t, "init")
	lock, err := json.Marshal(map[string]string{"ID": hostile, "Operation": hostile, "Info": "\n" + hostile, "Who": hostile,
		"Version": hostile, "Created": "2026-01-02T03:04:05Z", "Path": "::add-mask::x " + hostile})
	if err != nil {
		t.Fatal(err)
	}
	s.hold(lock)
	code, err, out := p.wrapped(t, "apply", "-auto-approve")
	if code != 1 || err != nil || !strings.Contains(out, "already locked") || strings.Contains(out, "\x1b") ||
		regexp.MustCompile(`(?m)(^|\s)::`).MatchString(out) {
		t.Errorf("%d, %v\n%q", code, err, out)
	}
	p.must(t, "force-unlock", "-force", `\u001b[2K::add-mask::x`)
	p.must(t, "apply", "-auto-approve")
}

// A state moves in from a file, and out to one.
func TestAccMigrate(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	p := newProject(t, s.environ(), `backend "local" {}`)
	for _, args := range [][]string{{"init"}, {"apply", "-auto-approve"}} {
		if code, out := p.bare(t, p.cli, nil, args...); code != 0 {
			t.Fatalf("%d\n%s", code, out)
		}
	}
	write(t, filepath.Join(p.dir, "main.tf"), module(empty))
	p.with = wrap.Options{Wishes: wrap.Wishes{EncryptExisting: true}}
	for range 2 {
		p.must(t, "init")
	}
	p.with = wrap.Options{}
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode"); code != 0 || err != nil {
		t.Errorf("moved in: %d, %v\n%s", code, err, out)
	}
	s.checkSealed(t, secret)
	if seen := s.requests(); count(seen, "POST /s?ID=") != 1 || count(seen, "LOCK /s/lock") != count(seen, "UNLOCK /s/lock") {
		t.Errorf("the backend was asked to %q", seen)
	}

	for _, left := range []string{"terraform.tfstate", "terraform.tfstate.backup"} {
		_ = os.Remove(filepath.Join(p.dir, left))
	}
	write(t, filepath.Join(p.dir, "main.tf"), module(`backend "local" {}`))
	p.with = wrap.Options{Wishes: wrap.Wishes{Leave: true}}
	p.must(t, "init", "-migrate-state", "-force-copy")
	if code, out := p.bare(t, p.cli, nil, "plan", "-detailed-exitcode"); code != 0 {
		t.Errorf("moved out: %d\n%s", code, out)
	}
	p.with = wrap.Options{}
	if code, err, out := p.wrapped(t, "plan"); code != 1 || err == nil {
		t.Errorf("with another backend: %d, %v\n%s", code, err, out)
	}
}

// A state moves in from another backend, where it was until now.
func TestAccMoveInFromConsul(t *testing.T) {
	t.Parallel()
	there := consultest.New(t)
	there.Writable = true
	s := newStore(t)
	p := newProject(t, s.environ(), `backend "consul" {
  address = "`+strings.TrimPrefix(there.URL, "http://")+`"
  scheme  = "http"
  path    = "network"
}`)
	for _, args := range [][]string{{"init"}, {"apply", "-auto-approve"}} {
		code, out := p.bare(t, p.cli, nil, args...)
		if strings.Contains(out, "stub of the backend consul") { // of scripts/tool.sh
			t.Skip("this CLI was compiled without the backend")
		}
		if code != 0 {
			t.Fatalf("%d\n%s", code, out)
		}
	}
	write(t, filepath.Join(p.dir, "main.tf"), module(empty))
	p.with = wrap.Options{Wishes: wrap.Wishes{EncryptExisting: true}}
	p.must(t, "init")
	p.with = wrap.Options{}
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode"); code != 0 || err != nil {
		t.Errorf("moved in: %d, %v\n%s", code, err, out)
	}
	s.checkSealed(t, secret)
}

// A plaintext state in the backend is read if a fallback allows that, and sealed
// when it is written.
func TestAccPlaintextThere(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	p.must(t, "init")
	s.put([]byte(strings.Replace(state, `"outputs":{}`, `"outputs":{"text":{"type":"string","value":"`+secret+`"}}`, 1)))
	code, err, out := p.wrapped(t, "state", "pull")
	if code == 0 || err != nil || !strings.Contains(out, "statecrypt: ") || strings.Contains(out, secret) {
		t.Errorf("without a fallback: %d, %v\n%s", code, err, out)
	}
	p.target = target(t, migrating)
	if out := p.must(t, "output", "-raw", "text"); !strings.HasSuffix(out, secret) {
		t.Errorf("with a fallback, the output is %q", out)
	}
	p.target, p.with = target(t, sealing), wrap.Options{Wishes: wrap.Wishes{EncryptExisting: true}}
	p.must(t, "init")
	s.checkSealed(t, secret)
	p.with = wrap.Options{}
	if out := p.must(t, "output", "-raw", "text"); out != secret {
		t.Errorf("the output is %q", out)
	}
}

// An interrupted apply still writes its state, encrypted, and gives the lock back.
func TestAccInterrupted(t *testing.T) {
	needSignals(t)
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	p.must(t, "init")
	fifo := filepath.Join(p.dir, "started")
	write(t, filepath.Join(p.dir, "more.tf"), `resource "terraform_data" "slow" {
  depends_on = [terraform_data.x]
  provisioner "local-exec" { command = "trap : INT; echo > '`+fifo+`'; sleep 600 & wait" }
}`)
	interruptWhen(t, fifo)
	code, err, out := p.wrapped(t, "apply", "-auto-approve")
	if code != 1 || err != nil {
		t.Errorf("%d, %v\n%s", code, err, out)
	}
	s.checkSealed(t, secret)
	if seen := s.requests(); count(seen, "UNLOCK /s/lock") != 1 {
		t.Errorf("the backend was asked to %q", seen)
	}
	opened, err := p.target.Decrypt(t.Context(), s.stored())
	if err != nil || !bytes.Contains(opened.Data, []byte(secret)) {
		t.Errorf("what was made before is not in the state: %v", err)
	}
}

// TestAccRemoteState: a module reads the states of other servers as it does without wrap. They get neither the name nor
// the password of wrap.
//
// Promise: Where secrets go
func TestAccRemoteState(t *testing.T) {
	t.Parallel()
	cliUnderTest(t) // skips the test before its server listens where programs of other tests may still ask
	there := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, isGiven := r.BasicAuth()
		if isGiven && user+":"+password != "u:p" {
			t.Errorf("the server gets %s:%s", user, password)
		}
		if r.URL.Path == "/private" && !isGiven {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, strings.Replace(state, `"outputs":{}`, `"outputs":{"text":{"type":"string","value":"`+secret+`"}}`, 1))
	}))
	there.Config.ErrorLog = log.New(io.Discard, "", 0)
	there.StartTLS()
	t.Cleanup(there.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: there.Certificate().Raw}))
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	write(t, trusted, authority)
	for name, config := range map[string]string{
		"an authority": `address = "` + there.URL + "/private\"\nusername = \"u\"\npassword = \"p\"\nclient_ca_certificate_pem = <<E\n" + authority + "E\n",
		"a password":   `address = "` + there.URL + "/private\"\nusername = \"u\"\npassword = \"p\"\n",
		"an address":   `address = "` + there.URL + "/public\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			p := newProject(t, s.environ(), empty)
			p.env = append(p.env, "SSL_CERT_FILE="+trusted)
			write(t, filepath.Join(p.dir, "main.tf"), "terraform {\n"+empty+"\n}\n"+`
data "terraform_remote_state" "x" {
  backend = "http"
  config = {
    `+config+`
  }
}
output "text" { value = data.terraform_remote_state.x.outputs.text }
`)
			p.must(t, "init")
			code, err, out := p.wrapped(t, "apply", "-auto-approve")
			if code != 0 || err != nil || !strings.Contains(out, secret) {
				t.Errorf("%d, %v\n%s", code, err, out)
			}
		})
	}
}

// Gitea keeps states, and locks them in its own way.
func TestAccRealGitea(t *testing.T) {
	g := servertest.StartGitea(t)
	g.NewUser(t, "ci")
	writer := g.NewToken(t, "ci", "write:package")
	const at = "/api/packages/ci/terraform/state/wrapped"
	p := newProject(t, []string{
		"STATECRYPT_HTTP_ADDRESS=" + g.URL + at, "STATECRYPT_HTTP_LOCK_ADDRESS=" + g.URL + at + "/lock",
		"STATECRYPT_HTTP_UNLOCK_ADDRESS=" + g.URL + at + "/lock",
		"STATECRYPT_HTTP_LOCK_METHOD=POST", "STATECRYPT_HTTP_UNLOCK_METHOD=DELETE", "STATECRYPT_HTTP_USERNAME=ci",
		"STATECRYPT_HTTP_PASSWORD=" + writer,
	}, empty)
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode"); code != 0 || err != nil {
		t.Errorf("after apply: %d, %v\n%s", code, err, out)
	}
	file := g.Do(t, http.MethodGet, at, writer, "", http.StatusOK)
	opened, err := p.target.Decrypt(t.Context(), bytes.Clone(file))
	if err != nil || !opened.Encrypted || bytes.Contains(file, []byte(secret)) || !bytes.Contains(opened.Data, []byte(secret)) {
		t.Errorf("Gitea has %.300s, %v", file, err)
	}

	g.Do(t, http.MethodPost, at+"/lock", writer, `{"ID":"4711","Operation":"OperationTypeApply","Who":"a@b"}`, http.StatusOK)
	if code, err, out := p.wrapped(t, "apply", "-auto-approve"); code != 1 || err != nil || !strings.Contains(out, "already locked: ID=4711") {
		t.Errorf("locked: %d, %v\n%s", code, err, out)
	}
	g.Do(t, http.MethodDelete, at+"/lock", writer, `{"ID":"4711"}`, http.StatusOK)
	p.must(t, "destroy", "-auto-approve")
}
