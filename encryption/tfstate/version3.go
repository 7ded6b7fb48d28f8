package tfstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// rootOutputs returns the outputs of the root module. It calls the function output to read each of
// them. The formats before 4 list all modules, but only the root module's outputs are visible to
// other configurations.
func rootOutputs(raw json.RawMessage, output func(json.RawMessage) (Output, error)) (map[string]Output, error) {
	var modules []module
	if raw != nil && json.Unmarshal(raw, &modules) != nil {
		return nil, errForm("modules")
	}
	outputs, common := make(map[string]Output), new(shared)
	for _, m := range modules {
		if !slices.Equal(m.Path, []string{"root"}) {
			continue
		}
		for name, raw := range m.Outputs {
			o, err := output(raw)
			if err != nil {
				return nil, fmt.Errorf("output %s: %w", quote(name), err)
			}
			o.name, o.implied, o.shared = name, true, common
			outputs[name] = o
		}
	}
	return outputs, nil
}

// output3 reads an output in format 2 or 3. It does not read the stored type ("string", "list" or
// "map"), because the value says more.
func output3(raw json.RawMessage) (Output, error) {
	var e struct {
		Value     json.RawMessage `json:"value"`
		Sensitive bool            `json:"sensitive"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Output{}, typeError(err)
	}
	return Output{Sensitive: e.Sensitive, value: e.Value}, nil
}

// output1 reads an output in format 1, which is a bare string and never sensitive.
func output1(raw json.RawMessage) (Output, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return Output{}, errors.New("the value is not a string, but format version 1 has only strings")
	}
	return Output{value: slices.Clone(raw)}, nil
}

// impliedType returns the type that Terraform gives to a value without a type. The type is a list
// or a map if all elements have the same type.
func (o Output) impliedType(b *budget) (cty.Type, error) {
	ty, err := impliedType(o.value, "its value", b)
	return simplify(ty), err
}

// impliedType returns the type that follows from JSON, made of objects and tuples. The parameter
// what names the value in errors. They leave out cty's errors, which may quote a key.
func impliedType(value []byte, what string, b *budget) (cty.Type, error) {
	if err := b.typ(len(value), nesting(value)); err != nil {
		return cty.NilType, err
	}
	ty, err := ctyjson.ImpliedType(value)
	if err != nil {
		return cty.NilType, fmt.Errorf("no type fits %s; check whether an object in it has the same key twice", what)
	}
	return ty, nil
}

// simplify turns tuples and objects into lists and maps if all their elements have the same type.
// Terraform had no other types when it wrote these formats. An empty tuple or object has no known
// element type, and stays as it is.
func simplify(ty cty.Type) cty.Type {
	var elements []cty.Type
	collection := cty.List
	switch {
	case ty.IsTupleType():
		elements = ty.TupleElementTypes()
	case ty.IsObjectType():
		elements, collection = slices.Collect(maps.Values(ty.AttributeTypes())), cty.Map
	}
	if len(elements) == 0 || slices.ContainsFunc(elements, func(other cty.Type) bool { return !other.Equals(elements[0]) }) {
		return ty
	}
	return collection(simplify(elements[0]))
}
