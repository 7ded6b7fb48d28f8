package kubernetes

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// apiServer is a real API server with a real etcd behind it.
type apiServer struct {
	url, ca string // ca is PEM
	web     *http.Client
}

// The tokens of its users.
const (
	adminToken  = "token-of-the-administrator"
	readerToken = "token-of-the-reader"
)

// startAPIServer starts the servers whose binaries STATECRYPT_KUBE_APISERVER
// and STATECRYPT_ETCD name. They end with the test.
func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	program, etcd := os.Getenv("STATECRYPT_KUBE_APISERVER"), os.Getenv("STATECRYPT_ETCD")
	if program == "" || etcd == "" {
		t.Skip("STATECRYPT_KUBE_APISERVER and STATECRYPT_ETCD are not set; make test-services builds both and sets them")
	}
	dir := t.TempDir()
	store, peers := "http://127.0.0.1:"+freePort(t), "http://127.0.0.1:"+freePort(t)
	background(t, etcd, "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", store, "--advertise-client-urls", store,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers, "--unsafe-no-fsync", "--log-level", "error")

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	serviceKey := file(t, filepath.Join(dir, "sa.key"), string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})), 0o600)
	tokens := file(t, filepath.Join(dir, "tokens.csv"), adminToken+",admin,1,system:masters\n"+readerToken+",reader,2\n", 0o600)
	port, certificates := freePort(t), filepath.Join(dir, "certificates")
	background(t, program, "--etcd-servers", store, "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", port, "--cert-dir", certificates,
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", serviceKey, "--service-account-signing-key-file", serviceKey,
		"--token-auth-file", tokens, "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24",
		"--disable-admission-plugins", "ServiceAccount", "--endpoint-reconciler-type", "none")

	wait, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := &apiServer{url: "https://127.0.0.1:" + port}
	for !s.isReady(t, filepath.Join(certificates, "apiserver.crt")) {
		select {
		case <-wait.Done():
			t.Fatal("the API server did not start")
		case <-time.After(200 * time.Millisecond):
		}
	}
	return s
}

// isReady looks for the certificate that the server makes for itself, and then
// asks it.
func (s *apiServer) isReady(t *testing.T, certificate string) bool {
	t.Helper()
	text, err := os.ReadFile(certificate)
	authorities := x509.NewCertPool()
	if err != nil || !authorities.AppendCertsFromPEM(text) {
		return false
	}
	s.ca = string(text)
	s.web = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	resp, err := s.web.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// background runs a program until the test ends, and shows what it prints if
// the test fails.
func background(t *testing.T, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text := log.String(); t.Failed() {
			t.Logf("%s: …%s", filepath.Base(program), text[max(0, len(text)-3000):])
		}
	})
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

// do asks the server as somebody, and returns its status.
func (s *apiServer) do(t *testing.T, token, method, path string, body any) int {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode
}

// create makes an object as the administrator.
func (s *apiServer) create(t *testing.T, path string, object map[string]any) {
	t.Helper()
	if code := s.do(t, adminToken, http.MethodPost, path, object); code != http.StatusCreated {
		t.Fatalf("POST %s: %d", path, code)
	}
}

const rbacAPI = "/apis/rbac.authorization.k8s.io/v1/namespaces/"

// allow gives the reader the role that the example has for the state, with the
// names of these secrets in place of its own.
func (s *apiServer) allow(t *testing.T, secrets ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "kubernetes", "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var role map[string]any
	if err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(&role); err != nil {
		t.Fatal(err)
	}
	rules, _ := role["rules"].([]any)
	rule, _ := rules[0].(map[string]any)
	rule["resourceNames"] = secrets
	s.create(t, rbacAPI+"infra/roles", role)
	s.create(t, rbacAPI+"infra/rolebindings", map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": map[string]any{"name": "reader"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "network-state-reader"},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}},
	})
}

const sealing = `
key_provider "pbkdf2" "k" {
  passphrase = "a passphrase for one test"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state {
  method   = method.aes_gcm.m
  enforced = true
}`

// States that a real CLI stores in a real cluster are read back by somebody who
// may get these secrets, by their names, and do nothing else.
func TestRealAPIServer(t *testing.T) {
	s := startAPIServer(t)
	s.create(t, "/api/v1/namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "infra"}})
	programs := clis(t)
	if tofu := programs["tofu"]; tofu != "" {
		programs["encrypted"] = tofu
	}
	names := []string{"tfstate-default-never-written"}
	for name := range programs {
		names = append(names, "tfstate-default-"+name, "tfstate-staging-"+name)
		if name == "terraform" { // which divides large states
			names = append(names, "tfstate-staging-terraform-part-1", "tfstate-staging-terraform-part-2")
		}
	}
	s.allow(t, names...)

	read := func(t *testing.T, token, suffix, workspace string) (*source.Snapshot, error) {
		t.Helper()
		block := attrs{"host": text(s.url), "cluster_ca_certificate": text(s.ca)}
		if token != "" {
			block["token"] = text(token)
		}
		r := request(t, attrs{"secret_suffix": text(suffix), "namespace": text("infra")}, nil)
		r.Workspace, r.MaxSize = workspace, 64<<20
		src, err := start(settingsOf(block))(r)
		if err != nil {
			t.Fatal(err)
		}
		return src.Fetch(t.Context())
	}
	for name, program := range programs {
		t.Run(name, func(t *testing.T) {
			s.writeAndRead(t, name, program, func(t *testing.T, workspace string) []byte {
				t.Helper()
				snap, err := read(t, readerToken, name, workspace)
				if err != nil {
					t.Fatal(err)
				}
				return snap.Data
			})
		})
	}

	if m, ok := source.IsMissing(second(read(t, readerToken, "never-written", "default"))); !ok || !m.CredentialsSent {
		t.Error("a secret that is not there is missing to those who may read it")
	}
	for what, c := range map[string]struct{ token, suffix, want string }{
		"another secret": {readerToken, "other", `what it takes is the verb "get" for the resource "secrets"`},
		"wrong token":    {"wrong", "never-written", "the server did not accept the credentials (401 Unauthorized)"},
		// The server takes this for an anonymous user.
		"no token": {"", "never-written", "403 Forbidden"},
	} {
		err := second(read(t, c.token, c.suffix, "default"))
		if _, missing := source.IsMissing(err); err == nil || missing || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
	// Nothing else is allowed to the one who has read all this.
	for _, request := range []string{
		"GET /api/v1/namespaces/infra/secrets", "GET /api/v1/namespaces/infra/secrets?watch=1", "GET /api/v1/namespaces", "GET /api/v1/namespaces/infra/secrets/other",
		"DELETE /api/v1/namespaces/infra/secrets/tfstate-default-never-written", "POST /api/v1/namespaces/infra/secrets", "POST /apis/coordination.k8s.io/v1/namespaces/infra/leases",
	} {
		method, path, _ := strings.Cut(request, " ")
		if code := s.do(t, readerToken, method, path, map[string]any{}); code != http.StatusForbidden {
			t.Errorf("%s: the reader is answered %d", request, code)
		}
	}
}

func second(_ *source.Snapshot, err error) error { return err }

// writeAndRead writes states with a CLI, of two workspaces, and reads them.
func (s *apiServer) writeAndRead(t *testing.T, name, program string, read func(t *testing.T, workspace string) []byte) {
	t.Helper()
	sealed := name == "encrypted"
	config := kubeconfig(t, s.url, map[string]any{"certificate-authority-data": []byte(s.ca)}, map[string]any{"token": adminToken})
	env := []string{"TF_CLI_CONFIG_FILE=" + os.DevNull, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	if sealed {
		env = append(env, "TF_ENCRYPTION="+sealing)
	}
	run := func(dir string, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
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
	file(t, filepath.Join(dir, "main.tf"), fmt.Sprintf(`
		terraform {
		  backend "kubernetes" {
		    secret_suffix  = %q
		    namespace      = "infra"
		    config_path    = %q
		    config_context = "right"
		  }
		}
		variable "large" { default = "" }
		output "greeting" { value = "hello from ${terraform.workspace}" }
		output "large" { value = var.large }
	`, name, config), 0o600)
	check := func(workspace string) int {
		t.Helper()
		data := read(t, workspace)
		if sealed == bytes.Contains(data, []byte("hello from")) {
			t.Errorf("encrypted: %t, got %.100q", sealed, data)
		}
		// It is a state to the program itself, with the same outputs.
		local := t.TempDir()
		file(t, filepath.Join(local, "terraform.tfstate"), string(data), 0o600)
		var got map[string]struct{ Value string }
		if err := json.Unmarshal(run(local, "output", "-json"), &got); err != nil || got["greeting"].Value != "hello from "+workspace {
			t.Errorf("got %.100v, %v", got["greeting"], err)
		}
		return len(data)
	}
	run(dir, "init")
	run(dir, "apply", "-auto-approve")
	check("default")
	run(dir, "workspace", "new", "staging")
	run(dir, "apply", "-auto-approve")
	check("staging")
	if name != "terraform" {
		return // OpenTofu knows no parts
	}
	large := hardToPack(chunk + 1000)
	vars, _ := json.Marshal(map[string]string{"large": large})
	file(t, filepath.Join(dir, "terraform.tfvars.json"), string(vars), 0o600)
	run(dir, "apply", "-auto-approve")
	if size := check("staging"); size < len(large) {
		t.Errorf("got %d bytes", size)
	}
}
