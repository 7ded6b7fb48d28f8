package tfstate

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// decodeType reads the type of an output or of a dynamic value. raw is valid
// JSON. Attributes that the type calls optional are plain ones in a value.
func decodeType(raw json.RawMessage) (ty cty.Type, err error) {
	depth := nesting(raw)
	if depth > maxNesting {
		return cty.NilType, fmt.Errorf("it is nested more than %d deep", maxNesting)
	}
	if len(raw)*max(depth, 1) > maxTypeWork {
		return cty.NilType, errors.New("it is too long for its nesting")
	}
	unusable := errors.New("it is not a type as Terraform writes one")
	defer func() {
		// cty panics where an optional attribute isn't among the attributes.
		if recover() != nil {
			ty, err = cty.NilType, unusable
		}
	}()
	ty, err = ctyjson.UnmarshalType(raw)
	if err != nil {
		return cty.NilType, unusable // err may quote the file
	}
	return ty.WithoutOptionalAttributesDeep(), nil
}

// dynamic reads a value whose type is given next to it: {"value":…,"type":…},
// in either order.
func (d *decoder) dynamic(token json.Token) (cty.Value, error) {
	if token != json.Delim('{') {
		return cty.NilVal, errors.New("an object of value and type is required")
	}
	var wrapped struct{ value, typ json.RawMessage }
	for d.json.More() {
		key, err := d.key()
		if err != nil {
			return cty.NilVal, err
		}
		switch key {
		case "value":
			err = d.json.Decode(&wrapped.value)
		case "type":
			err = d.json.Decode(&wrapped.typ)
		default:
			return cty.NilVal, d.unsupported(key)
		}
		if err != nil {
			return cty.NilVal, errJSON
		}
	}
	_, _ = d.json.Token()
	if wrapped.value == nil || wrapped.typ == nil {
		return cty.NilVal, errors.New("a value of dynamic type needs both value and type")
	}
	return d.unwrap(wrapped.value, wrapped.typ)
}

func (d *decoder) unwrap(value, typ json.RawMessage) (cty.Value, error) {
	if d.wrappers++; d.wrappers > maxWrappers {
		return cty.NilVal, fmt.Errorf("more than %d values of dynamic type are wrapped in each other", maxWrappers)
	}
	defer func() { d.wrappers-- }()
	ty, err := decodeType(typ)
	if err != nil {
		return cty.NilVal, fmt.Errorf("the type of a dynamic value can't be used: %w", err)
	}
	return d.decode(value, ty)
}
