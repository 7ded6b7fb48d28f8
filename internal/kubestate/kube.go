// Package kubestate makes state files from Kubernetes objects. It supports the state that Kubeform keeps for
// a module. It also rebuilds the states of Kubeform resources, and of Crossplane's managed resources
// (Terrajet, Upjet), from the pieces that their controllers store in the cluster.
//
// It does no I/O: sources read the objects from a cluster or a file.
//
// https://github.com/kubeform/kfc/tree/fd54c99e/pkg/controllers
// https://github.com/crossplane/terrajet/tree/767e1dc/pkg/terraform
// https://github.com/crossplane/upjet/tree/main/pkg/terraform
package kubestate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// ErrNoState means that the object exists, but its controller has not stored a state yet. Readers treat this
// like a missing file.
var ErrNoState = errors.New("its controller has not stored a state yet; see its status in the cluster")

// Object describes the Kubernetes object that holds a state. It also holds facts about the resource type that
// the controller knows but does not write into the object.
type Object struct {
	Group, Version, Kind string
	Name                 string
	Namespace            string // "" for a cluster-scoped object, or if not set
	Resource             string // the plural name in URLs, such as "vpcs"; "" if not set

	values          attr.Values // the values of the block
	schemaVersion   *int64
	fieldNames      map[string]string // Terraform attributes by field name; "" for a field that is not an attribute
	sensitiveFields map[string]string // Terraform attributes by path in the object, without indexes; nil means the convention applies
	singleBlocks    []string          // Terraform paths of blocks that are not in a list in the object
}

const (
	modules  = "modules.kubeform.com"
	kubeform = ".kubeform.com"
)

// Table declares the object block of a data source.
func Table() attr.Table {
	return attr.Table{
		Name: "object",
		Doc: "A Kubernetes object of Kubeform or Crossplane that holds a state, or the pieces of one: in the cluster of a `kubernetes` " +
			"source, else in a manifest in YAML or JSON.",
		Attrs: []attr.Attr{
			{Name: "api_version", Type: cty.String, Required: true,
				Check: attr.Is(isVersioned, "this is not a group with a version; write both, like modules.kubeform.com/v1alpha1"),
				Doc:   "The `apiVersion` of the object, such as `modules.kubeform.com/v1alpha1`."},
			{Name: "kind", Type: cty.String, Required: true,
				Check: attr.Is(kindForm.MatchString, "this is not a kind; write one word of letters and digits, like VPC"),
				Doc:   "The `kind` of the object, such as `VPC`."},
			{Name: "name", Type: cty.String, Required: true,
				Check: attr.Is(syntax.IsDomain, "this is not a valid object name; use lowercase letters, digits, dashes and dots"),
				Doc:   "The name of the object."},
			{Name: "namespace", Type: cty.String,
				Check: attr.Is(syntax.IsLabel, "this is not a valid namespace name; use lowercase letters, digits and dashes"),
				Doc:   "The namespace of the object. Leave it out for an object that has none."},
			{Name: "resource", Type: cty.String, Check: attr.Is(syntax.IsLabel, "this is not a plural name in lowercase; write it like vpcs"),
				Doc: "The plural name of the kind in the server's API, such as `vpcs`. Without it, the server is queried for it. Only the " +
					"`kubernetes` source uses it."},
			{Name: "resource_type", Type: cty.String,
				Check: attr.Is(nameForm.MatchString, "this is not a resource type; write one word like aws_db_instance"),
				Doc: "The Terraform resource type, such as `aws_vpc`. It is required for Crossplane. For Kubeform it defaults to the first label " +
					"of the API group and the kind, such as `digitalocean_database_cluster`."},
			{Name: "schema_version", Type: cty.Number, Check: attr.Between(0, 1<<31),
				Doc: "The schema version of the resource type. It defaults to the `schema_version` in Crossplane's `provider-meta` annotation, " +
					"and otherwise to 0."},
			{Name: "provider_source", Type: cty.String,
				Check: attr.Is(sourceForm.MatchString, "this is not a namespace with a name; write both, like hashicorp/aws"),
				Doc: "For Crossplane, the source of the Terraform provider, such as `mongodb/mongodbatlas`. It defaults to `hashicorp/` and the " +
					"first word of `resource_type`."},
			{Name: "terraform_version", Type: cty.String,
				Check: attr.Is(versionForm.MatchString, "this is not a version; write it like 1.5.7"),
				Doc: "For Crossplane, the Terraform version of the controller. The cluster does not contain it, so it defaults to " +
					"`0.0.0`."},
			{Name: "field_names", Type: cty.Map(cty.String), Check: attr.Text(checkFieldName),
				Doc: "The Terraform attributes of fields whose names do not follow the rule that `orgId` is `org_id`, by the name of the field. " +
					"An empty name leaves the field out."},
			{Name: "sensitive_fields", Type: cty.Map(cty.String),
				Doc: "For Crossplane, the fields in `spec.forProvider` that select a secret, by Terraform attribute. Defaults to those that end " +
					"in `SecretRef` and look like a selector."},
			{Name: "single_blocks", Type: cty.List(cty.String),
				Doc: "For Crossplane, the blocks that the object holds without a list, as Terraform paths such as `settings.backup`. Newer API " +
					"versions do this for blocks that may occur only once."},
			{Name: "identifier_attribute", Type: cty.String,
				Check: attr.Is(nameForm.MatchString, "this cannot be the name of an attribute"),
				Doc: "For Crossplane, the attribute that gets the external name, if the name identifies the resource: usually `name`. Without " +
					"it there is none, and the provider chooses the identifier."},
			{Name: "id", Type: cty.String,
				Doc: "For Crossplane, the `id` of the resource, if it is not the external name. It defaults to the annotation " +
					"`crossplane.io/external-name`, then to `status.atProvider.id`."},
		},
	}
}

// New returns the object that an object block describes. It returns an error for mistakes in the block.
func New(v attr.Values) (*Object, error) {
	o := &Object{
		Kind: v.String("kind"), Name: v.String("name"), Namespace: v.String("namespace"), Resource: v.String("resource"),
		values: v, fieldNames: v.StringMap("field_names"), singleBlocks: v.Strings("single_blocks"),
	}
	o.Group, o.Version, _ = strings.Cut(v.String("api_version"), "/")
	return o, o.check(v)
}

func isVersioned(text string) bool {
	group, version, ok := strings.Cut(text, "/")
	return ok && syntax.IsDomain(group) && syntax.IsLabel(version)
}

var (
	kindForm    = lazyregexp.New(`^[A-Za-z][A-Za-z0-9]{0,62}$`)
	nameForm    = lazyregexp.New(`^[a-z_][a-z0-9_-]*$`)
	sourceForm  = lazyregexp.New(`^([a-z0-9.:-]+/)?[A-Za-z0-9_-]+/[A-Za-z0-9_-]+$`)
	versionForm = lazyregexp.New(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]*)?$`)
)

func checkFieldName(name string) error {
	if name != "" && !nameForm.MatchString(name) {
		return fmt.Errorf("%q cannot be the name of an attribute", name)
	}
	return nil
}

func (o *Object) check(v attr.Values) error {
	if err := o.checkMeaning(v); err != nil {
		return err
	}
	if v.Has("schema_version") {
		n := v.Int("schema_version")
		o.schemaVersion = &n
	}
	if !o.isKubeform() && v.String("resource_type") == "" {
		return v.Errorf("resource_type", "this argument is required, because the object does not say the Terraform resource type; set "+
			"it, for example, to aws_vpc")
	}
	if v.Has("sensitive_fields") {
		return o.setSensitiveFields(v)
	}
	return nil
}

// checkMeaning returns an error for a setting that has no effect on this kind of object.
func (o *Object) checkMeaning(v attr.Values) error {
	useless := []string{"provider_source", "terraform_version", "sensitive_fields", "single_blocks", "identifier_attribute", "id"}
	switch {
	case o.isModule():
		useless = append(useless, "resource_type", "schema_version", "field_names")
	case !o.isKubeform():
		return nil
	}
	for _, name := range useless {
		if v.Has(name) {
			return v.Errorf(name, "this argument has no effect on an object of %s; remove it", o.Group)
		}
	}
	return nil
}

// setSensitiveFields sets the sensitive fields from v. Their paths are written as in the generated code of
// providers, where [*] stands for any index.
func (o *Object) setSensitiveFields(v attr.Values) error {
	o.sensitiveFields = map[string]string{}
	for attribute, field := range v.StringMap("sensitive_fields") {
		if strings.HasPrefix(field, "status.atProvider.") {
			continue // the values of observed fields are in the connection secret
		}
		field, ok := strings.CutPrefix(withoutIndexes(field), "spec.forProvider.")
		attribute = withoutIndexes(attribute)
		attribute = attribute[strings.LastIndexByte(attribute, '.')+1:]
		if !ok || field == "" || !nameForm.MatchString(attribute) {
			return v.Errorf("sensitive_fields", "an element has no Terraform attribute, or its path does not begin with spec.forProvider.; correct "+
				"that element")
		}
		o.sensitiveFields[field] = attribute
	}
	return nil
}

var indexes = lazyregexp.New(`\[(\*|[0-9]+)\]`)

func withoutIndexes(p string) string { return indexes.ReplaceAllString(p, "") }

func (o *Object) isModule() bool   { return o.Group == modules }
func (o *Object) isKubeform() bool { return strings.HasSuffix(o.Group, kubeform) }

// APIVersion returns the group and the version in the form of an apiVersion field.
func (o *Object) APIVersion() string { return o.Group + "/" + o.Version }

// Identity returns a text that is equal for objects that were described in the same way.
func (o *Object) Identity() string { return o.values.Identity() }

// String names the object for people.
func (o *Object) String() string {
	if o.Namespace == "" {
		return fmt.Sprintf("%s %s (%s)", o.Kind, o.Name, o.APIVersion())
	}
	return fmt.Sprintf("%s %s/%s (%s)", o.Kind, o.Namespace, o.Name, o.APIVersion())
}

// SecretRef identifies a secret that an object needs.
type SecretRef struct {
	Namespace, Name string
	// Optional says that the controller tolerates a missing secret. In a manifest, an empty secret stands for
	// a missing one.
	Optional bool
}

// maxSecrets limits how many secrets one object can make a reader request.
const maxSecrets = 100

// State returns the state file of an object that a server sent, and the version of the object. It calls get
// once for each secret that is needed, but only if there is a state. get must return nil for a missing
// secret. State returns [ErrNoState] if the object has no state.
//
// A namespaced object may only name secrets in its own namespace. A cluster-scoped object, which only an
// administrator can write, may name any secret that the reader may read.
func (o *Object) State(object []byte, get func(SecretRef) ([]byte, error)) (state []byte, version string, err error) {
	var refs []SecretRef
	cost := meter.New(len(object))
	obj, err := answer(object, o.means, cost)
	if err == nil {
		refs, err = o.needs(obj, cost)
	}
	if err != nil {
		return nil, "", o.explain(err)
	}
	data := map[SecretRef]map[string]string{}
	left := maxManifest - len(object)
	for _, ref := range refs {
		text, err := get(ref)
		if err != nil {
			return nil, "", err
		}
		if left -= len(text); left < 0 {
			return nil, "", o.explain(fmt.Errorf("the object and its secrets are larger than %d bytes", maxManifest))
		}
		cost.Add(len(text))
		if data[ref], err = ref.read(text, cost); err != nil {
			return nil, "", o.explain(err)
		}
	}
	state, err = o.file(obj, func(ref SecretRef) (map[string]string, error) { return data[ref], nil }, cost)
	if err != nil {
		return nil, "", o.explain(err)
	}
	return state, obj.text("metadata", "resourceVersion"), nil
}

// needs returns the secrets that are needed to rebuild the state, without duplicates.
func (o *Object) needs(obj object, cost *meter.Meter) ([]SecretRef, error) {
	var refs []SecretRef
	_, err := o.file(obj, func(ref SecretRef) (map[string]string, error) {
		if !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
		if len(refs) > maxSecrets {
			return nil, fmt.Errorf("the object names more than %d secrets", maxSecrets)
		}
		return nil, nil
	}, cost)
	return refs, err
}

// File returns the state file of the object in a manifest, and charges the work to cost. It returns
// [ErrNoState] if the object has no state.
func (o *Object) File(manifest []byte, cost *meter.Meter) ([]byte, error) {
	objects, err := parse(manifest, cost)
	if errors.Is(err, errNeither) && bytes.Contains(manifest, []byte("{{")) {
		return nil, errors.New("the manifest is a template, for example for Helm; run helm template to replace the parts between " +
			"{{ and }}")
	}
	if err != nil {
		return nil, fmt.Errorf("the manifest: %w", err)
	}
	obj, err := o.pick(objects)
	if err != nil {
		return nil, err
	}
	secrets := map[SecretRef]map[string]string{}
	data, err := o.file(obj, func(ref SecretRef) (map[string]string, error) {
		data, known := secrets[ref]
		if known {
			return data, nil
		}
		if err := cost.Charge(1+int64(len(objects))/16, "the secrets that it names"); err != nil {
			return nil, err
		}
		data, err := secretIn(objects, ref, cost)
		secrets[ref] = data
		return data, err
	}, cost)
	if err != nil {
		return nil, o.explain(err)
	}
	return data, nil
}

func (o *Object) explain(err error) error {
	if errors.Is(err, meter.ErrCost) {
		return fmt.Errorf("%s: %w; find out who wrote it, and remove everything that the state does not need", o, err)
	}
	return fmt.Errorf("%s: %w", o, err)
}

// secrets is a function that returns the data of a secret, or nil for an optional secret that does not exist.
type secrets func(SecretRef) (map[string]string, error)

func (o *Object) file(obj object, look secrets, cost *meter.Meter) ([]byte, error) {
	switch {
	case o.isModule():
		return moduleState(obj)
	case o.isKubeform():
		return o.kubeformState(obj, look, cost)
	}
	return o.crossplaneState(obj, look, cost)
}
