package provider

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes/kubetest"
)

// migration is where one pair of blocks of the guide reads its state: both read
// the same one, from the same server.
type migration struct {
	replace map[string]string // what the blocks say → what the test has
	env     []string          // name=value
	files   map[string]string // beside the configuration
	newOnly bool              // the CLIs of the tests do not have the backend
}

// migrations are the pairs of the guide, by their folders. Each makes a server
// that holds the state.
func migrations() map[string]func(t *testing.T, state []byte) migration {
	return map[string]func(t *testing.T, state []byte) migration{
		"http":       migrateHTTP,
		"kubernetes": migrateKubernetes,
		"local":      migrateLocal,
	}
}

// What terraform_remote_state reads, and what reads the guide's block in its
// place, are the same outputs.
func TestAccMigrations(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	const state = `{"version":4,"terraform_version":"1.5.7","serial":3,"lineage":"3f1c1c50-2b1e-4b0e-9d6a-0d0c6f7d8a11","resources":[],` +
		`"outputs":{"vpc_id":{"value":"vpc-1","type":"string"},"zones":{"value":["a","b"],"type":["tuple",["string","string"]]}}}`
	pairs := filepath.Join("..", "..", "examples", "guides", "from-terraform-remote-state")
	folders, err := os.ReadDir(pairs)
	if err != nil || len(folders) < len(migrations()) {
		t.Fatalf("%d pairs, %d tests, %v", len(folders), len(migrations()), err)
	}
	for _, folder := range folders {
		t.Run(folder.Name(), func(t *testing.T) {
			t.Parallel()
			place, ok := migrations()[folder.Name()]
			if !ok {
				t.Fatal("nothing tests this pair")
			}
			migrates(t, filepath.Join(pairs, folder.Name()), place(t, []byte(state)))
		})
	}
}

func migrates(t *testing.T, pair string, m migration) {
	t.Helper()
	files := maps.Clone(m.files)
	if files == nil {
		files = map[string]string{}
	}
	want := map[string]cty.Value{"new": cty.StringVal("vpc-1 b")}
	var text string
	for _, name := range []string{"old", "new"} {
		data, err := os.ReadFile(filepath.Join(pair, name+".tf"))
		if err != nil {
			t.Fatal(err)
		}
		text += string(data)
		if name == "old" && m.newOnly {
			continue
		}
		read := map[string]string{"old": "data.terraform_remote_state.network", "new": "data.statecrypt_remote_state.network"}[name]
		files[name+".tf"] = string(data) + output(name, `"${`+read+`.outputs.vpc_id} ${`+read+`.outputs.zones[1]}"`)
		want[name] = cty.StringVal("vpc-1 b")
	}
	for from, to := range m.replace {
		if !strings.Contains(text, from) {
			t.Errorf("%q is not in the blocks", from)
		}
		for name, content := range files {
			files[name] = strings.ReplaceAll(content, from, to)
		}
	}
	files["settings.tf"] = configuration(`variable "token" {
		type      = string
		sensitive = true
		default   = "example-token"
	}`)
	p := newProject(t, files)
	p.setenv(m.env...)
	p.wantOutputs(want)
}

func migrateHTTP(t *testing.T, state []byte) migration {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ci" || password != "example-token" || r.URL.Path != "/network" || r.Method != http.MethodGet {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write(state)
	}))
	t.Cleanup(server.Close)
	return migration{replace: map[string]string{"https://state.example.com": server.URL}}
}

func migrateKubernetes(t *testing.T, state []byte) migration {
	t.Helper()
	server := kubetest.New(t)
	server.Writable = true // the backend lists its secrets before it reads one, and finds them by their labels
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(state)
	_ = z.Close()
	secret, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{
			"namespace": "infra", "name": "tfstate-default-network",
			"labels": map[string]string{"app.kubernetes.io/managed-by": "terraform", "tfstate": "true", "tfstateSecretSuffix": "network", "tfstateWorkspace": "default"},
		},
		"data": map[string][]byte{"tfstate": packed.Bytes()},
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Put(t, "/api/v1/namespaces/infra/secrets", secret)
	return migration{replace: map[string]string{"~/.kube/config": filepath.ToSlash(exampleKubeconfig(t, server))}}
}

func migrateLocal(_ *testing.T, state []byte) migration {
	return migration{
		replace: map[string]string{"../network/": "network/"},
		files:   map[string]string{"network/terraform.tfstate": string(state)},
	}
}
