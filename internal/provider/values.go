package provider

import (
	"fmt"
	"maps"
	"math/big"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

// The provider works with cty values, which are what configuration text and
// state files yield. Here they meet the framework's tftypes values. Both have
// the same type system, so nothing is lost either way.

// toCty converts a value that Terraform sent.
func toCty(v tftypes.Value) (cty.Value, error) {
	typ, err := toCtyType(v.Type())
	switch {
	case err != nil:
		return cty.NilVal, err
	case !v.IsKnown():
		return cty.UnknownVal(typ), nil
	case v.IsNull():
		return cty.NullVal(typ), nil
	}
	switch typ {
	case cty.String:
		var s string
		err := v.As(&s)
		return cty.StringVal(s), err
	case cty.Number:
		var n *big.Float
		if err := v.As(&n); err != nil {
			return cty.NilVal, err
		}
		return cty.NumberVal(n), nil
	case cty.Bool:
		var b bool
		err := v.As(&b)
		return cty.BoolVal(b), err
	}
	if typ.IsMapType() || typ.IsObjectType() {
		return toCtyMapping(v, typ)
	}
	return toCtySequence(v, typ)
}

func toCtyMapping(v tftypes.Value, typ cty.Type) (cty.Value, error) {
	var elements map[string]tftypes.Value
	if err := v.As(&elements); err != nil {
		return cty.NilVal, err
	}
	values := map[string]cty.Value{}
	for name, e := range elements {
		var err error
		if values[name], err = toCty(e); err != nil {
			return cty.NilVal, err
		}
	}
	switch {
	case typ.IsObjectType():
		return cty.ObjectVal(values), nil
	case len(values) == 0:
		return cty.MapValEmpty(typ.ElementType()), nil
	}
	return cty.MapVal(values), nil
}

func toCtySequence(v tftypes.Value, typ cty.Type) (cty.Value, error) {
	var elements []tftypes.Value
	if err := v.As(&elements); err != nil {
		return cty.NilVal, err
	}
	values := make([]cty.Value, len(elements))
	for i, e := range elements {
		var err error
		if values[i], err = toCty(e); err != nil {
			return cty.NilVal, err
		}
	}
	switch {
	case typ.IsTupleType():
		return cty.TupleVal(values), nil
	case typ.IsSetType() && len(values) == 0:
		return cty.SetValEmpty(typ.ElementType()), nil
	case typ.IsSetType():
		return cty.SetVal(values), nil
	case len(values) == 0:
		return cty.ListValEmpty(typ.ElementType()), nil
	}
	return cty.ListVal(values), nil
}

func toCtyType(t tftypes.Type) (cty.Type, error) {
	switch t := t.(type) {
	case tftypes.List:
		e, err := toCtyType(t.ElementType)
		return cty.List(e), err
	case tftypes.Set:
		e, err := toCtyType(t.ElementType)
		return cty.Set(e), err
	case tftypes.Map:
		e, err := toCtyType(t.ElementType)
		return cty.Map(e), err
	case tftypes.Tuple:
		elements := make([]cty.Type, len(t.ElementTypes))
		for i, et := range t.ElementTypes {
			var err error
			if elements[i], err = toCtyType(et); err != nil {
				return cty.NilType, err
			}
		}
		return cty.Tuple(elements), nil
	case tftypes.Object:
		attrs := map[string]cty.Type{}
		for name, at := range t.AttributeTypes {
			var err error
			if attrs[name], err = toCtyType(at); err != nil {
				return cty.NilType, err
			}
		}
		return cty.Object(attrs), nil
	}
	switch {
	case t.Is(tftypes.String):
		return cty.String, nil
	case t.Is(tftypes.Number):
		return cty.Number, nil
	case t.Is(tftypes.Bool):
		return cty.Bool, nil
	case t.Is(tftypes.DynamicPseudoType):
		return cty.DynamicPseudoType, nil
	}
	return cty.NilType, fmt.Errorf("a value of type %s cannot be used here", t)
}

// fromCty converts a known value for Terraform. In a place of dynamic type,
// the value brings its own.
func fromCty(v cty.Value) tftypes.Value {
	typ := fromCtyType(v.Type())
	if v.IsNull() {
		return tftypes.NewValue(typ, nil)
	}
	switch v.Type() {
	case cty.String:
		return tftypes.NewValue(typ, v.AsString())
	case cty.Number:
		return tftypes.NewValue(typ, v.AsBigFloat())
	case cty.Bool:
		return tftypes.NewValue(typ, v.True())
	}
	if v.Type().IsMapType() || v.Type().IsObjectType() {
		elements := map[string]tftypes.Value{}
		for it := v.ElementIterator(); it.Next(); {
			name, e := it.Element()
			elements[name.AsString()] = fromCty(e)
		}
		return tftypes.NewValue(typ, elements)
	}
	elements := make([]tftypes.Value, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		elements = append(elements, fromCty(e))
	}
	return tftypes.NewValue(typ, elements)
}

func fromCtyType(t cty.Type) tftypes.Type {
	switch {
	case t == cty.String:
		return tftypes.String
	case t == cty.Number:
		return tftypes.Number
	case t == cty.Bool:
		return tftypes.Bool
	case t.IsListType():
		return tftypes.List{ElementType: fromCtyType(t.ElementType())}
	case t.IsSetType():
		return tftypes.Set{ElementType: fromCtyType(t.ElementType())}
	case t.IsMapType():
		return tftypes.Map{ElementType: fromCtyType(t.ElementType())}
	case t.IsTupleType():
		elements := make([]tftypes.Type, 0, t.Length())
		for _, e := range t.TupleElementTypes() {
			elements = append(elements, fromCtyType(e))
		}
		return tftypes.Tuple{ElementTypes: elements}
	case t.IsObjectType():
		attrs := map[string]tftypes.Type{}
		for name, at := range t.AttributeTypes() {
			attrs[name] = fromCtyType(at)
		}
		return tftypes.Object{AttributeTypes: attrs}
	}
	return tftypes.DynamicPseudoType
}

// withResults returns the configuration with the read-only attributes filled.
func withResults(config tftypes.Value, results map[string]cty.Value) (tftypes.Value, error) {
	var attrs map[string]tftypes.Value
	if err := config.As(&attrs); err != nil {
		return tftypes.Value{}, err
	}
	attrs = maps.Clone(attrs)
	for name, v := range results {
		attrs[name] = fromCty(v)
	}
	return tftypes.NewValue(config.Type(), attrs), nil
}

// The following read the members of an object value that Terraform sent.

// blocks returns the blocks of a list attribute, and whether they are known.
func blocks(object cty.Value, name string) ([]cty.Value, bool) {
	list := object.GetAttr(name)
	switch {
	case !list.IsKnown():
		return nil, false
	case list.IsNull():
		return nil, true
	}
	return list.AsValueSlice(), true
}

// text returns a string attribute, "" when it is null or not known.
func text(object cty.Value, name string) string {
	v := object.GetAttr(name)
	if v.IsNull() || !v.IsKnown() {
		return ""
	}
	return v.AsString()
}

// isTrue returns a bool attribute, otherwise when it is null or not known.
func isTrue(object cty.Value, name string, otherwise bool) bool {
	v := object.GetAttr(name)
	if v.IsNull() || !v.IsKnown() {
		return otherwise
	}
	return v.True()
}
