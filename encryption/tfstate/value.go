package tfstate

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
)

// decoder decodes the JSON of one value with a known type, with the same result as go-cty's own
// decoder. That decoder is made for trusted files: its costs grow with the depth of a value, and
// its errors quote values.
type decoder struct {
	sensitive bool // whether errors hide keys that are not in the type
	depth     int  // the depth of the current value within the output

	budget *budget // the budget of all values that are decoded together
	json   *jsonwalk.Reader
}

// decode returns the value in raw, whose nesting must not exceed maxNesting.
func (d *decoder) decode(raw json.RawMessage, ty cty.Type) (cty.Value, error) {
	outer := d.json
	defer func() { d.json = outer }()
	d.json = jsonwalk.NewReader(raw)
	v, err := d.value(ty)
	if _, ok := errors.AsType[*jsonwalk.SyntaxError](err); ok {
		err = errors.New("its JSON is not valid")
	}
	return v, err
}

func (d *decoder) value(ty cty.Type) (cty.Value, error) {
	d.depth++
	defer func() { d.depth-- }()
	if err := d.budget.Charge(1, "its values"); err != nil {
		return cty.NilVal, err
	}
	kind := d.json.Kind()
	switch {
	case kind == 'n':
		if _, err := d.json.Literal(); err != nil {
			return cty.NilVal, err
		}
		return cty.NullVal(ty), d.budget.vacant(ty, d.depth)
	case ty.IsPrimitiveType():
		return d.scalar(kind, ty)
	case ty == cty.DynamicPseudoType:
		return d.dynamic(kind)
	case ty.IsObjectType():
		return d.object(kind, ty.AttributeTypes())
	case ty.IsMapType():
		return d.mapping(kind, ty)
	case ty.IsTupleType():
		return d.tuple(kind, ty.TupleElementTypes())
	default:
		return d.elements(kind, ty)
	}
}

// scalar returns a value of a primitive type. If the JSON value is of another kind, scalar converts
// it.
func (d *decoder) scalar(kind byte, ty cty.Type) (cty.Value, error) {
	if kind == '{' || kind == '[' {
		return cty.NilVal, required(ty)
	}
	var v cty.Value
	if kind == '"' {
		text, err := d.json.String()
		switch {
		case err != nil:
			return cty.NilVal, err
		case ty == cty.Number:
			return d.number(text)
		}
		if err := d.budget.text(len(text)); err != nil {
			return cty.NilVal, err
		}
		v = cty.StringVal(text)
	} else {
		literal, err := d.json.Literal()
		switch {
		case err != nil:
			return cty.NilVal, err
		case kind != '0':
			v = cty.BoolVal(kind == 't')
		case ty == cty.Number:
			return d.number(string(literal))
		case ty == cty.Bool:
			return cty.NilVal, required(ty)
		default:
			v = cty.StringVal(string(literal))
		}
	}
	if v.Type() == ty {
		return v, nil
	}
	v, err := convert.Convert(v, ty)
	if err != nil {
		return cty.NilVal, required(ty) // err may quote the value
	}
	return v, nil
}

func required(ty cty.Type) error {
	return fmt.Errorf("the value is not a %s", ty.FriendlyName())
}

// elements reads a list or a set.
func (d *decoder) elements(kind byte, ty cty.Type) (cty.Value, error) {
	if kind != '[' {
		return cty.NilVal, required(ty)
	}
	element := ty.ElementType()
	before := d.budget.Left()
	var values []cty.Value
	if err := d.json.Array(func() error {
		v, err := d.value(element)
		if err != nil {
			return within(indexStep(len(values)), err)
		}
		values = append(values, v)
		return nil
	}); err != nil {
		return cty.NilVal, err
	}
	if len(values) == 0 {
		return empty(ty), d.budget.vacant(ty, d.depth)
	}
	mixed := element.HasDynamicTypes() && !cty.CanListVal(values)
	switch {
	case mixed:
		return cty.NilVal, errMixed
	case ty.IsSetType():
		if err := d.budget.set(values, before-d.budget.Left()); err != nil {
			return cty.NilVal, err
		}
		return cty.SetVal(values), nil
	default:
		return cty.ListVal(values), nil
	}
}

func empty(ty cty.Type) cty.Value {
	switch element := ty.ElementType(); {
	case ty.IsSetType():
		return cty.SetValEmpty(element)
	case ty.IsMapType():
		return cty.MapValEmpty(element)
	default:
		return cty.ListValEmpty(element)
	}
}

var errMixed = errors.New("the elements have different types")

func (d *decoder) tuple(kind byte, types []cty.Type) (cty.Value, error) {
	if kind != '[' {
		return cty.NilVal, errors.New("the value is not a tuple")
	}
	values := make([]cty.Value, 0, len(types))
	if err := d.json.Array(func() error {
		if len(values) == len(types) {
			return errors.New("the tuple has more elements than its type")
		}
		v, err := d.value(types[len(values)])
		if err != nil {
			return within(indexStep(len(values)), err)
		}
		values = append(values, v)
		return nil
	}); err != nil {
		return cty.NilVal, err
	}
	if len(values) < len(types) {
		return cty.NilVal, errors.New("the tuple has fewer elements than its type")
	}
	return cty.TupleVal(values), nil
}

func (d *decoder) mapping(kind byte, ty cty.Type) (cty.Value, error) {
	if kind != '{' {
		return cty.NilVal, errors.New("the value is not a map")
	}
	element := ty.ElementType()
	values := make(map[string]cty.Value)
	if err := d.json.Object(func(key string) error {
		v, err := d.value(element)
		if err != nil {
			return within(d.keyStep(key), err)
		}
		values[cty.NormalizeString(key)] = v
		return nil
	}); err != nil {
		return cty.NilVal, err
	}
	if len(values) == 0 {
		return empty(ty), d.budget.vacant(ty, d.depth)
	}
	if element.HasDynamicTypes() && !cty.CanMapVal(values) {
		return cty.NilVal, errMixed
	}
	return cty.MapVal(values), nil
}

func (d *decoder) object(kind byte, types map[string]cty.Type) (cty.Value, error) {
	if kind != '{' {
		return cty.NilVal, errors.New("the value is not an object")
	}
	values := make(map[string]cty.Value, len(types))
	if err := d.json.Object(func(name string) error {
		ty, ok := types[name]
		if !ok {
			return d.unsupported(name)
		}
		v, err := d.value(ty)
		if err != nil {
			return within(attributeStep(name), err)
		}
		values[name] = v
		return nil
	}); err != nil {
		return cty.NilVal, err
	}
	for name, ty := range types {
		if _, ok := values[name]; ok {
			continue
		}
		if err := d.budget.absent(name, ty, d.depth); err != nil {
			return cty.NilVal, err
		}
		values[name] = cty.NullVal(ty)
	}
	return cty.ObjectVal(values), nil
}
