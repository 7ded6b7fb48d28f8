package kubestate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

var (
	module = map[string]cty.Value{"api_version": text("modules.kubeform.com/v1alpha1"), "kind": text("RDS"), "name": text("db"),
		"namespace": text("demo")}
	resources = map[string]cty.Value{"api_version": text("linode.kubeform.com/v1alpha1"), "kind": text("Instance"), "name": text("vm"),
		"namespace": text("demo")}
	managedVPC = map[string]cty.Value{"api_version": text("ec2.aws.upbound.io/v1beta1"), "kind": text("VPC"), "name": text("main"),
		"resource_type": text("aws_vpc")}
)

func vpc(spec, status string) string {
	return fmt.Sprintf(`{"apiVersion": "ec2.aws.upbound.io/v1beta1", "kind": "VPC", "metadata": {"name": "main", "uid": "u",
		"annotations": {"crossplane.io/external-name": "vpc-1"}},
		"spec": %s, "status": %s}`, spec, status)
}

func instanceOf(spec, status string) string {
	return fmt.Sprintf(`{"apiVersion": "linode.kubeform.com/v1alpha1", "kind": "Instance", "metadata": {"name": "vm", "namespace": `+
		`"demo"}, "spec": %s, "status": %s}`, spec, status)
}

func moduleOf(status string) string {
	return fmt.Sprintf(`{"apiVersion": "modules.kubeform.com/v1alpha1", "kind": "RDS", "metadata": {"name": "db", "namespace": "demo"}, `+
		`"status": %s}`, status)
}

const kept = `{"output": {"id": "1"}, "state": {"version": 4, "terraform_version": "0.13.5", "serial": 3, "lineage": "l"}}`

func TestErrors(t *testing.T) {
	secret := func(name, data string) string {
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": %q, "namespace": "demo"}, "data": %s}`, name, data)
	}
	withRef := instanceOf(`{"secretRef": {"name": "s"}}`, kept)
	says := golden(t, "objects")
	for name, c := range map[string]struct {
		attrs    map[string]cty.Value
		manifest string
	}{
		"empty":                {module, ""},
		"not a manifest":       {module, "\x00\xff"},
		"broken YAML":          {module, "a: [hunter2"},
		"broken JSON":          {module, `{"a": "hunter2`},
		"a text":               {module, `"hunter2"`},
		"a list of numbers":    {module, `{"kind": "List", "items": [1]}`},
		"repeated key":         {module, "kind: RDS\nkind: hunter2\n"},
		"alias":                {module, "a: &a [hunter2]\nb: *a\n"},
		"another kind":         {module, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}}`},
		"another version":      {module, strings.Replace(moduleOf(`{}`), "v1alpha1", "v1beta1", 1)},
		"another namespace":    {module, strings.Replace(moduleOf(`{}`), "demo", "prod", 1)},
		"twice":                {module, moduleOf(`{}`) + "\n---\n" + moduleOf(`{}`)},
		"module, no string":    {module, moduleOf(`{"state": {}}`)},
		"state is a string":    {resources, instanceOf(`{}`, `{"state": "x"}`)},
		"version 3":            {resources, instanceOf(`{}`, `{"state": {"version": 3}}`)},
		"version is a text":    {resources, instanceOf(`{}`, `{"state": {"version": "4"}}`)},
		"huge serial":          {resources, instanceOf(`{}`, `{"output": {}, "state": {"version": 4, "serial": 1e99}}`)},
		"negative serial":      {resources, instanceOf(`{}`, `{"output": {}, "state": {"version": 4, "serial": -1}}`)},
		"lineage is a number":  {resources, instanceOf(`{}`, `{"output": {}, "state": {"version": 4, "lineage": 1}}`)},
		"no output":            {resources, instanceOf(`{}`, `{"state": {"version": 4}}`)},
		"secret is not there":  {resources, withRef},
		"secret, other place":  {resources, withRef + strings.Replace(secret("s", `{}`), "demo", "prod", 1)},
		"secret twice":         {resources, withRef + secret("s", `{}`) + secret("s", `{}`)},
		"secret, no base64":    {resources, withRef + secret("s", `{"out.a": "hunter2!"}`)},
		"secret, no text":      {resources, withRef + secret("s", `{"out.a": "/w=="}`)},
		"secret, wrong type":   {resources, withRef + secret("s", `{"out.a": 1}`)},
		"secret, data a list":  {resources, withRef + secret("s", `[]`)},
		"secret, into a text":  {resources, withRef + secret("s", `{"out.id.x": "eA=="}`)},
		"secret, huge index":   {resources, withRef + secret("s", `{"out.list.99999999": "eA=="}`)},
		"secret, far index":    {resources, withRef + secret("s", `{"out.list.1024": "eA=="}`)},
		"secretRef, a path":    {resources, instanceOf(`{"secretRef": {"name": "../../x"}}`, kept)},
		"secretRef, a text":    {resources, instanceOf(`{"secretRef": "s"}`, kept)},
		"no forProvider":       {managedVPC, vpc(`{}`, `{}`)},
		"atProvider, a text":   {managedVPC, vpc(`{"forProvider": {}}`, `{"atProvider": "x"}`)},
		"selector, no place":   {managedVPC, vpc(`{"forProvider": {"aSecretRef": {"name": "s", "key": "k"}}}`, `{}`)},
		"selector, a path":     {managedVPC, vpc(`{"forProvider": {"aSecretRef": {"name": "../s", "namespace": "x", "key": "k"}}}`, `{}`)},
		"selector, namespace":  {managedVPC, vpc(`{"forProvider": {"aSecretRef": {"name": "s", "namespace": "a/b", "key": "k"}}}`, `{}`)},
		"selected, not there":  {managedVPC, vpc(`{"forProvider": {"aSecretRef": {"name": "s", "namespace": "x", "key": "k"}}}`, `{}`)},
		"connection, a text":   {managedVPC, vpc(`{"forProvider": {}, "writeConnectionSecretToRef": "x"}`, `{}`)},
		"initProvider, a list": {managedVPC, vpc(`{"forProvider": {}, "initProvider": []}`, `{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := open(t, c.attrs).File([]byte(c.manifest), meter.New(0))
			if err == nil {
				t.Fatalf("got %s", got)
			}
			if errors.Is(err, ErrNoState) {
				t.Errorf("got %q", err)
			}
			says.Error(t, name, err)
		})
	}
}

func TestNoState(t *testing.T) {
	for name, c := range map[string]struct {
		attrs    map[string]cty.Value
		manifest string
	}{
		"module":           {module, moduleOf(`{"phase": "Initializing"}`)},
		"module, empty":    {module, moduleOf(`{"state": ""}`)},
		"resource":         {resources, instanceOf(`{}`, `{"phase": "Initializing"}`)},
		"managed resource": {managedVPC, strings.Replace(vpc(`{"forProvider": {}}`, `{}`), "crossplane.io/external-name", "other", 1)},
	} {
		o := open(t, c.attrs)
		if _, err := o.File([]byte(c.manifest), meter.New(0)); !errors.Is(err, ErrNoState) {
			t.Errorf("%s: got %v", name, err)
		}
		if refs, err := asked(o, c.manifest); !errors.Is(err, ErrNoState) || len(refs) > 0 {
			t.Errorf("%s: State asked for %v: %v", name, refs, err)
		}
	}
}

// A server's answers are no more trusted than a file.
func TestWrongAnswers(t *testing.T) {
	withRef := instanceOf(`{"secretRef": {"name": "s"}}`, kept)
	says := golden(t, "answers")
	for name, c := range map[string]struct{ object, secret string }{
		"object is none":      {object: "hunter2"},
		"another object":      {object: strings.Replace(withRef, "vm", "hunter2", 1)},
		"another API":         {object: strings.Replace(withRef, "v1alpha1", "v1", 1)},
		"two objects":         {object: withRef + withRef},
		"secret is none":      {object: withRef, secret: "\x00\xff"},
		"another secret":      {object: withRef, secret: `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hunter2"}}`},
		"secret is an object": {object: withRef, secret: withRef},
		"too much":            {object: withRef, secret: strings.Repeat(" ", maxManifest)},
	} {
		_, _, err := open(t, resources).State([]byte(c.object), func(SecretRef) ([]byte, error) { return []byte(c.secret), nil })
		says.Error(t, name, err)
	}
}

// What grows without end on its way through a parser ends.
func TestBounded(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i <= 'z'; i++ {
		p := string(i - 1)
		bomb += fmt.Sprintf("%c: &%c [*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s]\n", i, i, p, p, p, p, p, p, p, p, p)
	}
	deepSpec := strings.Repeat(`{"a": [`, 4000) + strings.Repeat("]}", 4000)
	var many strings.Builder
	for i := range 200 {
		fmt.Fprintf(&many, `%q: {"name": "s%d", "namespace": "x", "key": "k"},`, fmt.Sprintf("a%dSecretRef", i), i)
	}
	for name, manifest := range map[string]string{
		"aliases":      bomb,
		"deep JSON":    strings.Repeat(`{"a":`, 1_000_000),
		"deep YAML":    strings.Repeat("[", 1_000_000),
		"deep lists":   strings.Repeat(`{"kind": "List", "items": [`, 20) + strings.Repeat("]}", 20),
		"much YAML":    "[" + strings.Repeat("a,", maxDocument/2) + "]",
		"much JSON":    `{"a": [` + strings.Repeat("1,", maxManifest/2) + "1]}",
		"many objects": `{"kind": "List", "items": [` + strings.Repeat("{},", 100_001) + "{}]}",
	} {
		begin := time.Now()
		if _, err := open(t, module).File([]byte(manifest), meter.New(0)); err == nil || time.Since(begin) > time.Minute {
			t.Errorf("%s: got %v after %v", name, err, time.Since(begin))
		}
	}
	if _, err := open(t, managedVPC).File([]byte(vpc(`{"forProvider": `+deepSpec+`}`, `{}`)), meter.New(0)); err != nil {
		t.Errorf("a spec that JSON can hold: %v", err)
	}
	spec := `{"forProvider": {` + strings.TrimSuffix(many.String(), ",") + `}}`
	refs, err := asked(open(t, managedVPC), vpc(spec, `{}`))
	if len(refs) > 0 {
		t.Errorf("it was asked for %d secrets", len(refs))
	}
	golden(t, "limits").Error(t, "many secrets", err)
}

func FuzzFile(f *testing.F) {
	for _, name := range []string{"kubeform_module", "kubeform_resource_cluster", "terrajet_project", "terrajet_minimal"} {
		var v vector
		v.dir = "testdata/" + name
		for _, file := range []string{"cr.json", "secret.json", "secret_conn.json"} {
			if data, err := readIf(v.dir + "/" + file); err == nil {
				f.Add(data)
			}
		}
	}
	f.Add([]byte(vpc(`{"forProvider": {"aSecretRef": [{"name": "s", "namespace": "x", "key": "k"}]}, "initProvider": {"a": {"b": 1}}}`,
		`{"atProvider": {"x": [{}, [], null]}}`)))
	f.Add([]byte(instanceOf(`{"secretRef": {"name": "s"}}`, kept) + "\n---\n" +
		`{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {out.a.0.b...c.d...: x}}`))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		for _, a := range []map[string]cty.Value{module, resources, managedVPC} {
			o := open(t, a)
			data, err := o.File(manifest, meter.New(0))
			if err == nil && !o.isModule() && !json.Valid(data) {
				t.Errorf("made %q", data)
			}
			data, _, err = o.State(manifest, func(SecretRef) ([]byte, error) { return manifest, nil })
			if err == nil && !o.isModule() && !json.Valid(data) {
				t.Errorf("made %q of an answer", data)
			}
		}
	})
}
