package tfstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// rootOutputs collects the outputs of the root module, each read by output. The
// formats before 4 list all modules; only the root's outputs are for others.
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

// entry3 is an output in formats 2 and 3. Its type ("string", "list" or "map")
// says less than the value does, so it isn't read.
type entry3 struct {
	Value     json.RawMessage `json:"value"`
	Sensitive bool            `json:"sensitive"`
}

func output3(raw json.RawMessage) (Output, error) {
	var e entry3
	if err := json.Unmarshal(raw, &e); err != nil {
		return Output{}, typeError(err)
	}
	return Output{Sensitive: e.Sensitive, value: e.Value}, nil
}

// output1 reads an output in format 1: a bare string, never sensitive.
func output1(raw json.RawMessage) (Output, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return Output{}, errors.New("in format version 1 it must be a string")
	}
	return Output{value: slices.Clone(raw)}, nil
}

// impliedType is the type that Terraform gives to a value without one.
func (o Output) impliedType(b *budget) (cty.Type, error) {
	if err := b.typ(len(o.value), nesting(o.value)); err != nil {
		return cty.NilType, err
	}
	ty, err := ctyjson.ImpliedType(o.value)
	if err != nil {
		// The error may quote a key of the value.
		return cty.NilType, errors.New("no type fits its value; does an object in it have the same key twice?")
	}
	return simplify(ty), nil
}

// simplify turns tuples and objects whose elements all have one type into lists
// and maps: Terraform had nothing else when it wrote these formats. Of an empty
// one nobody knows the element type, and it stays.
func simplify(ty cty.Type) cty.Type {
	switch {
	case ty.IsTupleType() && ty.Length() > 0:
		elements := ty.TupleElementTypes()
		for _, other := range elements[1:] {
			if !other.Equals(elements[0]) {
				return ty
			}
		}
		return cty.List(simplify(elements[0]))
	case ty.IsObjectType() && len(ty.AttributeTypes()) > 0:
		var element cty.Type
		for _, other := range ty.AttributeTypes() {
			if element == cty.NilType {
				element = other
			}
			if !other.Equals(element) {
				return ty
			}
		}
		return cty.Map(simplify(element))
	default:
		return ty
	}
}
