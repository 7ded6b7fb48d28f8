package kubestate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

const (
	externalName = "crossplane.io/external-name"
	upjetMeta    = "upjet.crossplane.io/provider-meta"
	terrajetMeta = "terrajet.crossplane.io/provider-meta"
)

// crossplaneState rebuilds the state that Terrajet and Upjet write before each Terraform run. It adds values
// in the same order as they do, and later values overwrite earlier ones.
func (o *Object) crossplaneState(obj object, look secrets, cost *meter.Meter) ([]byte, error) {
	m := managed{Object: o, obj: obj, look: look, cost: cost}
	attributes, err := m.parameters()
	if err != nil {
		return nil, err
	}
	name, _ := m.annotation(externalName)
	if identifier := o.values.String("identifier_attribute"); identifier != "" && name != "" {
		attributes[identifier] = name
	}
	observed, err := m.observation()
	if err != nil {
		return nil, err
	}
	maps.Copy(attributes, observed)
	if err := m.putID(attributes, name, observed); err != nil {
		return nil, err
	}
	in := instance{Attributes: attributes, Private: m.private()}
	in.SchemaVersion = m.schema(in.Private)
	s := state{
		Version: 4, TerraformVersion: cmp.Or(o.values.String("terraform_version"), "0.0.0"), Serial: 1, Lineage: obj.text("metadata", "uid"),
		Resources: []resource{{
			Mode: "managed", Type: o.values.String("resource_type"), Name: o.Name, Provider: o.provider(), Instances: []instance{in},
		}},
	}
	return s.encode(cost)
}

type managed struct {
	*Object
	obj       object
	look      secrets
	cost      *meter.Meter
	observing bool // whether the values are a controller's observation, in which no field selects a secret or an object
}

// parameters returns the arguments, including the values of the secrets that they select.
func (m managed) parameters() (map[string]any, error) {
	forProvider, ok := m.obj.at("spec", "forProvider").(map[string]any)
	if !ok {
		return nil, errors.New("spec.forProvider must be an object; check that this is a managed resource of Crossplane")
	}
	attributes, err := m.block(forProvider, nil, nil)
	if err != nil {
		return nil, err
	}
	initial, err := m.obj.mapAt("spec", "initProvider")
	if err != nil {
		return nil, err
	}
	first, err := m.block(initial, nil, nil)
	fill(attributes, first)
	return attributes, err
}

// fill merges spec.initProvider into the arguments in the same way as Upjet, which uses mergo with
// WithSliceDeepCopy and without Overwrite. A missing or zero value is filled in. Objects are merged, and so
// are objects at the same index of two lists. List elements that exist only in from are ignored.
// https://github.com/crossplane/upjet/blob/main/pkg/pipeline/templates/terraformed.go.tmpl
func fill(to, from map[string]any) {
	for name, value := range from {
		switch have := to[name]; {
		case value == nil:
		case isZero(have):
			to[name] = value
		default:
			fillInside(have, value)
		}
	}
}

func fillInside(have, value any) {
	if a, b, ok := both[map[string]any](have, value); ok {
		fill(a, b)
	}
	if a, b, ok := both[[]any](have, value); ok {
		for i := range min(len(a), len(b)) {
			fillInside(a[i], b[i])
		}
	}
}

func both[T any](a, b any) (T, T, bool) {
	x, ok := a.(T)
	y, also := b.(T)
	return x, y, ok && also
}

func isZero(value any) bool {
	switch v := value.(type) {
	case json.Number:
		f, err := v.Float64()
		return err == nil && f == 0
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return value == nil
}

// block returns the fields of a block by their Terraform names. at is the path to the block in the object,
// and attribute is its path in the state.
func (m managed) block(fields map[string]any, at, attribute *trail) (map[string]any, error) {
	out := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		value, below := fields[field], at.to(field)
		name, sensitive := m.sensitive(below, value)
		if !sensitive {
			name = m.attribute(field)
		}
		if name == "" || !sensitive && m.isReference(field, value) {
			continue
		}
		var err error
		if !sensitive {
			out[name], err = m.value(value, below, attribute.to(name))
		} else if out[name], err = m.selected(value); err != nil {
			err = fmt.Errorf("%s: %w", shown(below.String()), err)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// trail holds the names that lead to a field, without indexes. The names are joined only when necessary,
// so that fields below a long name do not each hold a copy of it.
type trail struct {
	above *trail
	name  string
	size  int // size of the joined names, in bytes
}

func (t *trail) to(name string) *trail {
	if t == nil {
		return &trail{name: name, size: len(name)}
	}
	return &trail{above: t, name: name, size: t.size + 1 + len(name)}
}

func (t *trail) String() string {
	var names []string
	for ; t != nil; t = t.above {
		names = append(names, t.name)
	}
	slices.Reverse(names)
	return strings.Join(names, ".")
}

// among reports whether settings contains the trail.
func (t *trail) among(settings iter.Seq[string]) bool {
	for setting := range settings {
		if len(setting) == t.size && setting == t.String() {
			return true
		}
	}
	return false
}

// value returns value with Terraform names for the members of blocks. Blocks are in lists. An object that is
// not in a list is a map with user-defined keys, unless single_blocks names it.
func (m managed) value(value any, at, attribute *trail) (any, error) {
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			var err error
			if block, ok := element.(map[string]any); ok {
				out[i], err = m.block(block, at, attribute)
			} else {
				out[i], err = m.value(element, at, attribute)
			}
			if err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		if attribute.among(slices.Values(m.singleBlocks)) {
			block, err := m.block(v, at, attribute)
			return []any{block}, err
		}
	}
	return value, nil
}

// isReference reports whether a field names another object in the cluster. From that object, the controller
// gets the value of the argument beside the field.
func (m managed) isReference(field string, value any) bool {
	if _, named := m.fieldNames[field]; named || m.observing {
		return false
	}
	switch {
	case strings.HasSuffix(field, "Ref"):
		return hasOnly(value, "name", "name", "namespace", "policy")
	case strings.HasSuffix(field, "Refs"):
		list, ok := value.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool { return !hasOnly(v, "name", "name", "namespace", "policy") })
	case strings.HasSuffix(field, "Selector"):
		return hasOnly(value, "", "matchControllerRef", "matchLabels", "namespace", "policy")
	}
	return false
}

// hasOnly reports whether value is an object that has the string field one and no fields other than those
// listed. If one is empty, no field is required.
func hasOnly(value any, one string, listed ...string) bool {
	o, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for name := range o {
		if !slices.Contains(listed, name) {
			return false
		}
	}
	_, has := o[one].(string)
	return has || one == ""
}

// sensitive returns the Terraform attribute of a field that selects a secret. It returns false for other
// fields.
func (m managed) sensitive(at *trail, value any) (string, bool) {
	if m.observing {
		return "", false
	}
	if m.sensitiveFields != nil {
		if !at.among(maps.Keys(m.sensitiveFields)) {
			return "", false
		}
		return m.sensitiveFields[at.String()], true
	}
	field := at.name
	base, ok := strings.CutSuffix(field, "SecretRef")
	if !ok || base == "" || !looksSelected(value) {
		return "", false
	}
	if name, ok := m.fieldNames[field]; ok {
		return name, true
	}
	return m.attribute(base), true
}

func looksSelected(value any) bool {
	switch v := value.(type) {
	case []any:
		return areSelectors(v)
	case map[string]any:
		return isSelector(v) || len(v) > 0 && areSelectors(slices.Collect(maps.Values(v)))
	}
	return false
}

func isSelector(v any) bool { return hasOnly(v, "name", "name", "namespace", "key") }

func areSelectors(all []any) bool {
	return !slices.ContainsFunc(all, func(v any) bool { return !isSelector(v) })
}

// selected returns the values that selectors choose: one value, a list or a map of values, or a whole secret.
// A value that does not exist is empty.
func (m managed) selected(value any) (any, error) {
	var err error
	switch v := value.(type) {
	case nil:
		return nil, nil
	case []any:
		out := make([]any, len(v))
		for i := 0; i < len(v) && err == nil; i++ {
			out[i], err = m.one(v[i])
		}
		return out, err
	case map[string]any:
		if isSelector(v) {
			return m.one(v)
		}
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if out[key], err = m.one(v[key]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, errSelector
}

var errSelector = errors.New("the name or the key of the secret is missing")

func (m managed) one(value any) (any, error) {
	selector, ok := value.(map[string]any)
	if !ok || !isSelector(value) {
		return nil, errSelector
	}
	ref, err := m.secretRef(selector)
	if err != nil {
		return nil, err
	}
	data, err := m.look(ref)
	if err != nil {
		return nil, err
	}
	key, ok := selector["key"].(string)
	if ok {
		text, err := m.copied(ref, key, data[key])
		return fromSecret{text}, err
	}
	if selector["key"] != nil {
		return nil, errSelector
	}
	whole := map[string]any{}
	for key, value := range data {
		if whole[key], err = m.copied(ref, key, value); err != nil {
			return nil, err
		}
	}
	return fromSecret{whole}, nil
}

// copied returns a secret's value as text. It charges the cost each time the value is selected.
func (m managed) copied(ref SecretRef, key, value string) (string, error) {
	if err := m.cost.Charge(meter.Rebuilt+int64(len(key)+len(value))/32, "the values of secrets that it selects"); err != nil {
		return "", err
	}
	return textOf(ref, key, value)
}

// secretRef returns the secret that a selector names. A namespaced object may only name secrets in its own
// namespace. Otherwise anyone who may write objects in one namespace could read secrets in another through a
// reader with more permissions.
func (m managed) secretRef(selector map[string]any) (SecretRef, error) {
	name, _ := selector["name"].(string)
	namespace, isText := selector["namespace"].(string)
	own := m.obj.text("metadata", "namespace")
	switch {
	case !isText && selector["namespace"] != nil, !syntax.IsDomain(name):
		return SecretRef{}, errors.New("this is not a valid secret name; use lowercase letters, digits, dashes and dots")
	case own == "" && namespace == "":
		return SecretRef{}, errors.New("the namespace of the secret is missing; add it, because the object has no namespace")
	case own != "" && namespace != "" && namespace != own:
		return SecretRef{}, fmt.Errorf("the secret is in the namespace %s, but an object in %s can name only secrets in its "+
			"own namespace",
			shown(namespace), shown(own))
	case own != "":
		namespace = own
	}
	if !syntax.IsLabel(namespace) {
		return SecretRef{}, errors.New("this is not a valid namespace name; use lowercase letters, digits and dashes")
	}
	return SecretRef{Namespace: namespace, Name: name, Optional: true}, nil
}

// observation returns the attributes that the controller observed. The sensitive ones come from the
// connection secret.
func (m managed) observation() (map[string]any, error) {
	m.observing = true
	observed, err := m.obj.mapAt("status", "atProvider")
	if err != nil {
		return nil, err
	}
	attributes, err := m.block(observed, nil, nil)
	if err != nil {
		return nil, err
	}
	connection, err := m.obj.mapAt("spec", "writeConnectionSecretToRef")
	if err != nil || connection == nil {
		return attributes, err
	}
	ref, err := m.secretRef(connection)
	if err != nil {
		return nil, fmt.Errorf("spec.writeConnectionSecretToRef: %w", err)
	}
	data, err := m.look(ref)
	if err != nil {
		return nil, err
	}
	// Keys without the prefix are meant for people and programs.
	put := keys{prefix: "attribute.", place: splitKey, value: func(text string) any { return text }}
	return attributes, ref.put(attributes, data, put, m.cost)
}

// putID adds the id of the resource, which is the external name unless the user sets another. If there is an
// observation without an id, the resource type has no such attribute; like Upjet, putID then adds none.
// Terrajet always adds an id.
func (m managed) putID(attributes map[string]any, name string, observed map[string]any) error {
	_, has := observed["id"]
	switch {
	case m.values.String("id") != "":
		attributes["id"] = m.values.String("id")
	case len(observed) > 0 && !has && !m.isTerrajets():
	case name != "":
		attributes["id"] = name
	case !has:
		return fmt.Errorf("%w: the object has neither the annotation %s nor status.atProvider.id", ErrNoState, externalName)
	}
	return nil
}

func (m managed) isTerrajets() bool {
	_, ok := m.annotation(terrajetMeta)
	return ok || strings.HasSuffix(m.Group, ".jet.crossplane.io")
}

func (m managed) annotation(name string) (string, bool) {
	text, ok := m.obj.at("metadata", "annotations", name).(string)
	return text, ok
}

// private returns the provider's private data.
func (m managed) private() []byte {
	for _, name := range []string{upjetMeta, terrajetMeta} {
		if text, ok := m.annotation(name); ok {
			return []byte(text)
		}
	}
	return nil
}

// schema returns the schema version of the resource type. Providers built with the Terraform plugin SDK store
// it in their private data.
func (m managed) schema(private []byte) int64 {
	if m.schemaVersion != nil {
		return *m.schemaVersion
	}
	var meta struct {
		SchemaVersion json.Number `json:"schema_version"`
	}
	if json.Unmarshal(private, &meta) != nil {
		return 0
	}
	n, _ := whole(meta.SchemaVersion)
	return int64(min(n, 1<<31)) //nolint:gosec // bounded
}

// provider returns the address of the provider in the form that state files use.
func (o *Object) provider() string {
	source := o.values.String("provider_source")
	if source == "" {
		first, _, _ := strings.Cut(o.values.String("resource_type"), "_")
		source = "hashicorp/" + first
	}
	if strings.Count(source, "/") == 1 {
		source = "registry.terraform.io/" + source
	}
	return fmt.Sprintf("provider[%q]", source)
}
