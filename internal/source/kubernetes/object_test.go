package kubernetes

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/kubestate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes/kubetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

const vectors = "../../kubestate/testdata"

func vector(t *testing.T, parts ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{vectors}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The objects of the vectors, as a user names them.
var (
	project = attrs{
		"api_version": text("mongodbatlas.jet.crossplane.io/v1alpha1"), "kind": text("Project"), "name": text("my-public"),
		"resource_type": text("mongodbatlas_project"), "provider_source": text("mongodb/mongodbatlas"), "terraform_version": text("1.1.6"),
		"identifier_attribute": text("name"),
	}
	user = attrs{
		"api_version": text("digitalocean.kubeform.com/v1alpha1"), "kind": text("DatabaseUser"), "name": text("app"), "namespace": text("demo"),
	}
)

const (
	projects   = "/apis/mongodbatlas.jet.crossplane.io/v1alpha1"
	kubeSystem = "/api/v1/namespaces/crossplane-system/secrets"
	users      = "/apis/digitalocean.kubeform.com/v1alpha1"
)

// cluster is a server with the objects of two vectors.
func cluster(t *testing.T) *kubetest.Server {
	s := kubetest.New(t)
	s.AddKind("mongodbatlas.jet.crossplane.io", "v1alpha1", "projects", "Project", false)
	s.Put(t, projects+"/projects", vector(t, "terrajet_project", "cr.json"))
	s.Put(t, kubeSystem, vector(t, "terrajet_project", "secret_in-secret.json"))
	s.Put(t, kubeSystem, vector(t, "terrajet_project", "secret_conn.json"))
	s.AddKind("digitalocean.kubeform.com", "v1alpha1", "databaseusers", "DatabaseUser", true)
	s.Put(t, users+"/namespaces/demo/databaseusers", vector(t, "kubeform_resource_user", "cr.json"))
	s.Put(t, "/api/v1/namespaces/demo/secrets", vector(t, "kubeform_resource_user", "secret.json"))
	return s
}

func objectOf(t *testing.T, a attrs, more attrs) *kubestate.Object {
	t.Helper()
	all := attrs{}
	for _, m := range []attrs{a, more} {
		for k, v := range m {
			all[k] = v
		}
	}
	return decoded(t, all)
}

func openObject(t *testing.T, s *kubetest.Server, o *kubestate.Object) source.Source {
	t.Helper()
	r := request(t, attrs{}, nil)
	r.Object = o
	src, err := Kind().Start(settingsOf(access(s)))(r)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// sameState compares with what a controller wrote, which does not say what is
// sensitive.
func sameState(t *testing.T, got, want []byte) {
	t.Helper()
	var a, b struct {
		Version, Serial int
		Lineage         string
		Resources       []struct {
			Type, Provider string
			Instances      []struct {
				Attributes map[string]any
				Private    string
			}
		}
	}
	if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil || !reflect.DeepEqual(a, b) || len(a.Resources) != 1 {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The server refuses whatever is not a GET of what the state needs, and the
// state is still read.
func TestObject(t *testing.T) {
	for name, c := range map[string]struct {
		attrs, more attrs
		want        []string
		expected    string
	}{
		"Crossplane": {project, nil, []string{projects, projects + "/projects/my-public", kubeSystem + "/in-secret", kubeSystem + "/conn"},
			"terrajet_project"},
		"with resource": {project, attrs{"resource": text("projects")},
			[]string{projects + "/projects/my-public", kubeSystem + "/in-secret", kubeSystem + "/conn"}, "terrajet_project"},
		"Kubeform": {user, nil, []string{users, users + "/namespaces/demo/databaseusers/app", "/api/v1/namespaces/demo/secrets/sens"},
			"kubeform_resource_user"},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster(t)
			s.Allows = func(method, path string) bool { return method == "GET" && slices.Contains(c.want, path) }
			o := objectOf(t, c.attrs, c.more)
			snap := sourcetest.Fetch(t, openObject(t, s, o))
			sameState(t, snap.Data, vector(t, c.expected, "expected_tfstate.json"))
			var want []string
			for _, path := range c.want {
				want = append(want, "GET "+path)
			}
			if got := s.Requests(); !slices.Equal(got, want) {
				t.Errorf("asked for %q, want %q", got, want)
			}
			if snap.Revision == "" {
				t.Error("there is no revision")
			}
		})
	}
}

func TestModule(t *testing.T) {
	s := kubetest.New(t)
	cr := vector(t, "kubeform_module_zoo", "cr.json")
	var meta struct {
		APIVersion, Kind string
		Metadata         struct{ Name, Namespace string }
	}
	if err := json.Unmarshal(cr, &meta); err != nil {
		t.Fatal(err)
	}
	s.AddKind("modules.kubeform.com", strings.TrimPrefix(meta.APIVersion, "modules.kubeform.com/"), "things", meta.Kind, true)
	collection := "/apis/" + meta.APIVersion + "/namespaces/" + meta.Metadata.Namespace + "/things"
	s.Put(t, collection, cr)
	o := objectOf(t, attrs{"api_version": text(meta.APIVersion), "kind": text(meta.Kind), "name": text(meta.Metadata.Name),
		"namespace": text(meta.Metadata.Namespace)}, nil)
	src := openObject(t, s, o)
	if got := sourcetest.Fetch(t, src).Data; !bytes.Equal(got, vector(t, "kubeform_module_zoo", "status_state.txt")) {
		t.Errorf("got %d bytes", len(got))
	}

	// A module that was never applied has no state.
	var fresh map[string]any
	if err := json.Unmarshal(cr, &fresh); err != nil {
		t.Fatal(err)
	}
	delete(fresh, "status")
	data, _ := json.Marshal(fresh)
	s.Put(t, collection, data)
	err := fails(t, src)
	sourcetest.OpenMistakes(t, "kubernetes, no state of an object").Error(t, "yet", err)
	if _, ok := source.IsMissing(err); !ok {
		t.Error("want a MissingError")
	}
}

// Crossplane goes on without a secret, and Kubeform does not.
func TestMissingSecrets(t *testing.T) {
	s := kubetest.New(t)
	s.AddKind("mongodbatlas.jet.crossplane.io", "v1alpha1", "projects", "Project", false)
	s.Put(t, projects+"/projects", vector(t, "terrajet_project", "cr.json"))
	o := objectOf(t, project, nil)
	state := sourcetest.Fetch(t, openObject(t, s, o)).Data
	for _, part := range []string{`"admin_password":""`, `"org_id":"o1-observed"`} {
		if !strings.Contains(string(state), part) {
			t.Errorf("%s is not in %s", part, state)
		}
	}
	if strings.Contains(string(state), "private_key") {
		t.Errorf("there is no connection secret, but %s", state)
	}

	s.AddKind("digitalocean.kubeform.com", "v1alpha1", "databaseusers", "DatabaseUser", true)
	s.Put(t, users+"/namespaces/demo/databaseusers", vector(t, "kubeform_resource_user", "cr.json"))
	err := fails(t, openObject(t, s, objectOf(t, user, nil)))
	sourcetest.OpenMistakes(t, "kubernetes, no secret of an object").Error(t, "sens", err)
	if _, ok := source.IsMissing(err); ok {
		t.Error("a secret that is not there does not show that there is no state")
	}
}

func TestObjectErrors(t *testing.T) {
	missing := func(name string) attrs { return attrs{"name": text(name)} }
	says := sourcetest.OpenMistakes(t, "kubernetes, objects")
	for name, c := range map[string]struct {
		attrs, more attrs
		change      func(*kubetest.Server)
		missing     bool
	}{
		"missing":               {user, missing("other"), nil, true},
		"missing, by resource":  {project, attrs{"name": text("other"), "resource": text("projects")}, nil, true},
		"no such API":           {user, attrs{"api_version": text("none.kubeform.com/v1")}, nil, false},
		"no such kind":          {user, attrs{"kind": text("Other")}, nil, false},
		"no such resource":      {user, attrs{"resource": text("others")}, nil, false},
		"namespace is missing":  {user, attrs{"namespace": cty.NullVal(cty.String)}, nil, false},
		"namespace is too much": {project, attrs{"namespace": text("demo")}, nil, false},
		"discovery forbidden": {user, nil, func(s *kubetest.Server) {
			s.Allows = func(_, path string) bool { return path != users }
		}, false},
		"object forbidden": {user, nil, func(s *kubetest.Server) {
			s.Allows = func(_, path string) bool { return path == users }
		}, false},
		"cluster object forbidden": {project, attrs{"resource": text("projects")}, func(s *kubetest.Server) {
			s.Allows = func(string, string) bool { return false }
		}, false},
		"secret forbidden": {project, nil, func(s *kubetest.Server) {
			s.Allows = func(_, path string) bool { return path != kubeSystem+"/conn" }
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster(t)
			if c.change != nil {
				c.change(s)
			}
			err := fails(t, openObject(t, s, objectOf(t, c.attrs, c.more)))
			says.Error(t, name, err)
			if _, ok := source.IsMissing(err); ok != c.missing {
				t.Errorf("missing is %v: %v", ok, err)
			}
		})
	}
}

// An object that any tenant can write cannot make the reader fetch secrets of
// another namespace.
//
// Promise: Objects of others
func TestForeignSecret(t *testing.T) {
	s := kubetest.New(t)
	s.AddKind("aws.m.upbound.io", "v1beta1", "instances", "Instance", true)
	s.PutSecret("kube-system", "root", map[string][]byte{"password": []byte("taken")})
	s.Put(t, "/apis/aws.m.upbound.io/v1beta1/namespaces/tenant/instances",
		[]byte(`{"apiVersion": "aws.m.upbound.io/v1beta1", "kind": "Instance",
		"metadata": {"name": "db", "namespace": "tenant", "annotations": {"crossplane.io/external-name": "db"}},
		"spec": {"forProvider": {"passwordSecretRef": {"name": "root", "namespace": "kube-system", "key": "password"}}}}`))
	o := objectOf(t, attrs{"api_version": text("aws.m.upbound.io/v1beta1"), "kind": text("Instance"), "name": text("db"),
		"namespace":     text("tenant"),
		"resource_type": text("aws_db_instance")}, nil)
	sourcetest.OpenMistakes(t, "kubernetes, the namespace of an object").Error(t, "another", fails(t, openObject(t, s, o)))
	for _, r := range s.Requests() {
		if strings.Contains(r, "kube-system") {
			t.Errorf("asked for %s", r)
		}
	}
}

func TestObjectTooLarge(t *testing.T) {
	s := cluster(t)
	r := request(t, attrs{}, nil)
	r.Object, r.MaxSize = objectOf(t, project, nil), 1000
	src, err := Kind().Start(settingsOf(access(s)))(r)
	if err != nil {
		t.Fatal(err)
	}
	fails(t, src, meter.TooLarge(1000).Error())
}

func TestStringOfObject(t *testing.T) {
	s := cluster(t)
	if got := openObject(t, s, objectOf(t, user, nil)).String(); got != "DatabaseUser demo/app (digitalocean.kubeform.com/v1alpha1) in "+
		"Kubernetes" {
		t.Errorf("got %s", got)
	}
}
