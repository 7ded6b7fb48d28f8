package kubernetes

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
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
	program, etcd := testkit.Program(t, "STATECRYPT_KUBE_APISERVER"), testkit.Program(t, "STATECRYPT_ETCD")
	dir := t.TempDir()
	store, peers := "http://127.0.0.1:"+nettest.Port(t), "http://127.0.0.1:"+nettest.Port(t)
	servertest.Start(t, etcd, []string{
		"--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", store, "--advertise-client-urls", store,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default=" + peers, "--unsafe-no-fsync",
		"--log-level", "error",
	})

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	serviceKey := file(t, filepath.Join(dir, "sa.key"), string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY",
		Bytes: x509.MarshalPKCS1PrivateKey(key)})), 0o600)
	tokens := file(t, filepath.Join(dir, "tokens.csv"), adminToken+",admin,1,system:masters\n"+readerToken+",reader,2\n", 0o600)
	port, certificates := nettest.Port(t), filepath.Join(dir, "certificates")
	running := servertest.Start(t, program, []string{
		"--etcd-servers", store, "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", port, "--cert-dir",
		certificates,
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", serviceKey,
		"--service-account-signing-key-file", serviceKey,
		"--token-auth-file", tokens, "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24",
		"--disable-admission-plugins", "ServiceAccount", "--endpoint-reconciler-type", "none",
	})
	s := &apiServer{url: "https://127.0.0.1:" + port}
	running.Await(t, func() bool { return s.isReady(t, filepath.Join(certificates, "apiserver.crt")) })
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

// do asks the server as someone, and returns its status.
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

// States that a real CLI stores in a real cluster are read back by someone who
// may get these secrets, by their names, and do nothing else.
func TestRealAPIServer(t *testing.T) {
	s := startAPIServer(t)
	s.create(t, "/api/v1/namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "infra"}})
	names := []string{"tfstate-default-never-written"}
	for _, cli := range clitest.All(t) {
		names = append(names, "tfstate-default-"+cli.Name, "tfstate-staging-1-"+cli.Name)
		if cli.Name == "terraform" { // which divides large states
			names = append(names, "tfstate-staging-1-terraform-part-1", "tfstate-staging-1-terraform-part-2")
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
		src, err := Kind().Start(settingsOf(block))(r)
		if err != nil {
			t.Fatal(err)
		}
		return src.Fetch(t.Context())
	}
	config := kubeconfig(t, s.url, map[string]any{"certificate-authority-data": []byte(s.ca)}, map[string]any{"token": adminToken})
	for _, cli := range clitest.All(t) {
		t.Run(cli.Name, func(t *testing.T) {
			p := stored(t, cli, cli.Name, config)
			check := func(workspace string) int {
				t.Helper()
				snap, err := read(t, readerToken, cli.Name, workspace)
				if err != nil {
					t.Fatal(err)
				}
				p.Check(t, workspace, snap.Data)
				p.CheckShown(t, workspace, snap.Data)
				return len(snap.Data)
			}
			for _, workspace := range clitest.Workspaces {
				p.Apply(t, workspace)
				check(workspace)
			}
			if cli.Name != "terraform" {
				return // OpenTofu knows no parts
			}
			p.Enlarge(t, chunk+1000)
			p.Apply(t, "staging-1")
			if size := check("staging-1"); size < chunk {
				t.Errorf("got %d bytes", size)
			}
		})
	}

	if m, ok := source.IsMissing(second(read(t, readerToken, "never-written", "default"))); !ok || !m.CredentialsSent {
		t.Error("a secret that is not there is missing to those who may read it")
	}
	for what, c := range map[string]struct{ token, suffix, want string }{
		"another secret": {readerToken, "other", "403 Forbidden"},
		"wrong token":    {"wrong", "never-written", "401 Unauthorized"},
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
		"GET /api/v1/namespaces/infra/secrets", "GET /api/v1/namespaces/infra/secrets?watch=1", "GET /api/v1/namespaces",
		"GET /api/v1/namespaces/infra/secrets/other",
		"DELETE /api/v1/namespaces/infra/secrets/tfstate-default-never-written", "POST /api/v1/namespaces/infra/secrets",
		"POST /apis/coordination.k8s.io/v1/namespaces/infra/leases",
	} {
		method, path, _ := strings.Cut(request, " ")
		if code := s.do(t, readerToken, method, path, map[string]any{}); code != http.StatusForbidden {
			t.Errorf("%s: the reader is answered %d", request, code)
		}
	}
}

func second(_ *source.Snapshot, err error) error { return err }
