package tfstate

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

// marks says which parts of a value are sensitive. The zero value marks nothing.
type marks struct {
	whole  bool
	inside map[pathStep]*marks
}

// pathStep is one step into a value. It does not distinguish attributes of objects from keys of
// maps, because both are read as objects if there is no schema.
type pathStep struct {
	name    string
	index   int
	isIndex bool
}

var errPaths = errors.New("its sensitive_attributes are not in the form that Terraform and OpenTofu write")

// readMarks reads the paths in sensitive_attributes. If a JSON value does not allow a step, such as
// a step to an element of a set, the whole value before the step is marked.
func readMarks(raw json.RawMessage) (*marks, error) {
	root := &marks{}
	if raw == nil {
		return root, nil
	}
	var paths [][]struct {
		Type  string          `json:"type"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(raw, &paths); err != nil {
		return nil, errPaths // err may quote the file
	}
	for _, path := range paths {
		at := root
		for _, s := range path {
			step, ok, err := readStep(s.Type, s.Value)
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			at = at.at(step)
		}
		at.whole = true
	}
	return root, nil
}

func (m *marks) at(step pathStep) *marks {
	next := m.inside[step]
	if next == nil {
		next = &marks{}
		if m.inside == nil {
			m.inside = map[pathStep]*marks{}
		}
		m.inside[step] = next
	}
	return next
}

// readStep reads one step of a path. It returns false for a step that JSON does not allow.
func readStep(typ string, value json.RawMessage) (pathStep, bool, error) {
	switch typ {
	case "get_attr":
		name, ok := jsonString(value)
		if !ok {
			return pathStep{}, false, errPaths
		}
		return pathStep{name: name}, true, nil
	case "index":
		var key struct {
			Value json.RawMessage `json:"value"`
			Type  json.RawMessage `json:"type"`
		}
		if json.Unmarshal(value, &key) != nil {
			return pathStep{}, false, errPaths
		}
		switch string(key.Type) {
		case `"string"`:
			name, ok := jsonString(key.Value)
			return pathStep{name: name}, ok, nil
		case `"number"`:
			n, err := strconv.Atoi(string(key.Value))
			return pathStep{index: n, isIndex: true}, err == nil, nil
		}
		return pathStep{}, false, nil
	}
	return pathStep{}, false, errPaths
}

func jsonString(raw json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return cty.NormalizeString(*s), true
}

var hidden = cty.NullVal(cty.DynamicPseudoType)

// split separates the sensitive attributes of a resource from the others. Open has null instead of
// each sensitive value. Sensitive has objects with only the sensitive attributes, and tuples with
// null for the other elements. If a path leads to no value, the last value on the path is sensitive
// as a whole.
func (m *marks) split(attributes cty.Value) (open, sensitive cty.Value) {
	if !m.fit(attributes) {
		return hidden, attributes
	}
	return m.splitObject(attributes)
}

func (m *marks) splitInner(v cty.Value) (open, sensitive cty.Value) {
	switch {
	case !m.fit(v) || isWrapper(v.Type()):
		return hidden, v
	case v.Type().IsTupleType():
		return m.splitTuple(v)
	default:
		return m.splitObject(v)
	}
}

// fit reports whether v can be split. It must not be null or marked as a whole, and each mark must
// lead to a value inside it.
func (m *marks) fit(v cty.Value) bool {
	if m.whole || v.IsNull() {
		return false
	}
	ty := v.Type()
	for step := range m.inside {
		switch {
		case ty.IsObjectType() && !step.isIndex && ty.HasAttribute(step.name):
		case ty.IsTupleType() && step.isIndex && step.index >= 0 && step.index < ty.Length():
		default:
			return false
		}
	}
	return true
}

// isWrapper reports whether an object may be a value that the state stores together with its type.
// A path to such a value continues inside the object, so a step called type or value would be
// misread.
func isWrapper(ty cty.Type) bool {
	return ty.IsObjectType() && len(ty.AttributeTypes()) == 2 && ty.HasAttribute("value") && ty.HasAttribute("type")
}

func (m *marks) splitObject(v cty.Value) (open, sensitive cty.Value) {
	all, kept := v.AsValueMap(), map[string]cty.Value{}
	for step, inner := range m.inside {
		all[step.name], kept[step.name] = inner.splitInner(all[step.name])
	}
	return cty.ObjectVal(all), cty.ObjectVal(kept)
}

func (m *marks) splitTuple(v cty.Value) (open, sensitive cty.Value) {
	all := v.AsValueSlice()
	kept := make([]cty.Value, len(all))
	for i := range kept {
		kept[i] = hidden
	}
	for step, inner := range m.inside {
		all[step.index], kept[step.index] = inner.splitInner(all[step.index])
	}
	return cty.TupleVal(all), cty.TupleVal(kept)
}
