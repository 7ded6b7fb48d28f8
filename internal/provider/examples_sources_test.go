package provider

import (
	"bytes"
	"compress/gzip"
	"crypto/md5" //nolint:gosec // no security: what COS keeps beside an object
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/consul/consultest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes/kubetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/pg/pgtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/remote/tfetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
)

const (
	guideState = `{"version":4,"terraform_version":"1.5.7","serial":3,"lineage":"3f1c1c50-2b1e-4b0e-9d6a-0d0c6f7d8a11","resources":[],` +
		`"outputs":{"vpc_id":{"value":"vpc-1","type":"string"},"url":{"value":"https://lab","type":"string"},"zone_id":{"value":"Z1","type":"string"},` +
		`"zones":{"value":["a","b"],"type":["tuple",["string","string"]]},"password":{"value":"canary-output","type":"string","sensitive":true}}}`
	exampleSecret = "canary-credential" // whatever the blocks ask for
)

// store is where the blocks that the guides print for one kind of source find
// their states.
type store struct {
	hosts   map[string]http.Handler // the blocks' servers, under their own names
	replace map[string]string       // what the blocks say → what the test has
	env     []string                // name=value
	files   map[string]string       // beside the configuration
	newOnly bool                    // the CLI does not have the backend, or not what the old block says
}

// stores makes them, by kind. The state is where both the example of the kind
// and the pair of blocks for its migration look for one.
func stores() map[string]func(t *testing.T, state []byte) store {
	return map[string]func(t *testing.T, state []byte) store{
		"azurerm":    storeAzure,
		"consul":     storeConsul,
		"cos":        storeCOS,
		"gcs":        storeGCS,
		"git":        storeGit,
		"http":       storeHTTP,
		"kubernetes": storeKubernetes,
		"local":      storeLocal,
		"oci":        storeOCI,
		"oss":        storeOSS,
		"pg":         storePG,
		"remote":     storeRemote,
		"s3":         storeS3,
	}
}

// What terraform_remote_state reads, and what reads the guide's block in its
// place, are the same outputs.
func TestAccMigrations(t *testing.T) {
	eachFolder(t, filepath.Join("guides", "from-terraform-remote-state"),
		func(t *testing.T, dir string, place func(*testing.T, []byte) store) {
			s := place(t, []byte(guideState))
			needBackend(t, filepath.Base(dir))
			files := map[string]string{}
			want := map[string]cty.Value{}
			for _, name := range []string{"old", "new"} {
				if name == "old" && s.newOnly {
					continue
				}
				read := map[string]string{"old": "data.terraform_remote_state.network", "new": "data.statecrypt_remote_state.network"}[name]
				files[name+".tf"] = readText(t, filepath.Join(dir, name+".tf")) +
					output(name, `"${`+read+`.outputs.vpc_id} ${`+read+`.outputs.zones[1]}"`)
				want[name] = cty.StringVal("vpc-1 b")
			}
			variables := ""
			for _, name := range variablesOf(files) {
				variables += "variable " + quote(name) + " {\ntype = string\nsensitive = true\n}\n"
			}
			files["settings.tf"] = configuration(variables)
			s.project(t, files).wantOutputs(want)
		})
}

// needBackend skips on a CLI of scripts/tool.sh that lacks a backend: one that is
// a module of its own, which the module proxy does not have.
func needBackend(t *testing.T, kind string) {
	t.Helper()
	if slices.Contains(stubbedBackends(), kind) {
		t.Skip("this Terraform was compiled without those of its backends that are modules of their own")
	}
}

var stubbedBackends = sync.OnceValue(func() (kinds []string) {
	program, _ := os.ReadFile(cliPath()) // without a program, other tests fail
	for _, stub := range regexp.MustCompile(`stub of the backend (\w+);`).FindAllSubmatch(program, -1) {
		kinds = append(kinds, string(stub[1]))
	}
	return kinds
})

// The examples of sources run as they are printed, and store no secret.
func TestAccSourceExamples(t *testing.T) {
	needAcceptance(t)
	if !knowsEphemeral() {
		t.Skip("the examples have ephemeral variables, which this version does not know")
	}
	eachFolder(t, "sources", func(t *testing.T, dir string, place func(*testing.T, []byte) store) {
		files := map[string]string{}
		for _, path := range glob(t, filepath.Join(dir, "*.tf")) {
			files[filepath.Base(path)] = readText(t, path)
		}
		p := place(t, []byte(sealExample(t, guideState))).project(t, files)
		out := p.mustRun("apply", "-auto-approve")
		if !strings.Contains(out, `vpc_id = "vpc-1"`) {
			t.Errorf("got %s", out)
		}
		if stored := out + readText(t, filepath.Join(p.dir, "terraform.tfstate")); strings.Contains(stored, "canary") {
			t.Errorf("a secret is stored, or shown:\n%s", stored)
		}
	})
}

// eachFolder runs the test on each folder of examples, which is named like a
// kind, and on none that has no store.
func eachFolder(t *testing.T, under string, test func(t *testing.T, dir string, place func(*testing.T, []byte) store)) {
	t.Helper()
	needAcceptance(t)
	t.Parallel()
	folders := glob(t, filepath.Join("..", "..", "examples", under, "*"))
	if len(folders) < len(stores())-2 { // kubernetes and local have their examples elsewhere
		t.Fatalf("there are only %q", folders)
	}
	for _, dir := range folders {
		kind := filepath.Base(dir)
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			place, ok := stores()[kind]
			if !ok {
				t.Fatal("nothing tests this folder")
			}
			test(t, dir, place)
		})
	}
}

// project is a configuration whose servers are those of the store.
func (s store) project(t *testing.T, files map[string]string) *project {
	t.Helper()
	files = maps.Clone(files)
	all := strings.Join(slices.Collect(maps.Values(files)), "")
	for from, to := range s.replace {
		if !strings.Contains(all, from) {
			t.Errorf("%q is not in the blocks", from)
		}
		for name, content := range files {
			files[name] = strings.ReplaceAll(content, from, to)
		}
	}
	variables := variablesOf(files)
	maps.Copy(files, s.files)
	p := newProject(t, files)
	if len(s.hosts) > 0 {
		p.env = cloudtest.New(t, s.hosts).Environ(p.env)
	}
	p.setenv(s.env...)
	for _, name := range variables {
		p.setenv("TF_VAR_" + name + "=" + exampleSecret)
	}
	p.setenv("TF_VAR_state_passphrase=the example's passphrase")
	return p
}

// variablesOf are the names of the variables that files use.
func variablesOf(files map[string]string) []string {
	names := map[string]bool{}
	for _, text := range files {
		for _, m := range regexp.MustCompile(`\bvar\.([a-z_]+)`).FindAllStringSubmatch(text, -1) {
			names[m[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func storeAzure(_ *testing.T, state []byte) store {
	account := azuretest.New("tfstate")
	account.Writes = true // the backend lists blobs
	account.SignIn = func(form url.Values) bool { return form.Get("client_secret") == exampleSecret }
	account.Put("tfstate", "network.tfstateenv:prod", azuretest.Blob{Data: state})
	return store{
		hosts:   map[string]http.Handler{"acmestates.blob.core.windows.net": account, "login.microsoftonline.com": account},
		replace: map[string]string{"00000000-0000-0000-0000-000000000001": azuretest.Tenant},
		env: []string{"ARM_CLIENT_ID=" + azuretest.ClientID, "ARM_CLIENT_SECRET=" + exampleSecret, "ARM_SUBSCRIPTION_ID=" +
			azuretest.Subscription},
	}
}

func storeConsul(_ *testing.T, state []byte) store {
	server := consultest.NewHandler()
	server.Tokens = map[string]consultest.Policy{exampleSecret: consultest.Everything}
	server.Writable = true // the backend lists keys
	server.Put("network", state)
	return store{hosts: map[string]http.Handler{"consul.example.com": server}}
}

func storeGCS(_ *testing.T, state []byte) store {
	service := gcstest.New("example-tf-states")
	service.Put("example-tf-states", "network/production.tfstate", gcstest.Object{Data: state})
	// Makes the caller another account.
	accounts := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("Authorization") != "Bearer "+exampleSecret ||
			!strings.Contains(r.URL.Path, "/state-reader@example-project.iam.gserviceaccount.com:") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"accessToken":%q,"expireTime":%q}`, gcstest.Token, time.Now().Add(time.Hour).Format(time.RFC3339))
	})
	return store{
		hosts: map[string]http.Handler{"storage.googleapis.com": service, "iamcredentials.googleapis.com": accounts},
		env:   []string{"GOOGLE_OAUTH_ACCESS_TOKEN=" + exampleSecret},
	}
}

// Each server knows one name, though GitLab's takes any.
func storeGit(t *testing.T, state []byte) store {
	t.Helper()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	var files []gittest.File
	for _, folder := range []string{"network", "dns", "lab"} {
		files = append(files, gittest.File{Path: folder + "/terraform.tfstate", Data: string(state)})
	}
	repo.Commit("refs/heads/main", files...)
	s := store{replace: map[string]string{}}
	for host, user := range map[string]string{"gitlab.example.com": "token", "github.com": "x-access-token", "gitea.example.com": "ci"} {
		s.replace["https://"+host] = gittest.HTTP(t, repo, gittest.HTTPOptions{Username: user, Password: exampleSecret}).Origin
	}
	return s
}

func storeHTTP(_ *testing.T, state []byte) store {
	hosts := map[string]http.Handler{}
	for place, user := range map[string]string{
		"state.example.com/network":                                     "ci",
		"gitlab.example.com/api/v4/projects/42/terraform/state/network": "token",
		"gitea.example.com/api/packages/acme/terraform/state/lab":       "ci",
	} {
		host, path, _ := strings.Cut(place, "/")
		hosts[host] = givesIf(state, "/"+path, func(r *http.Request) bool {
			name, password, _ := r.BasicAuth()
			return name == user && password == exampleSecret
		})
	}
	hosts["api.github.com"] = givesIf(state, "/repos/acme/infra/contents/dns/terraform.tfstate?ref=main", func(r *http.Request) bool {
		return r.Header.Get("Authorization") == "Bearer "+exampleSecret && r.Header.Get("Accept") == "application/vnd.github.raw+json"
	})
	return store{hosts: hosts}
}

func givesIf(state []byte, uri string, allowed func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.RequestURI() != uri || !allowed(r) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write(state)
	})
}

func storeKubernetes(t *testing.T, state []byte) store {
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
			"labels": map[string]string{"app.kubernetes.io/managed-by": "terraform", "tfstate": "true", "tfstateSecretSuffix": "network",
				"tfstateWorkspace": "default"},
		},
		"data": map[string][]byte{"tfstate": packed.Bytes()},
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Put(t, "/api/v1/namespaces/infra/secrets", secret)
	return store{replace: map[string]string{"~/.kube/config": filepath.ToSlash(exampleKubeconfig(t, server))}}
}

func storeLocal(_ *testing.T, state []byte) store {
	return store{
		replace: map[string]string{"../network/": "network/"},
		files:   map[string]string{"network/terraform.tfstate": string(state)},
	}
}

// OpenTofu 1.12 and Terraform 1.11 have no oci backend.
func storeOCI(t *testing.T, state []byte) store {
	t.Helper()
	return store{
		hosts: map[string]http.Handler{"acmenamespace.compat.objectstorage.eu-frankfurt-1.oraclecloud.com": bucket(t, "states",
			"network/terraform.tfstate", state)},
		newOnly: true,
	}
}

func storeCOS(t *testing.T, state []byte) store {
	t.Helper()
	objects := bucket(t, "acme-states-1250000000", "network/terraform.tfstate", state)
	return store{hosts: map[string]http.Handler{
		"acme-states-1250000000.cos.eu-frankfurt.myqcloud.com": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Cos-Meta-Md5", fmt.Sprintf("%x", md5.Sum(state))) // which the backend wants to see
			objects.ServeHTTP(w, r)
		}),
	}}
}

func storeOSS(t *testing.T, state []byte) store {
	t.Helper()
	objects := bucket(t, "acme-states", "network/terraform.tfstate", state)
	return store{hosts: map[string]http.Handler{
		"acme-states.oss-eu-central-1.aliyuncs.com":    objects, // the backend's
		"acme-states.s3.oss-eu-central-1.aliyuncs.com": objects,
	}}
}

// The backend makes a sequence when it reads, so its role may write.
func storePG(t *testing.T, state []byte) store {
	t.Helper()
	server := pgtest.New(t)
	server.Exec(t, "postgres", "CREATE DATABASE terraform")
	server.Exec(t, "terraform", "CREATE SEQUENCE public.global_states_id_seq AS bigint")
	for _, role := range []string{"state_reader", "ci"} { // of the example, and of the pair
		server.Exec(t, "terraform", "CREATE ROLE "+role+" SUPERUSER LOGIN PASSWORD '"+exampleSecret+"'")
	}
	for _, schema := range []string{"terraform_remote_state", "infra"} {
		server.Exec(t, "terraform", "CREATE SCHEMA "+schema+"; CREATE TABLE "+schema+
			".states (id bigint NOT NULL DEFAULT nextval('public.global_states_id_seq') PRIMARY KEY, name text UNIQUE, data text)")
		server.Value(t, "terraform", "INSERT INTO "+schema+".states (name, data) VALUES ('network', $1) RETURNING name", string(state))
	}
	return store{replace: map[string]string{
		"@db.example.com/":    "@127.0.0.1:" + server.Port + "/",
		"sslmode=verify-full": "sslmode=verify-full&sslrootcert=" + filepath.ToSlash(writeTemp(t, "ca.pem", []byte(server.Authority.PEM))),
	}}
}

func storeRemote(t *testing.T, state []byte) store {
	t.Helper()
	server := tfetest.New()
	// What the team of the example may do with states.
	policy := readText(t, filepath.Join("..", "..", "examples", "sources", "remote", "policy", "team.tf"))
	granted := regexp.MustCompile(`(?m)^ +state_versions += "(.*?)"`).FindStringSubmatch(policy)
	levels := map[string]tfetest.Access{"none": tfetest.None, "read-outputs": tfetest.Outputs, "read": tfetest.Read, "write": tfetest.Write}
	if len(granted) != 2 {
		t.Fatal("the policy says nothing of states")
	}
	server.Tokens = map[string]tfetest.Access{exampleSecret: levels[granted[1]]}
	server.Put("network", state)
	server.Put("network-prod", state)
	server.Put("dns", []byte(guideState))
	return store{hosts: map[string]http.Handler{"app.terraform.io": server}}
}

func storeS3(t *testing.T, state []byte) store {
	t.Helper()
	profiles := "[profile reader]\naws_access_key_id = AKIATEST\naws_secret_access_key = canary\n[profile minio]\naws_access_key_id = " +
		"AKIALAB\naws_secret_access_key = canary\n"
	sts := awskmstest.NewSTS(t)
	return store{
		hosts: map[string]http.Handler{
			"acme-tf-state.s3.eu-west-1.amazonaws.com": bucket(t, "acme-tf-state", "env:/prod/network/terraform.tfstate", state),
			"sts.eu-west-1.amazonaws.com":              sts,
			"minio.example.com":                        bucket(t, "lab-tf-state", "terraform.tfstate", []byte(guideState)),
		},
		env:     []string{"AWS_CONFIG_FILE=" + writeTemp(t, "config", []byte(profiles)), "AWS_PROFILE=reader"},
		newOnly: cliMinor() < 6, // whose s3 backend has no assume_role
	}
}

// bucket serves a bucket with one object: under a host of its own, or under a
// path of its name.
func bucket(t *testing.T, name, key string, data []byte) http.Handler {
	t.Helper()
	server := objecttest.New(name)
	server.Put(name, key, data)
	server.Writable.Store(true) // the backends of the CLIs do more than read an object
	server.Hosts = []string{"s3.eu-west-1.amazonaws.com", "cos.eu-frankfurt.myqcloud.com", "oss-eu-central-1.aliyuncs.com",
		"s3.oss-eu-central-1.aliyuncs.com"}
	return server
}
