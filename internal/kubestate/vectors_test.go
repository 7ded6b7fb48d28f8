package kubestate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"sigs.k8s.io/yaml"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

func decode(t *testing.T, attrs map[string]cty.Value) (*Object, error) {
	t.Helper()
	v, err := unstable.NewEntry("data.statecrypt_remote_state.test.object", Table(), attrs).Decode(Table(), nil)
	if err != nil {
		return nil, err
	}
	return New(v)
}

func open(t *testing.T, attrs map[string]cty.Value) *Object {
	t.Helper()
	o, err := decode(t, attrs)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func text(s string) cty.Value { return cty.StringVal(s) }

func texts(m map[string]string) cty.Value {
	out := map[string]cty.Value{}
	for k, v := range m {
		out[k] = text(v)
	}
	if len(out) == 0 {
		return cty.MapValEmpty(cty.String)
	}
	return cty.MapVal(out)
}

// vector is a case that the real controllers made.
type vector struct {
	Kind        string   `json:"kind"`
	CR          string   `json:"cr"`
	Secret      string   `json:"secret"`
	Secrets     []string `json:"secrets"`
	Expected    string   `json:"expected_tfstate"`
	StatusState string   `json:"status_state"`
	Knowledge   *struct {
		Type     string            `json:"terraform_type"`
		Schema   int64             `json:"schema_version"`
		Source   string            `json:"provider_source"`
		Version  string            `json:"terraform_version"`
		External string            `json:"external_name"`
		Fields   map[string]string `json:"field_names (CR -> tf)"`
		Secret   map[string]string `json:"sensitive_mapping (tf attribute -> CR path)"`
	} `json:"needed_knowledge"`

	name, dir string
}

func vectors(t *testing.T) []vector {
	t.Helper()
	files, err := filepath.Glob("testdata/*/case.json")
	if err != nil || len(files) != 8 {
		t.Fatalf("found %d vectors, want 8: %v", len(files), err)
	}
	var all []vector
	for _, file := range files {
		v := vector{dir: filepath.Dir(file), name: filepath.Base(filepath.Dir(file))}
		if err := json.Unmarshal(read(t, file), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// attrs is what a user writes for the object of the case.
func (v vector) attrs(t *testing.T) map[string]cty.Value {
	t.Helper()
	cr := v.objects(t)[0]
	var o object
	if err := json.Unmarshal(cr, &o); err != nil {
		t.Fatal(err)
	}
	attrs := map[string]cty.Value{
		"api_version": text(o.text("apiVersion")), "kind": text(o.text("kind")), "name": text(o.text("metadata", "name")),
	}
	if ns := o.text("metadata", "namespace"); ns != "" {
		attrs["namespace"] = text(ns)
	}
	if k := v.Knowledge; k != nil {
		attrs["resource_type"], attrs["provider_source"], attrs["terraform_version"] = text(k.Type), text(k.Source), text(k.Version)
		if k.External == "name as identifier" {
			attrs["identifier_attribute"] = text("name")
		}
	}
	return attrs
}

// objects are the files of the case: the object, then its secrets.
func (v vector) objects(t *testing.T) [][]byte {
	t.Helper()
	names := append([]string{v.CR}, v.Secrets...)
	if v.Secret != "" {
		names = append(names, v.Secret)
	}
	var out [][]byte
	for _, name := range names {
		out = append(out, read(t, filepath.Join(v.dir, name)))
	}
	return out
}

func list(objects [][]byte) []byte {
	var items []string
	for _, o := range objects {
		items = append(items, string(o))
	}
	return []byte(`{"apiVersion": "v1", "kind": "List", "items": [` + strings.Join(items, ",") + `]}`)
}

func stream(t *testing.T, objects [][]byte) []byte {
	t.Helper()
	var b strings.Builder
	for _, o := range objects {
		y, err := yaml.JSONToYAML(o)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n# of the case\n" + string(y))
	}
	return []byte(b.String() + "---\n")
}

func documents(objects [][]byte) []byte {
	var all []byte
	for _, o := range objects {
		all = append(append(all, o...), '\n')
	}
	return all
}

func (v vector) check(t *testing.T, got []byte) {
	t.Helper()
	if v.StatusState != "" {
		if want := read(t, filepath.Join(v.dir, v.StatusState)); string(got) != string(want) {
			t.Errorf("got %d bytes, want the %d of status.state", len(got), len(want))
		}
		return
	}
	unmarked, _ := marks(t, got)
	sameJSON(t, unmarked, read(t, filepath.Join(v.dir, v.Expected)))
}

// marks takes the list of sensitive attributes out of a state, which the real
// controllers do not write.
func marks(t *testing.T, state []byte) (unmarked []byte, paths string) {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(state, &doc); err != nil {
		t.Fatal(err)
	}
	instance := doc["resources"].([]any)[0].(map[string]any)["instances"].([]any)[0].(map[string]any)
	list, err := json.Marshal(instance["sensitive_attributes"])
	if err != nil {
		t.Fatal(err)
	}
	delete(instance, "sensitive_attributes")
	unmarked, err = json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return unmarked, string(list)
}

// What comes from a secret is marked as sensitive, and nothing else is.
func TestSensitiveAttributes(t *testing.T) {
	names := func(names ...string) string {
		var paths []string
		for _, name := range names {
			paths = append(paths, `[{"type":"get_attr","value":"`+name+`"}]`)
		}
		return "[" + strings.Join(paths, ",") + "]"
	}
	want := map[string]string{
		"kubeform_resource_cluster":      names("password", "private_uri", "uri"),
		"kubeform_resource_no_secretref": "[]",
		"kubeform_resource_user":         names("password"),
		"terrajet_minimal":               "[]",
		"terrajet_project": `[[{"type":"get_attr","value":"admin_password"}],` +
			`[{"type":"get_attr","value":"nested"},{"type":"index","value":{"type":"number","value":0}},{"type":"get_attr","value":"token"}],` +
			`[{"type":"get_attr","value":"private_key"}]]`,
	}
	for _, v := range vectors(t) {
		if v.StatusState != "" {
			continue
		}
		got, err := open(t, v.attrs(t)).File(list(v.objects(t)), meter.New(0))
		if err != nil {
			t.Fatal(err)
		}
		if _, paths := marks(t, got); paths != want[v.name] {
			t.Errorf("%s: got %s", v.name, paths)
		}
	}
}

func TestSensitivePaths(t *testing.T) {
	m := marker{cost: meter.New(0)}
	if err := m.mark(map[string]any{
		"a": []any{"open", map[string]any{"b": fromSecret{"s"}, "c": "open"}},
		"d": map[string]any{"k": fromSecret{map[string]any{"l": "s"}}},
	}); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(m.paths)
	want := `[[{"type":"get_attr","value":"a"},{"type":"index","value":{"type":"number","value":1}},{"type":"get_attr","value":"b"}],` +
		`[{"type":"get_attr","value":"d"},{"type":"get_attr","value":"k"}]]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func sameJSON(t *testing.T, got, want []byte) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want, &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What the real controllers wrote, or what the real encoder made, comes back,
// from every form of manifest.
func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.name, func(t *testing.T) {
			o, objects := open(t, v.attrs(t)), v.objects(t)
			reversed := [][]byte{}
			for _, one := range objects {
				reversed = append([][]byte{one}, reversed...)
			}
			for form, manifest := range map[string][]byte{
				"List": list(objects), "YAML stream": stream(t, objects), "JSON documents": documents(objects), "reversed": stream(t, reversed),
				"list in list": list([][]byte{list(objects)}), "YAML and JSON": append(stream(t, objects[:1]), documents(objects[1:])...),
			} {
				t.Run(form, func(t *testing.T) {
					got, err := o.File(manifest, meter.New(0))
					if err != nil {
						t.Fatal(err)
					}
					v.check(t, got)
				})
			}
			if len(objects) == 1 {
				got, err := o.File(objects[0], meter.New(0))
				if err != nil {
					t.Fatal(err)
				}
				v.check(t, got)
			}
		})
	}
}

// What can be derived may also be written, and gives the same.
func TestVectorsWithAllKnowledge(t *testing.T) {
	for _, v := range vectors(t) {
		if v.Knowledge == nil {
			continue
		}
		attrs := v.attrs(t)
		attrs["schema_version"] = cty.NumberIntVal(v.Knowledge.Schema)
		attrs["field_names"], attrs["sensitive_fields"] = texts(v.Knowledge.Fields), texts(v.Knowledge.Secret)
		got, err := open(t, attrs).File(list(v.objects(t)), meter.New(0))
		if err != nil {
			t.Fatalf("%s: %v", v.name, err)
		}
		v.check(t, got)
	}
}

// answers is a server that has the objects of a case, and notes what it is
// asked for.
func (v vector) answers(t *testing.T, asked *[]SecretRef) func(SecretRef) ([]byte, error) {
	return func(ref SecretRef) ([]byte, error) {
		*asked = append(*asked, ref)
		for _, one := range v.objects(t)[1:] {
			var o object
			if err := json.Unmarshal(one, &o); err != nil {
				t.Fatal(err)
			}
			if ref.means(o) {
				return one, nil
			}
		}
		return nil, nil
	}
}

// From a server the same comes as from a manifest, and the secrets that are
// asked for are those that the case has, but for the one that Kubeform does not
// read back.
func TestStatesOfVectors(t *testing.T) {
	want := map[string][]SecretRef{
		"kubeform_resource_user":    {{Namespace: "demo", Name: "sens"}},
		"kubeform_resource_cluster": {{Namespace: "demo", Name: "sens"}},
		"terrajet_project":          {{"crossplane-system", "in-secret", true}, {"crossplane-system", "conn", true}},
	}
	for _, v := range vectors(t) {
		var asked []SecretRef
		got, _, err := open(t, v.attrs(t)).State(v.objects(t)[0], v.answers(t, &asked))
		if err != nil {
			t.Fatalf("%s: %v", v.name, err)
		}
		if !reflect.DeepEqual(asked, want[v.name]) {
			t.Errorf("%s: asked for %v, want %v", v.name, asked, want[v.name])
		}
		v.check(t, got)
	}
}
