package tfstate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/syntax"
)

// Resources is the index of a state's resources. Instances stay as the file
// has them until somebody asks.
type Resources struct {
	version   int
	byAddress map[string]*storedResource // :: address without instance key → resource
}

// storedResource is a resource in format 4.
type storedResource struct {
	module, mode, typ, name string
	provider                string // the address of its configuration
	instances               []byte // as the file has them

	twice bool // in the state
}

func (r *storedResource) address() Address {
	return Address{module: r.module, mode: r.mode, typ: r.typ, name: r.name}
}

// ParseResources reads a state file with its resources. Unlike [Parse] it takes
// as much memory as they have bytes.
func ParseResources(file []byte) (*State, error) {
	s, err := Parse(file)
	if err != nil {
		return nil, err
	}
	s.Resources = &Resources{version: s.Version, byAddress: map[string]*storedResource{}}
	if s.Version != 4 {
		return s, nil
	}
	var list []byte
	if err := jsonwalk.Members(file, func(name string, value []byte) (bool, error) {
		if strings.EqualFold(name, "resources") {
			list = value
		}
		return true, nil
	}); err != nil || s.Resources.index(list) != nil {
		return nil, errForm("resources")
	}
	return s, nil
}

func (r *Resources) index(list []byte) error {
	if list == nil || string(list) == "null" {
		return nil
	}
	modules := map[string]string{} // :: as the file has it → as it is compared
	reader := jsonwalk.NewReader(list)
	return reader.Array(func() error {
		one, err := readResource(reader)
		if err != nil {
			return err
		}
		if one.mode != managed && one.mode != data {
			return nil // a kind that later versions may have
		}
		module, known := modules[one.module]
		if !known {
			module = canonicalModule(one.module)
			modules[one.module] = module
		}
		one.module = module
		address := one.address().resource()
		one.twice = r.byAddress[address] != nil
		r.byAddress[address] = one
		return nil
	})
}

// readResource refuses what is no resource, before there are millions of them.
func readResource(reader *jsonwalk.Reader) (*storedResource, error) {
	r := &storedResource{}
	if err := reader.Object(func(name string) (err error) {
		var into *string
		switch strings.ToLower(name) {
		case "module":
			into = &r.module
		case "mode":
			into = &r.mode
		case "type":
			into = &r.typ
		case "name":
			into = &r.name
		case "provider":
			into = &r.provider
		case "instances":
			value, err := reader.Skip()
			r.instances = bytes.Clone(value)
			return err
		}
		if into == nil {
			_, err = reader.Skip()
		} else {
			*into, err = reader.String()
		}
		return err
	}); err != nil {
		return nil, err
	}
	if r.mode == "" || r.typ == "" || r.name == "" {
		return nil, errors.New("a resource without mode, type or name")
	}
	return r, nil
}

// Find returns the resource at an address. The zero Address is that of the only
// resource in the state.
func (r *Resources) Find(a Address) (*Resource, error) {
	if r.version != 4 {
		return nil, fmt.Errorf("the state is in format version %d, in which resources are text without types; Terraform 0.12 or later, or "+
			"OpenTofu, writes the state anew with the next apply", r.version)
	}
	if a == (Address{}) {
		return r.only()
	}
	stored := r.byAddress[a.resource()]
	if stored == nil {
		return nil, fmt.Errorf("the state has no resource %s%s", show(a.resource()), r.nearby(a))
	}
	return stored.find(a.key)
}

func (r *Resources) only() (*Resource, error) {
	if len(r.byAddress) == 1 {
		for _, stored := range r.byAddress {
			return stored.find(instanceKey{})
		}
	}
	return nil, fmt.Errorf("the state has %d resources; say which one with address", len(r.byAddress))
}

// nearby helps to find a resource that is called otherwise, or in another
// module.
func (r *Resources) nearby(a Address) string {
	var alike, elsewhere []string
	for address, stored := range r.byAddress {
		// Only these can be near, and to compare long ones costs their product.
		if d := len(address) - len(a.resource()); d >= -3 && d <= 3 && len(address) < maxShown {
			alike = append(alike, address)
		}
		if stored.mode == a.mode && stored.typ == a.typ && stored.name == a.name {
			elsewhere = append(elsewhere, address)
		}
	}
	slices.Sort(alike)
	if found := syntax.Suggest(a.resource(), alike); found != "" {
		return found
	}
	if len(elsewhere) == 0 {
		return ""
	}
	slices.Sort(elsewhere)
	return "; it has " + list(elsewhere)
}

// list shows some texts from the file.
func list(all []string) string {
	const most = 5
	var shown []string
	for _, one := range all[:min(most, len(all))] {
		shown = append(shown, show(one))
	}
	if len(all) > most {
		shown = append(shown, fmt.Sprintf("and %d more", len(all)-most))
	}
	return strings.Join(shown, ", ")
}

// Resource is a resource, or one instance of it, not decoded yet.
type Resource struct {
	Address Address
	Mode    string // "managed" or "data"
	Type    string

	// Provider is the provider's address, such as
	// registry.terraform.io/hashicorp/aws.
	Provider string

	// SchemaVersion is that of all instances, nil if they differ.
	SchemaVersion *uint64

	instances []storedInstance
}

// storedInstance is an instance in format 4. Its large members are parts of the
// index, as the file had them.
type storedInstance struct {
	IndexKey      json.RawMessage `json:"index_key"`
	Deposed       string          `json:"deposed"`
	Provider      string          `json:"provider"` // OpenTofu only, where instances differ
	SchemaVersion uint64          `json:"schema_version"`

	attributes []byte
	flat       bool // it has attributes_flat instead
	sensitive  []byte
	key        instanceKey
}

func readInstance(raw []byte) (i storedInstance, err error) {
	small, err := jsonwalk.Pick(raw, func(name string, value []byte) bool {
		switch strings.ToLower(name) { // encoding/json does not care either
		case "attributes":
			i.attributes = value
		case "attributes_flat":
			i.flat = string(value) != "null"
		case "sensitive_attributes":
			i.sensitive = value
		case "index_key", "deposed", "provider", "schema_version":
			return true
		}
		return false
	})
	if err == nil {
		err = json.Unmarshal(small, &i)
	}
	if err == nil {
		err = i.readKey()
	}
	return i, err
}

func (i *storedInstance) readKey() error {
	raw := string(i.IndexKey)
	switch {
	case raw == "" || raw == "null":
		return nil
	case raw[0] == '"':
		name, _ := jsonString(i.IndexKey)
		i.key = instanceKey{kind: stringKey, name: name}
		return nil
	}
	n, err := parseIndex(raw)
	i.key = instanceKey{kind: intKey, index: n}
	return err
}

// find chooses one instance by its key, or all without one.
func (r *storedResource) find(key instanceKey) (*Resource, error) {
	address := r.address()
	address.key = key
	if r.twice {
		return nil, fmt.Errorf("the state has the resource %s twice", show(address.resource()))
	}
	found := &Resource{Address: address, Mode: r.mode, Type: r.typ}
	keys, err := found.choose(r.instances)
	if err != nil {
		return nil, fmt.Errorf("resource %s: %w", show(address.resource()), err)
	}
	if len(found.instances) == 0 {
		return nil, noInstance(address, keys)
	}
	first := found.instances[0]
	found.SchemaVersion = &first.SchemaVersion
	for _, other := range found.instances {
		if other.SchemaVersion != first.SchemaVersion {
			found.SchemaVersion = nil
		}
	}
	found.Provider = providerAddress(cmp.Or(first.Provider, r.provider))
	return found, nil
}

// choose keeps the instances that the address means, and returns the keys of
// all.
func (r *Resource) choose(instances []byte) ([]instanceKey, error) {
	if len(instances) == 0 {
		return nil, nil
	}
	seen := map[instanceKey]bool{}
	var refused error
	reader := jsonwalk.NewReader(instances)
	if err := reader.Array(func() error {
		raw, err := reader.Skip()
		if err != nil {
			return err
		}
		one, err := readInstance(raw)
		if err != nil || one.Deposed != "" { // which waits to be destroyed
			return err
		}
		switch {
		case seen[one.key]:
			refused = fmt.Errorf("it has the instance %s twice", show(one.key.String()))
		case len(seen) == maxInstances:
			refused = fmt.Errorf("it has more than %d instances", maxInstances)
		}
		if refused != nil {
			return refused
		}
		seen[one.key] = true
		if r.Address.key == (instanceKey{}) || r.Address.key == one.key {
			r.instances = append(r.instances, one)
		}
		return nil
	}); err != nil {
		return nil, cmp.Or(refused, errors.New("its instances are not in the form that Terraform and OpenTofu write"))
	}
	return slices.Collect(maps.Keys(seen)), nil
}

func noInstance(a Address, keys []instanceKey) error {
	switch {
	case len(keys) == 0:
		return fmt.Errorf("the resource %s has no instances", show(a.resource()))
	case slices.Contains(keys, instanceKey{}):
		return fmt.Errorf("the resource %s has no instance keys; leave %s out", show(a.resource()), show(a.key.String()))
	}
	var texts []string
	for _, k := range keys {
		texts = append(texts, k.String())
	}
	slices.Sort(texts)
	return fmt.Errorf("the resource %s has no instance %s; it has %s", show(a.resource()), show(a.key.String()), list(texts))
}

// Size is the length in bytes of the attributes as the file holds them.
func (r *Resource) Size() int {
	size := 0
	for _, i := range r.instances {
		size += len(i.attributes)
	}
	return size
}

// Marked reports whether the state says which attributes are sensitive. States
// of Terraform 0.13 and older do not.
func (r *Resource) Marked() bool {
	for _, i := range r.instances {
		if len(i.sensitive) == 0 || string(i.sensitive) == "null" {
			return false
		}
	}
	return true
}

// Values decodes the attributes, and parts those that the state marks as
// sensitive from the others. One instance gives an object of attributes. All
// instances of a resource with count give a tuple of such objects, with null
// for an index that is missing, and those of a resource with for_each an object
// of them, by key. Types are those that follow from the JSON: objects and
// tuples in place of maps, lists and sets.
func (r *Resource) Values() (attributes, sensitive cty.Value, err error) {
	if attributes, sensitive, err = r.values(); err != nil {
		return cty.NilVal, cty.NilVal, fmt.Errorf("resource %s: %w", show(r.Address.String()), err)
	}
	return attributes, sensitive, nil
}

func (r *Resource) values() (cty.Value, cty.Value, error) {
	b := newBudget(r.Size())
	for _, i := range r.instances {
		// Terraform requires the type of each value next to it.
		if err := b.typ(len(i.attributes), nesting(i.attributes)); err != nil {
			return cty.NilVal, cty.NilVal, err
		}
	}
	kind := r.instances[0].key.kind
	if kind == noKey && len(r.instances) == 1 || r.Address.key.kind != noKey {
		return r.instances[0].values(b)
	}
	open, sensitive := map[string]cty.Value{}, map[string]cty.Value{}
	byIndex := map[int][2]cty.Value{}
	last := 0
	for _, i := range r.instances {
		if i.key.kind != kind {
			return cty.NilVal, cty.NilVal, errors.New("its instances have keys of several kinds; name one of them")
		}
		a, s, err := i.values(b)
		if err != nil {
			return cty.NilVal, cty.NilVal, fmt.Errorf("instance %s: %w", show(i.key.String()), err)
		}
		if kind == stringKey {
			open[i.key.name], sensitive[i.key.name] = a, s
			continue
		}
		byIndex[i.key.index] = [2]cty.Value{a, s}
		last = max(last, i.key.index)
	}
	if kind == stringKey {
		return cty.ObjectVal(open), cty.ObjectVal(sensitive), nil
	}
	return inOrder(byIndex, last)
}

// inOrder puts each instance at its index.
func inOrder(byIndex map[int][2]cty.Value, last int) (cty.Value, cty.Value, error) {
	if last-len(byIndex) >= maxGaps {
		return cty.NilVal, cty.NilVal, fmt.Errorf("more than %d of its instances are missing; name one of them", maxGaps)
	}
	open, sensitive := make([]cty.Value, last+1), make([]cty.Value, last+1)
	for i := range open {
		open[i], sensitive[i] = hidden, hidden
		if both, ok := byIndex[i]; ok {
			open[i], sensitive[i] = both[0], both[1]
		}
	}
	return cty.TupleVal(open), cty.TupleVal(sensitive), nil
}

func (i storedInstance) values(b *budget) (open, sensitive cty.Value, err error) {
	switch {
	case i.flat:
		return open, sensitive, errors.New("its attributes are text without types, from Terraform 0.11 or older; the next apply with a later " +
			"version writes them anew")
	case len(i.attributes) == 0 || i.attributes[0] != '{':
		return open, sensitive, errors.New("its attributes are not an object")
	case nesting(i.attributes) > maxNesting:
		return open, sensitive, fmt.Errorf("its attributes are nested more than %d deep", maxNesting)
	}
	m, err := readMarks(i.sensitive)
	if err != nil {
		return open, sensitive, err
	}
	ty, err := ctyjson.ImpliedType(i.attributes)
	if err != nil {
		// The error may quote a key.
		return open, sensitive, errors.New("no type fits its attributes; does an object in them have the same key twice?")
	}
	v, err := (&decoder{sensitive: true, budget: b}).decode(i.attributes, ty)
	if err != nil {
		return open, sensitive, err
	}
	open, sensitive = m.split(v)
	return open, sensitive, nil
}
