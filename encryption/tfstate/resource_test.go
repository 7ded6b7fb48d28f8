package tfstate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// shown is a module as "show -json" prints it.
type shown struct {
	Resources []struct {
		Address       string          `json:"address"`
		Mode          string          `json:"mode"`
		Type          string          `json:"type"`
		Provider      string          `json:"provider_name"`
		SchemaVersion uint64          `json:"schema_version"`
		Values        json.RawMessage `json:"values"`
		Sensitive     json.RawMessage `json:"sensitive_values"`
	} `json:"resources"`
	Modules []shown `json:"child_modules"`
}

// Real states, against what the programs that wrote them show of them.
func TestResourceVectors(t *testing.T) {
	for _, program := range []string{"opentofu", "terraform"} {
		t.Run(program, func(t *testing.T) {
			s := parsed(t, readFile(t, program+".tfstate"))
			var doc struct {
				Values struct {
					Root shown `json:"root_module"`
				} `json:"values"`
			}
			decode(t, readFile(t, program+".show.json"), &doc)
			if n := compareModule(t, s, doc.Values.Root); n != 19 {
				t.Errorf("compared %d resources", n)
			}
		})
	}
}

func compareModule(t *testing.T, s *State, m shown) int {
	n := len(m.Resources)
	for _, inner := range m.Modules {
		n += compareModule(t, s, inner)
	}
	for _, want := range m.Resources {
		a := want.Address
		r, err := s.Resource(a)
		if err != nil {
			t.Error(err)
			continue
		}
		if r.Mode != want.Mode || r.Type != want.Type || r.Provider != want.Provider || *r.SchemaVersion != want.SchemaVersion || r.Size() == 0 {
			t.Errorf("%s: got %+v", a, r)
		}
		open, sensitive, err := r.Values()
		if err != nil {
			t.Error(err)
			continue
		}
		var values, marked any
		decode(t, want.Values, &values)
		decode(t, want.Sensitive, &marked)
		openJSON, sensitiveJSON := asJSON(t, open), asJSON(t, sensitive)
		if got := unwrapped(merge(openJSON, sensitiveJSON)); !same(got, values) {
			t.Errorf("%s: got\n%v\nwant\n%v", a, got, values)
		}
		wantNull(t, want.Address, unwrapped(openJSON), marked)
		if strings.Contains(string(want.Values), "s3cr3t") != strings.Contains(fmt.Sprint(sensitiveJSON), "s3cr3t") {
			t.Errorf("%s: sensitive: %v", a, sensitiveJSON)
		}
	}
	return n
}

func asJSON(t testing.TB, v cty.Value) any {
	text, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// merge lays the sensitive values over the others: the reverse of split.
func merge(open, sensitive any) any {
	switch s := sensitive.(type) {
	case map[string]any:
		o, ok := open.(map[string]any)
		if !ok {
			return s
		}
		all := map[string]any{}
		for k, v := range o {
			all[k] = v
		}
		for k, v := range s {
			all[k] = merge(o[k], v)
		}
		return all
	case []any:
		o, ok := open.([]any)
		if !ok {
			return s
		}
		all := make([]any, len(o))
		for i := range o {
			all[i] = merge(o[i], s[i])
		}
		return all
	case nil:
		return open
	}
	return sensitive
}

// unwrapped takes values of dynamic type out of their wrappers, as "show" does.
func unwrapped(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if inner, ok := v["value"]; ok && len(v) == 2 && v["type"] != nil {
			return inner
		}
		all := map[string]any{}
		for k, inner := range v {
			all[k] = unwrapped(inner)
		}
		return all
	}
	return v
}

// wantNull checks that what is marked true is null, or stands in something that is.
func wantNull(t *testing.T, place string, v, marked any) {
	switch m := marked.(type) {
	case bool:
		if m && v != nil {
			t.Errorf("%s is sensitive, and given: %v", place, v)
		}
	case map[string]any:
		for k, inner := range m {
			if o, ok := v.(map[string]any); ok {
				wantNull(t, place+"."+k, o[k], inner)
			}
		}
	case []any:
		for i, inner := range m {
			if o, ok := v.([]any); ok {
				wantNull(t, fmt.Sprint(place, i), o[i], inner)
			}
		}
	}
}

func readFile(t testing.TB, name string) []byte {
	file, err := os.ReadFile(filepath.Join("testdata", "resources", name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func parsed(t testing.TB, file []byte) *State {
	s, err := Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// valuesAt reads the resource at an address.
func valuesAt(s *State, address string) (open, sensitive cty.Value, err error) {
	r, err := s.Resource(address)
	if err != nil {
		return open, sensitive, err
	}
	return r.Values()
}

// All instances: a tuple in which each has its index, or an object by key.
func TestAllInstances(t *testing.T) {
	s := parsed(t, readFile(t, "opentofu.tfstate"))
	open, sensitive, err := valuesAt(s, `module.net["a"].terraform_data.counted`)
	if err != nil || !open.Type().IsTupleType() || open.LengthInt() != 3 {
		t.Fatalf("got %#v, %v", open, err)
	}
	for i := range 3 {
		one := open.Index(cty.NumberIntVal(int64(i)))
		if i == 1 { // it was removed from the state
			if !one.IsNull() || !sensitive.Index(cty.NumberIntVal(1)).IsNull() {
				t.Errorf("got %#v", one)
			}
			continue
		}
		if got := one.GetAttr("input").GetAttr("value").GetAttr("i"); !got.RawEquals(cty.NumberIntVal(int64(i))) {
			t.Errorf("%d: got %#v", i, got)
		}
	}
	open, sensitive, err = valuesAt(s, `module.net["b/\u00fc.$${q}\""].terraform_data.keyed`)
	if err != nil || !open.Type().IsObjectType() || open.LengthInt() != 2 || sensitive.LengthInt() != 2 {
		t.Fatalf("got %#v, %v", open, err)
	}
	if got := open.GetAttr("a").GetAttr("triggers_replace"); !got.IsNull() {
		t.Errorf("got %#v", got)
	}
	got := sensitive.GetAttr("a").GetAttr("triggers_replace").GetAttr("value").GetAttr("password")
	if !got.RawEquals(cty.StringVal("s3cr3t-canary")) {
		t.Errorf("got %#v", got)
	}
	if got := sensitive.GetAttr("b/ü.${q}\""); !got.RawEquals(cty.EmptyObjectVal) {
		t.Errorf("got %#v", got)
	}
}

func withInstances(instances string) []byte {
	return []byte(`{"version":4,"resources":[{"mode":"managed","type":"x","name":"y","provider":"provider[\"a/b/c\"]","instances":` +
		instances + `}]}`)
}

func TestResource(t *testing.T) {
	for name, c := range map[string]struct{ instances, address, want string }{
		"deposed":        {`[{"deposed":"d","attributes":{"a":1}},{"attributes":{"a":2},"status":"tainted","private":"p"}]`, "x.y", `{"a":2}`},
		"deposed by key": {`[{"index_key":0,"deposed":"d","attributes":{"a":1}},{"index_key":0,"attributes":{"a":2}}]`, "x.y[0]", `{"a":2}`},
		"one of one":     {`[{"index_key":"k","attributes":{"a":2}}]`, "x.y", `{"k":{"a":2}}`},
		"unordered":      {`[{"index_key":1,"attributes":{"a":1}},{"index_key":0,"attributes":{"a":0}}]`, "x.y", `[{"a":0},{"a":1}]`},
		"null key":       {`[{"index_key":null,"attributes":{"a":2}}]`, "x.y", `{"a":2}`},
		"the only one":   {`[{"attributes":{"a":2}}]`, "", `{"a":2}`},
		"exact numbers":  {`[{"attributes":{"a":12345678901234567890.123}}]`, "x.y", `{"a":12345678901234567890.123}`},
		"no attributes":  {`[{"attributes":{}}]`, "x.y", `{}`},
		"other attribute": {`[{"attributes":{"a":null,"b":[{}],"type":"t"},"dependencies":["d"],"identity":{"i":1}}]`, "x.y",
			`{"a":null,"b":[{}],"type":"t"}`},
	} {
		open, sensitive, err := valuesAt(parsed(t, withInstances(c.instances)), c.address)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var want any
		decode(t, []byte(c.want), &want)
		if got := asJSON(t, open); !same(got, want) || strings.Contains(fmt.Sprint(asJSON(t, sensitive)), "a:") {
			t.Errorf("%s: got %v and %v", name, got, asJSON(t, sensitive))
		}
	}
}

func TestResourceErrors(t *testing.T) {
	twice := `{"version":4,"resources":[{"mode":"managed","type":"x","name":"y","instances":[]},{"mode":"managed","type":"x","name":"y","instances":[]}]}`
	one := func(instances string) string { return string(withInstances(instances)) }
	state, says := string(readFile(t, "terraform.tfstate")), golden(t, "resources")
	for name, c := range map[string]struct{ state, address string }{
		"misspelt":         {state, `terraform_data.singel`},
		"other module":     {state, `terraform_data.counted`},
		"other mode":       {state, `module.net["a"].terraform_remote_state.other`},
		"misspelt module":  {state, `module.nett["a"].data.terraform_remote_state.other[0]`},
		"missing index":    {state, `module.net["a"].terraform_data.counted[1]`},
		"kind of key":      {state, `module.net["a"].terraform_data.counted["0"]`},
		"needless key":     {state, `terraform_data.single[0]`},
		"which one":        {state, ``},
		"none":             {`{"version":4,"resources":[]}`, ``},
		"no list":          {`{"version":4}`, `x.y`},
		"of another kind":  {state, `other.thing`},
		"version 3":        {`{"version":3,"modules":[]}`, `x.y`},
		"version 1":        {`{"version":1}`, ``},
		"no instances":     {one(`[]`), `x.y`},
		"null instances":   {one(`null`), `x.y`},
		"null instance":    {one(`[null]`), `x.y`},
		"only deposed":     {one(`[{"deposed":"d","attributes":{}}]`), `x.y`},
		"flat":             {one(`[{"attributes_flat":{"id":"c4n4ry"}}]`), `x.y`},
		"no attributes":    {one(`[{"schema_version":0}]`), `x.y`},
		"list":             {one(`[{"attributes":["c4n4ry"]}]`), `x.y`},
		"same key twice":   {one(`[{"attributes":{"c4n4ry":1,"c4n4ry":"x"}}]`), `x.y`},
		"kinds of keys":    {one(`[{"attributes":{}},{"index_key":0,"attributes":{}}]`), `x.y`},
		"same instance":    {one(`[{"index_key":"a","attributes":{}},{"index_key":"a","attributes":{}}]`), `x.y["a"]`},
		"negative key":     {one(`[{"index_key":-1,"attributes":{}}]`), `x.y`},
		"large key":        {one(`[{"index_key":999999999999,"attributes":{}}]`), `x.y`},
		"bool for a key":   {one(`[{"index_key":true,"attributes":{}}]`), `x.y`},
		"gap":              {one(`[{"index_key":2000000000,"attributes":{}}]`), `x.y`},
		"schema version":   {one(`[{"schema_version":-1,"attributes":{}}]`), `x.y`},
		"no paths":         {one(`[{"attributes":{"a":"c4n4ry"},"sensitive_attributes":{"c4n4ry":1}}]`), `x.y`},
		"kind of step":     {one(`[{"attributes":{"a":"c4n4ry"},"sensitive_attributes":[[{"type":"c4n4ry","value":"a"}]]}]`), `x.y`},
		"attribute number": {one(`[{"attributes":{"a":"c4n4ry"},"sensitive_attributes":[[{"type":"get_attr","value":1}]]}]`), `x.y`},
		"index string":     {one(`[{"attributes":{"a":"c4n4ry"},"sensitive_attributes":[[{"type":"index","value":"c4n4ry"}]]}]`), `x.y`},
		"number":           {one(`[{"attributes":{"size":1e999999}}]`), `x.y`},
		"twice":            {twice, `x.y`},
		"deep":             {one(`[{"attributes":{"a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}}]`), `x.y`},
		"much": {one(`[{"attributes":{"a":` + strings.Repeat("[", 900) + strings.Repeat("1,", 30_000) + "1" + strings.Repeat("]", 900) +
			`}}]`), `x.y`},
		"escapes": {strings.ReplaceAll(twice, `"y"`, `"y\u001b[31m"`), `x.z`},
	} {
		_, _, err := valuesAt(parsed(t, []byte(c.state)), c.address)
		says.Error(t, name, err)
	}
}

func TestResourcesNotInForm(t *testing.T) {
	says := golden(t, "resources that are none")
	for _, text := range []string{`"x"`, `{}`, `[1]`, `[null]`, `[{}]`, `[{"mode":"managed","type":"x"}]`,
		`[{"mode":1,"type":"x","name":"y"}]`} {
		s, err := Parse([]byte(`{"version":4,"resources":` + text + `}`))
		if err != nil {
			t.Errorf("%s: who reads outputs is not concerned: %v", text, err)
			continue
		}
		for n := range 2 {
			_, err = s.Resource("x.y")
			says.Error(t, fmt.Sprintf("%s, time %d", text, n+1), err)
		}
	}
	for _, text := range []string{`null`, `[]`, `[{"mode":"later","type":"x","name":"y"}]`} {
		s := parsed(t, []byte(`{"version":4,"resources":`+text+`}`))
		_, err := s.Resource("")
		says.Error(t, text, err)
	}
}

// A copy without resources does not keep the file in memory.
func TestCopyKeepsNoFile(t *testing.T) {
	file := withResources(1 << 20)
	gone := weak.Make(&file[0])
	s := parsed(t, file)
	kept := s.WithoutResources()
	says := golden(t, "copies")
	_, err := s.Resource("x.y")
	says.Error(t, "of all", err)
	runtime.GC()
	if gone.Value() != nil {
		t.Error("the file is still there")
	}
	if v, err := kept.Outputs["a"].Value(); err != nil || v != cty.StringVal("v") {
		t.Errorf("got %#v, %v", v, err)
	}
	_, err = kept.Resource("x.y")
	says.Error(t, "without the resources", err)
}

func TestTooManyInstances(t *testing.T) {
	testkit.OneGoroutine(t)
	many := func(n int) *State {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, `{"index_key":%d,"attributes":{}},`, i)
		}
		return parsed(t, withInstances("["+strings.TrimSuffix(all.String(), ",")+"]"))
	}
	if _, _, err := valuesAt(many(maxInstances), "x.y[7]"); err != nil {
		t.Error(err)
	}
	_, _, err := valuesAt(many(maxInstances+1), "x.y[7]")
	golden(t, "instances").Error(t, "too many", err)
}

func TestMarked(t *testing.T) {
	for instances, want := range map[string]bool{
		`[{"attributes":{}}]`:                             false,
		`[{"attributes":{},"sensitive_attributes":null}]`: false,
		`[{"attributes":{},"sensitive_attributes":[]}]`:   true,
		`[{"index_key":0,"attributes":{},"sensitive_attributes":[]},{"index_key":1,"attributes":{}}]`: false,
	} {
		if r, err := parsed(t, withInstances(instances)).Resource("x.y"); err != nil || r.Marked() != want {
			t.Errorf("%s: got %v, %v", instances, !want, err)
		}
	}
}

func TestSchemaVersionsDiffer(t *testing.T) {
	s := parsed(t, withInstances(`[{"index_key":0,"schema_version":1,"attributes":{}},{"index_key":1,"schema_version":2,"attributes":{}}]`))
	if r, err := s.Resource("x.y"); err != nil || r.SchemaVersion != nil {
		t.Errorf("got %v, %v", r, err)
	}
	if r, err := s.Resource("x.y[1]"); err != nil || *r.SchemaVersion != 2 {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestResourceErrorsNeverShowValues(t *testing.T) {
	testkit.OneGoroutine(t)
	const canary = "c4n4ry"
	file := []byte(`{"version":4,"resources":[{"mode":"managed","type":"x","name":"y","provider":"provider[\"a\"]","instances":[
		{"index_key":0,"schema_version":0,"attributes":{"id":"i","n":42,"l":[true,null],"m":{"k":{"j":"v"}}},
		"sensitive_attributes":[[{"type":"get_attr","value":"m"},{"type":"index","value":{"value":"k","type":"string"}}]]}]}]}`)
	failed := 0
	for i := range file {
		for _, text := range []string{`"` + canary + `"`, `"` + canary + `",`, `"` + canary + `":`, canary} {
			changed := append(append(bytes.Clone(file[:i]), text...), file[i:]...)
			replaced := append(append(bytes.Clone(file[:i]), text...), after(file[i:])...)
			for _, one := range [][]byte{changed, replaced} {
				s, err := Parse(one)
				if err == nil {
					_, _, err = valuesAt(s, "x.y[0]")
				}
				if err == nil {
					continue
				}
				failed++
				// Keys of instances and names of resources are no secrets.
				if got := err.Error(); strings.Contains(got, canary) && !strings.Contains(got, "it has") && !strings.Contains(got, "twice") &&
					!strings.Contains(got, `at ."`) {
					t.Errorf("%v", err)
				}
			}
		}
	}
	if failed < 500 {
		t.Errorf("only %d errors were seen", failed)
	}
}

func BenchmarkParseResources(b *testing.B) {
	file := withResources(10 << 20)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		s, err := Parse(file)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Resource("none.there"); err == nil {
			b.Fatal("found")
		}
	}
}

// manyInstances is one resource of about size bytes.
func manyInstances(size int) []byte {
	var all strings.Builder
	for i := 0; all.Len() < size; i++ {
		if i > 0 {
			all.WriteByte(',')
		}
		fmt.Fprintf(&all, `{"index_key":%d,"schema_version":1,"attributes":{"id":"i-%d","tags":{"a":"b"},"ports":[80,443],"text":%q},"sensitive_attributes":[[{"type":"get_attr","value":"text"}]]}`, i, i, strings.Repeat("x", 500))
	}
	return withInstances("[" + all.String() + "]")
}

func BenchmarkFind(b *testing.B) {
	s := parsed(b, manyInstances(10<<20))
	for _, address := range []string{"x.y[7]", "x.y"} {
		b.Run(address, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := valuesAt(s, address); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzResource(f *testing.F) {
	for _, program := range []string{"opentofu", "terraform"} {
		f.Add(readFile(f, program+".tfstate"))
	}
	f.Add(withInstances(`[{"index_key":"a","schema_version":1,"attributes":{"a":[1,{"b":null}]},"sensitive_attributes":[[{"type":"get_attr","value":"a"},{"type":"index","value":{"value":1,"type":"number"}}]]}]`))
	f.Fuzz(func(t *testing.T, file []byte) {
		s, err := Parse(file)
		if err != nil {
			return
		}
		if _, err := listed(s); err != nil && len(err.Error()) > 4000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		index, _ := s.resources()
		for at := range index {
			attributes, sensitive, err := valuesAt(s, at)
			if err != nil {
				if len(err.Error()) > 4000 {
					t.Errorf("an error of %d bytes", len(err.Error()))
				}
				continue
			}
			if !attributes.IsWhollyKnown() || !sensitive.IsWhollyKnown() {
				t.Errorf("got %#v and %#v", attributes, sensitive)
			}
		}
	})
}

// A Resource that no State gave has nothing, and is no reason to panic.
func TestZeroResource(t *testing.T) {
	t.Parallel()
	var r Resource
	if _, _, err := r.Values(); err == nil || r.Size() != 0 || !r.Marked() {
		t.Errorf("got %v, %d, %t", err, r.Size(), r.Marked())
	}
}

// A copy without resources has all else, whatever a State gets in time.
func TestWithoutResources(t *testing.T) {
	t.Parallel()
	s, err := Parse([]byte(`{"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"l","outputs":{"o":{"value":1,"type":"number"}},` +
		`"resources":[{"mode":"managed","type":"a","name":"b","provider":"p","instances":[{"attributes":{}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	of, all := reflect.ValueOf(*s.WithoutResources()), reflect.ValueOf(*s)
	for i := range of.NumField() {
		field := of.Type().Field(i)
		if field.IsExported() && (all.Field(i).IsZero() || !reflect.DeepEqual(of.Field(i).Interface(), all.Field(i).Interface())) {
			t.Errorf("%s: got %v, want %v", field.Name, of.Field(i), all.Field(i))
		}
	}
	if _, err := s.WithoutResources().Resource("a.b"); err == nil {
		t.Error("it has a resource")
	}
}
