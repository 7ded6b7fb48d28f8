package sops

import (
	"fmt"
	"slices"
	"strings"
)

// In JSON and YAML, sops binds a value to the names above it, joined by colons, and computes the MAC over the
// sequence of values. Neither protects the boundaries between list elements, or empty values. An attacker can
// therefore move brackets without knowing a key: part of an object can move to the next element, "a": {"b":
// …} can become "a:b": …, and nulls can fill the gaps. The method therefore accepts only objects in the form
// that Terraform and OpenTofu write. The tests list the changes that are still possible.

// arrange returns an error unless a decrypted state has the form that Terraform and OpenTofu write. It
// replaces the marks of sensitive values with marks that do not depend on the form. It leaves other documents
// unchanged.
func arrange(state object) error {
	version := 0.0
	switch v := state.get("version").(type) {
	case int:
		version = float64(v)
	case float64:
		version = v
	case []any, object:
		return misplaced("version", "the value is not a number")
	}
	if version < 1 || version > 4 {
		return nil // if this is meant to be a state, parsing it will fail later
	}
	if err := stateShape.check("", state); err != nil {
		return err
	}
	if version < 4 {
		return moduleShape.each(state.get("modules"), "modules", nil)
	}
	if err := checkOutputs(state.get("outputs")); err != nil {
		return err
	}
	by, _ := state.get("terraform_version").(string)
	unmarked := strings.HasPrefix(by, "0.12.") || strings.HasPrefix(by, "0.13.")
	return resourceShape.each(state.get("resources"), "resources", func(resource object) (object, error) {
		return resource, instanceShape.each(resource.get("instances"), "instances of a resource",
			func(instance object) (object, error) { return checkInstance(instance, unmarked) })
	})
}

func misplaced(where, what string) error {
	return fmt.Errorf("neither Terraform nor OpenTofu writes a state like this: in %s, %s. Someone may have changed the file; "+
		"restore an intact copy. To protect the order of lists, use the binary mode of sops", quote(where), what)
}

// shape describes an object in the state format, as Terraform and OpenTofu write it.
type shape struct {
	names []string // known names in order; other names follow in any order
	must  []string // names that always have a value
}

var (
	stateShape = shape{names: []string{"version", "terraform_version", "serial", "lineage", "modules", "outputs", "resources",
		"check_results"}}
	moduleShape   = shape{names: []string{"path", "locals", "outputs", "resources", "depends_on"}, must: []string{"path"}}
	resourceShape = shape{names: []string{"module", "mode", "type", "name", "each", "provider", "instances"},
		must: []string{"mode", "type", "name"}}
	instanceShape = shape{names: []string{"index_key", "status", "deposed", "provider", "schema_version", "attributes", "attributes_flat",
		"sensitive_attributes"}, must: []string{"schema_version"}}
)

// each checks the elements of a list, which may be missing. If also is not nil, each replaces every element
// with the result of also.
func (s shape) each(list any, where string, also func(object) (object, error)) error {
	all, ok := list.([]any)
	if !ok && list != nil {
		return misplaced(where, "the value is not a list")
	}
	for i, element := range all {
		branch, ok := element.(object)
		if !ok {
			return misplaced(where, "an element is not an object")
		}
		if err := s.inOrder(where, branch); err != nil {
			return err
		}
		if also == nil {
			continue
		}
		changed, err := also(branch)
		if err != nil {
			return err
		}
		all[i] = changed
	}
	return nil
}

// check returns an error for a name that Terraform and OpenTofu do not write, such as a known name in a
// different case. It does not check the order of the names.
func (s shape) check(where string, branch object) error {
	for _, item := range branch {
		i := slices.IndexFunc(s.names, func(known string) bool { return strings.EqualFold(known, item.name) })
		if i >= 0 && s.names[i] != item.name || strings.Contains(item.name, ":") {
			return misplaced(where, "the name "+quote(item.name)+" is unknown")
		}
	}
	return nil
}

func (s shape) inOrder(where string, branch object) error {
	if err := s.check(where, branch); err != nil {
		return err
	}
	last := 0
	for _, item := range branch {
		i := slices.Index(s.names, item.name)
		if i < 0 {
			i = len(s.names)
		}
		if i < last {
			return misplaced(where, "the names in an element are not in the usual order")
		}
		last = i
	}
	for _, name := range s.must {
		if !hasContent(branch.get(name)) {
			return misplaced(where, "an element has no "+name)
		}
	}
	return nil
}

// checkInstance returns an instance with new marks of its sensitive attributes. It returns an error if the
// instance does not have the form that Terraform and OpenTofu write.
func checkInstance(instance object, unmarked bool) (object, error) {
	const where = "instances of a resource"
	attributes, ok := instance.get("attributes").(object)
	if _, flat := instance.get("attributes_flat").(object); !ok && !flat {
		return nil, misplaced(where, "an element has no attributes")
	}
	if err := (shape{}).check(where, attributes); err != nil {
		return nil, err
	}
	if err := checkSorted(attributes, where, false); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(instance, func(item member) bool { return item.name == "sensitive_attributes" })
	if i < 0 {
		i, instance = len(instance), append(instance, member{name: "sensitive_attributes"})
	}
	instance[i].value = marks(instance[i].value, attributes, unmarked)
	return instance, nil
}

// marks returns the paths of sensitive attributes. It ignores the list structure in the stored marks, which
// an attacker could change: each name in a path marks the whole attribute with that name. If no name matches
// an attribute, all attributes are sensitive. An empty list means that no attribute is sensitive, unless
// unmarked is true because the state was written by a version without marks.
func marks(stored any, attributes object, unmarked bool) any {
	if list, ok := stored.([]any); ok && len(list) == 0 && !unmarked {
		return list
	}
	unseen := map[string]bool{}
	for _, item := range attributes {
		unseen[item.name] = true
	}
	paths := []any{}
	for _, name := range names(stored) {
		if unseen[name] {
			paths = append(paths, []any{object{{name: "type", value: "get_attr"}, {name: "value", value: name}}})
		}
		unseen[name] = false
	}
	if len(paths) == 0 {
		return []any{[]any{}}
	}
	return paths
}

// names returns the strings stored under the single name "value", at any depth of lists. Sops binds these
// strings only to that name.
func names(stored any) (all []string) {
	_ = walk(stored, nil, func(value any, path []string) error { // the visit function never fails
		if name, ok := value.(string); ok && len(path) == 1 && path[0] == "value" {
			all = append(all, name)
		}
		return nil
	})
	return all
}

// checkSorted returns an error if the names of an object in a list are out of order, or if a name may come
// from inside a neighboring object.
func checkSorted(value any, where string, inList bool) error {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			if err := checkSorted(element, where, true); err != nil {
				return err
			}
		}
	case object:
		last, around := "", namesAround(v)
		for _, item := range v {
			if inList && item.name < last && !isWrapper(v) || fromInside(item.name, around) {
				return misplaced(where, "the name "+quote(item.name)+" is in the wrong place")
			}
			last = item.name
			if err := checkSorted(item.value, where, inList); err != nil {
				return err
			}
		}
	}
	return nil
}

// namesAround returns the names in branch whose objects may have lost a member to branch itself: an attacker
// can turn "a": {"b": …} into "a:b": ….
func namesAround(branch object) map[string]bool {
	if !slices.ContainsFunc(branch, func(item member) bool { return strings.Contains(item.name, ":") }) {
		return nil
	}
	around := map[string]bool{}
	for _, item := range branch {
		switch item.value.(type) {
		case nil, []any, object:
			around[item.name] = true
		}
	}
	return around
}

const maxColons = 64 // the maximum number of colons to check in a name

// fromInside reports whether name may consist of the name of a neighboring object, a colon, and a name from
// inside that object.
func fromInside(name string, around map[string]bool) bool {
	for i, n := 0, 0; len(around) > 0 && i < len(name) && n < maxColons; i++ {
		if name[i] == ':' {
			n++
			if around[name[:i]] {
				return true
			}
		}
	}
	return false
}
