package provider

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes/kubetest"
)

// The examples for Kubernetes run as they are printed, but for the path of the
// kubeconfig, with no more rights than their RBAC rules give.
func TestAccExamplesKubernetes(t *testing.T) {
	needAcceptance(t)
	if !knowsEphemeral() {
		t.Skip("the examples have ephemeral variables, which this version does not know")
	}
	t.Parallel()
	example := filepath.Join("..", "..", "examples", "kubernetes")
	server := exampleCluster(t)
	rules := exampleRules(t, filepath.Join(example, "rbac.yaml"))
	server.Allows = func(method, path string) bool {
		return method == "GET" && slices.ContainsFunc(rules, func(r rule) bool { return r.allows(path) })
	}

	p := exampleProject(t, []string{example},
		strings.NewReplacer("~/.kube/config", filepath.ToSlash(exampleKubeconfig(t, server))))
	out := p.mustRun("apply", "-auto-approve")
	for _, want := range []string{`vpc_id = "vpc-1"`, `project_id = "ext-public"`, `database_port = 25060`, `archived_org = "o1-archived"`} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	for _, secret := range []string{"canary", "throwaway", "pk-public", server.Token} {
		if strings.Contains(p.state(), secret) || strings.Contains(out, secret) {
			t.Errorf("%s is stored, or shown", secret)
		}
	}
	for _, r := range server.Requests() {
		if !strings.HasPrefix(r, "GET ") {
			t.Errorf("the server got %s", r)
		}
	}
}

// exampleCluster holds what the examples read.
func exampleCluster(t *testing.T) *kubetest.Server {
	t.Helper()
	s := kubetest.New(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(sealExample(t, networkState)))
	_ = z.Close()
	s.PutSecret("infra", "tfstate-default-network", map[string][]byte{"tfstate": packed.Bytes()})
	put := func(collection string, parts ...string) {
		data, err := os.ReadFile(filepath.Join(append([]string{"..", "kubestate", "testdata"}, parts...)...))
		if err != nil {
			t.Fatal(err)
		}
		s.Put(t, collection, data)
	}
	s.AddKind("mongodbatlas.jet.crossplane.io", "v1alpha1", "projects", "Project", false)
	s.AddKind("digitalocean.kubeform.com", "v1alpha1", "databaseclusters", "DatabaseCluster", true)
	put("/apis/mongodbatlas.jet.crossplane.io/v1alpha1/projects", "terrajet_project", "cr.json")
	put("/api/v1/namespaces/crossplane-system/secrets", "terrajet_project", "secret_in-secret.json")
	put("/api/v1/namespaces/crossplane-system/secrets", "terrajet_project", "secret_conn.json")
	put("/apis/digitalocean.kubeform.com/v1alpha1/namespaces/demo/databaseclusters", "kubeform_resource_cluster", "cr.json")
	put("/api/v1/namespaces/demo/secrets", "kubeform_resource_cluster", "secret.json")
	return s
}

func exampleKubeconfig(t *testing.T, s *kubetest.Server) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": s.URL, "certificate-authority-data": []byte(s.CA())}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{"token": s.Token}}},
		"contexts": []any{map[string]any{"name": "state-reader", "context": map[string]any{"cluster": "c", "user": "u"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// rule is a rule of RBAC, in a namespace or in all.
type rule struct {
	namespace            string
	APIGroups, Resources []string
	ResourceNames, Verbs []string
}

func exampleRules(t *testing.T, file string) []rule {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []rule
	for d := utilyaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		var role struct {
			Metadata struct{ Namespace string }
			Rules    []rule
		}
		if d.Decode(&role) != nil {
			break
		}
		for _, r := range role.Rules {
			r.namespace = role.Metadata.Namespace
			all = append(all, r)
		}
	}
	if len(all) != 5 {
		t.Fatalf("read %d rules", len(all))
	}
	return all
}

// allows reports whether the rule gives the right to read path. Everybody may
// ask which kinds there are.
func (r rule) allows(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	if parts[0] == "apis" {
		group, parts = parts[1], parts[1:]
	}
	parts = parts[2:]
	if len(parts) == 0 {
		return true
	}
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	return len(parts) == 2 && namespace == r.namespace && slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, parts[0]) &&
		slices.Contains(r.ResourceNames, parts[1]) && slices.Contains(r.Verbs, "get")
}
