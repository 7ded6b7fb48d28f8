package sops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/getsops/sops/v3"
)

// In JSON and YAML, sops binds a value to the names above it, joined by colons,
// and the MAC to the sequence of values. Neither knows the elements of a list,
// nor anything that is empty. So brackets can be moved without a key: part of an
// object goes to the next element, "a": {"b": …} becomes "a:b": …, and nulls
// fill the gaps. What is read is therefore as narrow as what Terraform and
// OpenTofu write. What remains possible is in the tests.

// arrange checks how a decrypted state is arranged, and makes its marks
// independent of it. What is no state is left alone.
func arrange(state sops.TreeBranch) error {
	version := 0.0
	switch v := member(state, "version").(type) {
	case int:
		version = float64(v)
	case float64:
		version = v
	case []any, sops.TreeBranch:
		return misplaced("version", "a number is required")
	}
	if version < 1 || version > 4 {
		return nil // the reader of states refuses it, if it is meant to be one
	}
	if err := stateShape.check("", state); err != nil {
		return err
	}
	if version < 4 {
		return moduleShape.each(member(state, "modules"), "modules", nil)
	}
	if err := checkOutputs(member(state, "outputs")); err != nil {
		return err
	}
	by, _ := member(state, "terraform_version").(string)
	unmarked := strings.HasPrefix(by, "0.12.") || strings.HasPrefix(by, "0.13.")
	return resourceShape.each(member(state, "resources"), "resources", func(resource sops.TreeBranch) (sops.TreeBranch, error) {
		return resource, instanceShape.each(member(resource, "instances"), "instances of a resource",
			func(instance sops.TreeBranch) (sops.TreeBranch, error) { return checkInstance(instance, unmarked) })
	})
}

func nameOf(item sops.TreeItem) string {
	name, _ := item.Key.(string)
	return name
}

// member returns the value under a name, nil if there is none.
func member(branch sops.TreeBranch, name string) any {
	for _, item := range branch {
		if item.Key == name {
			return item.Value
		}
	}
	return nil
}

func misplaced(where, what string) error {
	return fmt.Errorf("the state is not arranged as Terraform and OpenTofu write it: at %s, %s. Somebody may have changed the file: "+
		"in JSON and YAML, sops does not protect how lists are arranged. As one value, in its binary mode, it does", quote(where), what)
}

// shape is what Terraform and OpenTofu write for an object of the state format.
type shape struct {
	names []string // in their order; others come last, in any
	must  []string // of names, those that always have a value
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

// each checks the elements of a list, which may be absent. What also returns
// takes the place of the element.
func (s shape) each(list any, where string, also func(sops.TreeBranch) (sops.TreeBranch, error)) error {
	all, ok := list.([]any)
	if !ok && list != nil {
		return misplaced(where, "a list is required")
	}
	for i, element := range all {
		branch, ok := element.(sops.TreeBranch)
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

// check looks at the names alone: there is one such object.
func (s shape) check(where string, branch sops.TreeBranch) error {
	for _, item := range branch {
		name := nameOf(item)
		i := slices.IndexFunc(s.names, func(known string) bool { return strings.EqualFold(known, name) })
		if i >= 0 && s.names[i] != name || strings.Contains(name, ":") {
			return misplaced(where, "the name "+quote(name)+" is not one of theirs")
		}
	}
	return nil
}

func (s shape) inOrder(where string, branch sops.TreeBranch) error {
	if err := s.check(where, branch); err != nil {
		return err
	}
	last := 0
	for _, item := range branch {
		i := slices.IndexFunc(s.names, func(known string) bool { return known == item.Key })
		if i < 0 {
			i = len(s.names)
		}
		if i < last {
			return misplaced(where, "the names of an element are in another order")
		}
		last = i
	}
	for _, name := range s.must {
		if !hasContent(member(branch, name)) {
			return misplaced(where, "an element has no "+name)
		}
	}
	return nil
}

// withoutComments takes the comments out of lists, which YAML may have there.
func withoutComments(value any) any {
	switch v := value.(type) {
	case sops.TreeBranch:
		for i := range v {
			v[i].Value = withoutComments(v[i].Value)
		}
	case []any:
		kept := v[:0]
		for _, element := range v {
			if _, comment := element.(sops.Comment); !comment {
				kept = append(kept, withoutComments(element))
			}
		}
		return kept
	}
	return value
}

// checkInstance returns the instance with its marks.
func checkInstance(instance sops.TreeBranch, unmarked bool) (sops.TreeBranch, error) {
	const where = "instances of a resource"
	attributes, ok := member(instance, "attributes").(sops.TreeBranch)
	if _, flat := member(instance, "attributes_flat").(sops.TreeBranch); !ok && !flat {
		return nil, misplaced(where, "an element has no attributes")
	}
	if err := (shape{}).check(where, attributes); err != nil {
		return nil, err
	}
	if err := checkSorted(attributes, where, false); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(instance, func(item sops.TreeItem) bool { return item.Key == "sensitive_attributes" })
	if i < 0 {
		i, instance = len(instance), append(instance, sops.TreeItem{Key: "sensitive_attributes"})
	}
	instance[i].Value = marks(instance[i].Value, attributes, unmarked)
	return instance, nil
}

// marks are the paths of sensitive attributes, without what brackets say: which
// step follows which, in which list. Each name in them marks the whole attribute
// of that name. Without marks, or if they lead nowhere, everything is sensitive.
func marks(stored any, attributes sops.TreeBranch, unmarked bool) any {
	if list, ok := stored.([]any); ok && len(list) == 0 && !unmarked {
		return list
	}
	unseen := map[string]bool{}
	for _, item := range attributes {
		name := nameOf(item)
		unseen[name] = true
	}
	paths := []any{}
	for _, name := range names(stored, nil) {
		if unseen[name] {
			paths = append(paths, []any{sops.TreeBranch{{Key: "type", Value: "get_attr"}, {Key: "value", Value: name}}})
		}
		unseen[name] = false
	}
	if len(paths) == 0 {
		return []any{[]any{}}
	}
	return paths
}

// names collects the texts that lie under one name, "value", however many lists
// they are in: sops binds them to no more than that.
func names(stored any, path []string) (all []string) {
	switch v := stored.(type) {
	case string:
		if len(path) == 1 && path[0] == "value" {
			return []string{v}
		}
	case []any:
		for _, element := range v {
			all = append(all, names(element, path)...)
		}
	case sops.TreeBranch:
		for _, item := range v {
			name := nameOf(item)
			all = append(all, names(item.Value, append(path, name))...)
		}
	}
	return all
}

// checkSorted checks that the objects in lists have their names in order, and
// that no name may have come from inside its neighbour.
func checkSorted(value any, where string, inList bool) error {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			if err := checkSorted(element, where, true); err != nil {
				return err
			}
		}
	case sops.TreeBranch:
		last, hollow := "", hollowNames(v)
		for _, item := range v {
			name := nameOf(item)
			if inList && name < last && !isWrapper(v) || fromInside(name, hollow) {
				return misplaced(where, "the name "+quote(name)+" is not in its place")
			}
			last = name
			if err := checkSorted(item.Value, where, inList); err != nil {
				return err
			}
		}
	}
	return nil
}

// hollowNames are the names of what others may have been in, if a name in branch
// may have come from there.
func hollowNames(branch sops.TreeBranch) map[string]bool {
	if !slices.ContainsFunc(branch, func(item sops.TreeItem) bool {
		name := nameOf(item)
		return strings.Contains(name, ":")
	}) {
		return nil
	}
	hollow := map[string]bool{}
	for _, item := range branch {
		switch item.Value.(type) {
		case nil, []any, sops.TreeBranch:
			name := nameOf(item)
			hollow[name] = true
		}
	}
	return hollow
}

const maxColons = 64 // in a name that are looked at

// fromInside reports whether name may be made of a hollow one, a colon, and the
// name of what was in it.
func fromInside(name string, hollow map[string]bool) bool {
	for i, n := 0, 0; len(hollow) > 0 && i < len(name) && n < maxColons; i++ {
		if name[i] == ':' {
			n++
			if hollow[name[:i]] {
				return true
			}
		}
	}
	return false
}
