package tfstate

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// typeOf returns the type of an output. It caches the types, because thousands of outputs share a
// few types, and reading a type takes longer than reading a value.
func (s *shared) typeOf(raw json.RawMessage, b *budget) (cty.Type, error) {
	text := string(raw)
	if ty, ok := s.types.Load(text); ok {
		return ty.(cty.Type), b.typ(len(raw), nesting(raw)) //nolint:forcetypeassert // nothing else is stored
	}
	ty, err := decodeType(raw, b)
	if err == nil {
		s.types.Store(text, ty)
	}
	return ty, err
}

// decodeType returns the type of an output or of a dynamic value. The JSON in raw must be valid. Optional
// attributes of the type become ordinary attributes.
func decodeType(raw json.RawMessage, b *budget) (ty cty.Type, err error) {
	if err := b.typ(len(raw), nesting(raw)); err != nil {
		return cty.NilType, err
	}
	unusable := errors.New("no version of Terraform writes such a type")
	defer func() {
		// cty panics if an optional attribute is missing from the attributes.
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

// dynamic returns a value that is stored together with its type: {"value":…,"type":…}, in either
// order.
func (d *decoder) dynamic(kind byte) (cty.Value, error) {
	if kind != '{' {
		return cty.NilVal, errors.New("the value is not an object with value and type")
	}
	var wrapped struct{ value, typ json.RawMessage }
	if err := d.json.Object(func(key string) (err error) {
		switch key {
		case "value":
			wrapped.value, err = d.json.Skip()
		case "type":
			wrapped.typ, err = d.json.Skip()
		default:
			err = d.unsupported(key)
		}
		return err
	}); err != nil {
		return cty.NilVal, err
	}
	if wrapped.value == nil || wrapped.typ == nil {
		return cty.NilVal, errors.New("a value of dynamic type has no value or no type")
	}
	if err := d.budget.wrapped(len(wrapped.value)); err != nil {
		return cty.NilVal, err
	}
	ty, err := decodeType(wrapped.typ, d.budget)
	if err != nil {
		return cty.NilVal, fmt.Errorf("the type of a dynamic value is not valid: %w", err)
	}
	return d.decode(wrapped.value, ty)
}
