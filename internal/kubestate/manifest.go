package kubestate

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	goyaml "go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// object is a Kubernetes object, decoded from JSON with numbers as json.Number.
type object map[string]any

const (
	// These limits are in bytes. In memory, JSON with many small values takes more than twenty times its
	// size, and YAML a hundred times. A Kubernetes object has at most about 1.5 MiB.
	maxManifest = 16 << 20
	maxDocument = 4 << 20 // limit for one YAML document
)

// parse returns the objects in a JSON or YAML manifest. The manifest may contain objects and lists of
// objects.
func parse(manifest []byte, cost *meter.Meter) ([]object, error) {
	if len(manifest) > maxManifest {
		return nil, fmt.Errorf("it is larger than %d bytes; keep only the object and the secrets that it names", maxManifest)
	}
	if text := bytes.TrimSpace(manifest); json.Valid(text) {
		return parseJSON(text, nil)
	}
	if !utf8.Valid(manifest) {
		return nil, errNeither
	}
	var all []object
	// The reader separates documents as kubectl does.
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for n := 1; ; n++ {
		document, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil {
			all, err = parseDocument(document, all, cost)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
	}
}

var errNeither = errors.New("it is neither JSON nor YAML, or it repeats a key; check that this is the right file")

// parseDocument adds the objects in one document of a stream to all. The document may also be JSON, or
// several JSON objects.
func parseDocument(document []byte, all []object, cost *meter.Meter) ([]object, error) {
	if text := bytes.TrimSpace(document); len(text) > 0 && text[0] == '{' {
		if more, err := parseJSON(text, all); err == nil {
			return more, nil
		}
	}
	if len(document) > maxDocument {
		return nil, fmt.Errorf("it is larger than %d bytes; write it as JSON, or keep only the object and the secrets that it names", maxDocument)
	}
	if err := cost.YAML(document); err != nil {
		return nil, err
	}
	// An alias repeats its anchor, which may contain aliases itself, so a small document can expand to a huge
	// one. Clusters never print aliases.
	var node goyaml.Node
	if err := goyaml.Unmarshal(document, &node); err != nil {
		return nil, errNeither
	}
	if hasAlias(&node) {
		return nil, errors.New("it has YAML aliases; replace them with their values")
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, errNeither // the parser's error would quote the document
	}
	return parseJSON(text, all)
}

func parseJSON(text []byte, all []object) ([]object, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		var value any
		switch err := d.Decode(&value); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, errNeither
		}
		if err := flatten(value, "", "", &all); err != nil {
			return nil, err
		}
	}
}

func hasAlias(n *goyaml.Node) bool {
	return n.Kind == goyaml.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}

// flatten adds the objects in value to all. The items of a server's list lack apiVersion and kind; both are
// derived from the list.
func flatten(value any, apiVersion, kind string, all *[]object) error {
	if value == nil {
		return nil // an empty document
	}
	obj, ok := value.(map[string]any)
	if !ok {
		return errors.New("it contains an item that is not an object; check that this is the right file")
	}
	if obj["apiVersion"] == nil && obj["kind"] == nil && kind != "" {
		obj["apiVersion"], obj["kind"] = apiVersion, kind
	}
	own, _ := obj["kind"].(string)
	items, isList := obj["items"].([]any)
	if !isList || !strings.HasSuffix(own, "List") {
		*all = append(*all, obj)
		return nil
	}
	version, _ := obj["apiVersion"].(string)
	for _, item := range items {
		if err := flatten(item, version, strings.TrimSuffix(own, "List"), all); err != nil {
			return err
		}
	}
	return nil
}

func (o *Object) pick(objects []object) (object, error) {
	var found, other object
	for _, obj := range objects {
		switch {
		case !o.hasNames(obj):
		case !o.means(obj):
			other = obj
		case found != nil:
			return nil, fmt.Errorf("the manifest contains %s more than once; if the objects are in different namespaces, set "+
				"the argument namespace", o)
		default:
			found = obj
		}
	}
	switch {
	case found != nil:
		return found, nil
	case other != nil:
		return nil, fmt.Errorf("the manifest does not contain %s, but the same object with apiVersion %s; correct api_version", o,
			outside.Quoted(other.text("apiVersion"), maxName))
	}
	if len(objects) == 1 && objects[0].text("kind") == "" {
		return nil, errors.New("the file is not a manifest: its content has no kind; if it is the state itself, leave out the " +
			"object block")
	}
	const most = 5
	var held []string
	for _, obj := range objects[:min(len(objects), most)] {
		quoted := func(path ...string) string { return outside.Quoted(obj.text(path...), maxName) }
		held = append(held, quoted("kind")+" "+quoted("metadata", "name")+" in namespace "+quoted("metadata", "namespace"))
	}
	if len(objects) > most {
		held = append(held, "others")
	}
	return nil, fmt.Errorf("the manifest does not contain %s, only %s; correct the difference (case matters)", o,
		cmp.Or(strings.Join(held, ", "), "other documents"))
}

func (o *Object) hasNames(obj object) bool {
	return obj.text("kind") == o.Kind && obj.text("metadata", "name") == o.Name &&
		sameNamespace(o.Namespace, obj.text("metadata", "namespace"))
}

func (o *Object) means(obj object) bool {
	return o.hasNames(obj) && obj.text("apiVersion") == o.APIVersion()
}

// answer returns the object in a server response. If the response contains anything else, it returns an
// error.
func answer(text []byte, means func(object) bool, cost *meter.Meter) (object, error) {
	objects, err := parse(text, cost)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the server's answer: %w", err)
	case len(objects) != 1 || !means(objects[0]):
		return nil, errors.New("the server returned a different object")
	}
	return objects[0], nil
}

// sameNamespace reports whether two namespaces are equal or one is missing. Manifests often leave the
// namespace to the command that applies them.
func sameNamespace(a, b string) bool { return a == b || a == "" || b == "" }

// text returns the string at a place in an object, or an empty string if there is none.
func (o object) text(names ...string) string {
	s, _ := o.at(names...).(string)
	return s
}

// at returns the value at a place in an object, or nil if there is none.
func (o object) at(names ...string) any {
	var v any = map[string]any(o)
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func (r SecretRef) means(obj object) bool {
	return obj.text("kind") == "Secret" && obj.text("apiVersion") == "v1" && obj.text("metadata", "name") == r.Name &&
		sameNamespace(r.Namespace, obj.text("metadata", "namespace"))
}

// read returns the data of a secret that a server sent, or nil for an optional secret that does not exist.
func (r SecretRef) read(text []byte, cost *meter.Meter) (map[string]string, error) {
	switch {
	case text == nil && r.Optional:
		return nil, nil
	case text == nil:
		return nil, fmt.Errorf("the secret %s does not exist; add it to the manifest, or read from the cluster", r)
	}
	obj, err := answer(text, r.means, cost)
	if err != nil {
		return nil, fmt.Errorf("the secret %s: %w", r, err)
	}
	return r.data(obj, cost)
}

// mapAt returns the nested object at a place in an object, or nil if there is none. Any other value is an
// error.
func (o object) mapAt(names ...string) (map[string]any, error) {
	m, ok := o.at(names...).(map[string]any)
	if !ok && o.at(names...) != nil {
		return nil, fmt.Errorf("%s must be an object", strings.Join(names, "."))
	}
	return m, nil
}

// secretIn returns the data of a secret in the manifest. A secret without a namespace matches every
// namespace.
func secretIn(objects []object, ref SecretRef, cost *meter.Meter) (map[string]string, error) {
	var found object
	for _, obj := range objects {
		if !ref.means(obj) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("the manifest contains the secret %s more than once", ref)
		}
		found = obj
	}
	if found == nil {
		hint := ""
		if ref.Optional {
			hint = ", or an empty Secret of that name if the secret does not exist"
		}
		return nil, fmt.Errorf("the object names the secret %s, but the manifest does not contain it; add the secret%s", ref, hint)
	}
	return ref.data(found, cost)
}

func (r SecretRef) data(secret object, cost *meter.Meter) (map[string]string, error) {
	data := map[string]string{}
	for _, part := range []string{"data", "stringData"} { // stringData takes precedence, as on the server
		entries, ok := secret[part].(map[string]any)
		if !ok && secret[part] != nil {
			return nil, fmt.Errorf("the secret %s: %s is not an object", r, part)
		}
		for key, v := range entries {
			text, ok := v.(string)
			if !ok && v != nil {
				return nil, fmt.Errorf("the secret %s: %s.%s is not a string", r, part, shown(key))
			}
			if err := cost.Copies(len(text), "the secrets that it names"); err != nil {
				return nil, err
			}
			if part == "data" {
				raw, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					return nil, fmt.Errorf("the secret %s: data.%s is not base64", r, shown(key))
				}
				text = string(raw)
			}
			data[key] = text
		}
	}
	return data, nil
}

// String names the secret for people.
func (r SecretRef) String() string {
	if r.Namespace == "" {
		return shown(r.Name)
	}
	return shown(r.Namespace) + "/" + shown(r.Name)
}

const maxName = 100 // size limit of a name in a message, in bytes

func shown(name string) string { return outside.Line(name, maxName) }
