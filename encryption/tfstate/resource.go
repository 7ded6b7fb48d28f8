package tfstate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/address"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// storedResource is a resource in format 4, with its address in the state.
type storedResource struct {
	address.Address

	provider  string // the address of the provider configuration
	instances []byte // JSON of the instances, a slice of the file

	twice bool // whether the state contains the resource twice
}

// resourceIndex maps addresses to the resources of a state. The addresses have no instance keys.
type resourceIndex map[string]*storedResource

// indexed returns the index of the resources in a state's list. Instances are decoded only when
// they are needed.
func indexed(list []byte) (resourceIndex, error) {
	index := resourceIndex{}
	err := eachResource(list, func(one *storedResource) error {
		at := one.Resource()
		one.twice = index[at] != nil
		index[at] = one
		return nil
	})
	return index, err
}

// eachResource calls visit for each resource in a state's list, without decoding instances. It
// stops at the first error from visit.
func eachResource(list []byte, visit func(*storedResource) error) error {
	if list == nil || string(list) == "null" {
		return nil
	}
	modules := map[string]string{} // canonical module paths by the path in the file
	var refused error
	reader := jsonwalk.NewReader(list)
	if err := reader.Array(func() error {
		one, err := readResource(reader)
		if err != nil {
			return err
		}
		if one.Mode != address.Managed && one.Mode != address.Data {
			return nil // later versions may have other modes
		}
		module, known := modules[one.Module]
		if !known {
			module = address.Module(one.Module)
			modules[one.Module] = module
		}
		one.Module = module
		refused = visit(one)
		return refused
	}); err != nil {
		return cmp.Or(refused, errForm("resources"))
	}
	return nil
}

// readResource reads one element of a state's resource list. It returns an error for an element
// that is not a resource, so that a file cannot make the program read millions of them.
func readResource(reader *jsonwalk.Reader) (*storedResource, error) {
	r := &storedResource{}
	if err := reader.Object(func(name string) (err error) {
		var into *string
		switch jsonwalk.Fold(name) {
		case "module":
			into = &r.Module
		case "mode":
			into = &r.Mode
		case "type":
			into = &r.Type
		case "name":
			into = &r.Name
		case "provider":
			into = &r.provider
		case "instances":
			r.instances, err = reader.Skip()
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
	if r.Mode == "" || r.Type == "" || r.Name == "" {
		return nil, errors.New("a resource has no mode, type or name")
	}
	return r, nil
}

// Resource returns the resource at an address, in the form in which Terraform and OpenTofu print
// it, such as module.net["a"].aws_vpc.main[0]. The address may be at most 16 KiB long. Without the
// last index, it stands for all instances. "" stands for the only resource of a state, and is an
// error if the state has none or several.
//
// Resource returns an error for states in formats 1 to 3, in which all attributes are text without
// types, and for a resource with more than 100,000 instances. If the state has no such resource,
// the error names the nearest address.
func (s *State) Resource(address string) (*Resource, error) {
	if err := s.hasResources(); err != nil {
		return nil, err
	}
	index, err := s.resources()
	if err != nil {
		return nil, err
	}
	return index.find(address)
}

func (s *State) hasResources() error {
	switch {
	case s.resources == nil:
		return errors.New("the resources of the state were not kept")
	case s.Version != 4:
		return fmt.Errorf("resources cannot be read from format version %d of a state, because it stores no types; run apply with "+
			"Terraform 0.12 or later, or with OpenTofu, to upgrade the state", s.Version)
	}
	return nil
}

func (index resourceIndex) find(text string) (*Resource, error) {
	if text == "" {
		return index.only()
	}
	a, err := address.Parse(text)
	if err != nil {
		return nil, err
	}
	stored := index[a.Resource()]
	if stored == nil {
		return nil, fmt.Errorf("the state has no resource %s%s", show(a.Resource()), index.nearby(a))
	}
	return stored.find(a.Key)
}

func (index resourceIndex) only() (*Resource, error) {
	if len(index) == 1 {
		for _, stored := range index {
			return stored.find(address.Key{})
		}
	}
	if len(index) == 0 {
		return nil, errors.New("the state has no resources")
	}
	return nil, fmt.Errorf("the state has %d resources; choose a resource with the argument address", len(index))
}

// nearby returns the part of an error message that names similar addresses. If there are none, it
// names resources of the same type and name elsewhere, or other resources of the state.
func (index resourceIndex) nearby(a address.Address) string {
	var alike, elsewhere []string
	for at, stored := range index {
		// Comparing two addresses costs the product of their lengths, and only addresses of similar
		// length can be near.
		if d := len(at) - len(a.Resource()); d >= -3 && d <= 3 && len(at) < maxShown {
			alike = append(alike, at)
		}
		if stored.Type == a.Type && stored.Name == a.Name {
			elsewhere = append(elsewhere, at)
		}
	}
	slices.Sort(alike)
	if found := syntax.Suggest(a.Resource(), alike); found != "" {
		return found
	}
	if len(index) == 0 {
		return ", because it has no resources; check which state is read"
	}
	if len(elsewhere) == 0 {
		elsewhere = slices.Collect(maps.Keys(index))
	}
	slices.Sort(elsewhere)
	return "; it has " + syntax.List(elsewhere, maxListed, show)
}

const maxListed = 5 // maximum number of texts from the file in an error

// Resource is a resource, or one instance of it, not yet decoded.
type Resource struct {
	Mode string // "managed", or "data" for a data source
	Type string // such as "aws_vpc"

	// Provider is the address of the provider, such as "registry.terraform.io/hashicorp/aws", or
	// "provider.aws" in a state that Terraform 0.12 wrote.
	Provider string

	// SchemaVersion is the version of the provider's schema that the attributes follow. It is nil
	// if the instances follow several versions.
	SchemaVersion *uint64

	address   address.Address
	instances []storedInstance
}

// storedInstance is an instance in format 4. Its large members are slices of the file.
type storedInstance struct {
	IndexKey      json.RawMessage `json:"index_key"`
	Deposed       string          `json:"deposed"`
	Provider      string          `json:"provider"` // only in OpenTofu states whose instances have different providers
	SchemaVersion uint64          `json:"schema_version"`

	attributes json.RawMessage
	flat       json.RawMessage // attributes_flat, which old states have instead of attributes
	sensitive  json.RawMessage
	key        address.Key
}

func readInstance(raw []byte) (storedInstance, error) {
	var i storedInstance
	large := map[string]*json.RawMessage{"attributes": &i.attributes, "attributes_flat": &i.flat, "sensitive_attributes": &i.sensitive}
	err := jsonwalk.Decode(raw, &i, large, "index_key", "deposed", "provider", "schema_version")
	switch {
	case err != nil:
		return i, err
	case string(raw) == "null":
		return i, errors.New("an instance is null")
	}
	err = i.readKey()
	return i, err
}

func (i *storedInstance) readKey() error {
	raw := string(i.IndexKey)
	switch {
	case raw == "" || raw == "null":
		return nil
	case raw[0] == '"':
		name, _ := jsonString(i.IndexKey)
		i.key = address.Key{Kind: address.StringKey, Name: name}
		return nil
	}
	n, err := strconv.ParseUint(raw, 10, 31)
	i.key = address.Key{Kind: address.IntKey, Index: int(n)}
	return err
}

// find returns the instance with this key, or all instances for the zero key.
func (r *storedResource) find(key address.Key) (*Resource, error) {
	at := r.Address
	at.Key = key
	if r.twice {
		return nil, fmt.Errorf("the state has the resource %s twice", show(at.Resource()))
	}
	found := &Resource{Mode: r.Mode, Type: r.Type, address: at}
	keys, err := found.choose(r.instances)
	if err != nil {
		return nil, fmt.Errorf("resource %s: %w", show(at.Resource()), err)
	}
	if len(found.instances) == 0 {
		return nil, noInstance(at, keys)
	}
	first := found.instances[0]
	if !slices.ContainsFunc(found.instances, func(i storedInstance) bool { return i.SchemaVersion != first.SchemaVersion }) {
		found.SchemaVersion = &first.SchemaVersion
	}
	found.Provider = address.Provider(cmp.Or(first.Provider, r.provider))
	return found, nil
}

// choose adds the instances that match the address of r to r. It returns the keys of all instances.
func (r *Resource) choose(instances []byte) ([]address.Key, error) {
	seen := map[address.Key]bool{}
	if err := eachInstance(instances, func(one storedInstance) error {
		switch {
		case seen[one.key]:
			return fmt.Errorf("it has the instance %s twice", show(one.key.String()))
		case len(seen) == maxInstances:
			return fmt.Errorf("it has more than %d instances", maxInstances)
		}
		seen[one.key] = true
		if r.address.Key == (address.Key{}) || r.address.Key == one.key {
			r.instances = append(r.instances, one)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return slices.Collect(maps.Keys(seen)), nil
}

// eachInstance calls visit for each instance of a resource, except deposed ones. It stops at the
// first error from visit.
func eachInstance(list []byte, visit func(storedInstance) error) error {
	if len(list) == 0 {
		return nil
	}
	var refused error
	reader := jsonwalk.NewReader(list)
	if err := reader.Array(func() error {
		raw, err := reader.Skip()
		if err != nil {
			return err
		}
		one, err := readInstance(raw)
		if err != nil || one.Deposed != "" {
			return err
		}
		refused = visit(one)
		return refused
	}); err != nil {
		return cmp.Or(refused, errors.New("its instances are not in the form that Terraform and OpenTofu write"))
	}
	return nil
}

func noInstance(a address.Address, keys []address.Key) error {
	switch {
	case len(keys) == 0:
		return fmt.Errorf("the resource %s has no instances", show(a.Resource()))
	case slices.Contains(keys, address.Key{}):
		return fmt.Errorf("the resource %s has no instance keys; leave %s out", show(a.Resource()), show(a.Key.String()))
	}
	var texts []string
	for _, k := range keys {
		texts = append(texts, k.String())
	}
	slices.Sort(texts)
	return fmt.Errorf("the resource %s has no instance %s; it has %s", show(a.Resource()), show(a.Key.String()),
		syntax.List(texts, maxListed, show))
}

// Address returns the address of the resource or the instance, in the form in which Terraform and
// OpenTofu print it, such as module.net["a"].aws_vpc.main[0].
func (r *Resource) Address() string { return r.address.String() }

// Size returns the length of the attributes in the file, in bytes.
func (r *Resource) Size() int {
	size := 0
	for _, i := range r.instances {
		size += len(i.attributes)
	}
	return size
}

// Marked reports whether the state says which attributes are sensitive. States of Terraform 0.13
// and older do not, so any attribute in them may be a secret.
func (r *Resource) Marked() bool {
	return !slices.ContainsFunc(r.instances, func(i storedInstance) bool { return len(i.sensitive) == 0 || string(i.sensitive) == "null" })
}

// Values decodes the attributes, and separates the attributes that the state marks as sensitive
// from the others. A single instance gives an object of attributes. A resource with count gives a
// tuple of such objects, with null for a missing index. A resource with for_each gives an object
// whose keys are the instance keys. All types follow from the JSON, so there are objects and tuples
// instead of maps, lists and sets.
//
// Each call decodes the attributes again. It returns [ErrCost] if decoding would cost too much for
// the size of the attributes, and [ErrDigits] if a number is too long. More than 10,000 missing
// indexes are an error, too.
func (r *Resource) Values() (attributes, sensitive cty.Value, err error) {
	if attributes, sensitive, err = r.values(); err != nil {
		return cty.NilVal, cty.NilVal, fmt.Errorf("resource %s: %w", show(r.address.String()), err)
	}
	return attributes, sensitive, nil
}

func (r *Resource) values() (cty.Value, cty.Value, error) {
	if len(r.instances) == 0 {
		return cty.NilVal, cty.NilVal, errors.New("it is not part of a state: a state has at least one instance of each resource")
	}
	b := newBudget(r.Size())
	kind := r.instances[0].key.Kind
	if kind == address.NoKey && len(r.instances) == 1 || r.address.Key.Kind != address.NoKey {
		return r.instances[0].values(b)
	}
	open, sensitive := map[string]cty.Value{}, map[string]cty.Value{}
	byIndex := map[int][2]cty.Value{}
	last := 0
	for _, i := range r.instances {
		if i.key.Kind != kind {
			return cty.NilVal, cty.NilVal, errors.New("its instances have keys of different kinds; name one instance")
		}
		a, s, err := i.values(b)
		if err != nil {
			return cty.NilVal, cty.NilVal, fmt.Errorf("instance %s: %w", show(i.key.String()), err)
		}
		if kind == address.StringKey {
			open[i.key.Name], sensitive[i.key.Name] = a, s
			continue
		}
		byIndex[i.key.Index] = [2]cty.Value{a, s}
		last = max(last, i.key.Index)
	}
	if kind == address.StringKey {
		return cty.ObjectVal(open), cty.ObjectVal(sensitive), nil
	}
	return inOrder(byIndex, last)
}

func inOrder(byIndex map[int][2]cty.Value, last int) (cty.Value, cty.Value, error) {
	if last-len(byIndex) >= maxGaps {
		return cty.NilVal, cty.NilVal, fmt.Errorf("more than %d instances are missing between its keys; name one instance", maxGaps)
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
	case i.flat != nil && string(i.flat) != "null":
		return open, sensitive, errors.New("its attributes have no types, because Terraform 0.11 or older wrote them; run apply " +
			"with a later version to upgrade the state")
	case len(i.attributes) == 0 || i.attributes[0] != '{':
		return open, sensitive, errors.New("its attributes are not an object")
	}
	m, err := readMarks(i.sensitive)
	if err != nil {
		return open, sensitive, err
	}
	ty, err := impliedType(i.attributes, "its attributes", b) // the state does not store attribute types
	if err != nil {
		return open, sensitive, err
	}
	v, err := (&decoder{sensitive: true, budget: b}).decode(i.attributes, ty)
	if err != nil {
		return open, sensitive, err
	}
	open, sensitive = m.split(v)
	return open, sensitive, nil
}
