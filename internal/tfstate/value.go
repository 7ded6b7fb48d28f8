package tfstate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// decoder reads the JSON of one value with a type that is already known, giving
// the result that go-cty's own decoder gives. That one can't be let near a
// hostile file: it copies the rest of the value at each level, so that a
// megabyte nested a thousand deep takes gigabytes; it panics where the elements
// of a list of dynamic values have several types; and it quotes what it read.
type decoder struct {
	sensitive bool // errors show no keys that are not in the type
	wrappers  int  // of dynamic values, around this one
	depth     int  // of the value being read, within the output
	vacant    int  // spent so far of maxVacant
	alike     int  // spent so far of maxAlike

	json *json.Decoder
}

// decode reads all of raw, which must be valid JSON no deeper than maxNesting.
func (d *decoder) decode(raw json.RawMessage, ty cty.Type) (cty.Value, error) {
	outer := d.json
	defer func() { d.json = outer }()
	d.json = json.NewDecoder(bytes.NewReader(raw))
	d.json.UseNumber()
	return d.value(ty)
}

// errJSON can't be seen: what is decoded here was valid when the file was parsed.
var errJSON = errors.New("its JSON is not valid")

func (d *decoder) value(ty cty.Type) (cty.Value, error) {
	token, err := d.json.Token()
	if err != nil {
		return cty.NilVal, errJSON
	}
	d.depth++
	defer func() { d.depth-- }()
	switch {
	case token == nil:
		return cty.NullVal(ty), d.charge(weight(ty))
	case ty.IsPrimitiveType():
		return scalar(token, ty)
	case ty == cty.DynamicPseudoType:
		return d.dynamic(token)
	case ty.IsObjectType():
		return d.object(token, ty.AttributeTypes())
	case ty.IsMapType():
		return d.mapping(token, ty)
	case ty.IsTupleType():
		return d.tuple(token, ty.TupleElementTypes())
	default:
		return d.elements(token, ty)
	}
}

// scalar converts where the kinds of the type and of the JSON differ.
func scalar(token json.Token, ty cty.Type) (cty.Value, error) {
	var v cty.Value
	switch t := token.(type) {
	case string:
		v = cty.StringVal(t)
		if ty == cty.Number {
			return parseNumber(t)
		}
	case json.Number:
		if ty == cty.Number {
			return parseNumber(t.String())
		}
		v = cty.StringVal(t.String())
		if ty == cty.Bool {
			return cty.NilVal, required(ty)
		}
	case bool:
		v = cty.BoolVal(t)
	default:
		return cty.NilVal, required(ty)
	}
	v, err := convert.Convert(v, ty)
	if err != nil {
		return cty.NilVal, required(ty) // err may quote the value
	}
	return v, nil
}

func required(ty cty.Type) error {
	return fmt.Errorf("a %s is required", ty.FriendlyName())
}

// elements reads a list or a set.
func (d *decoder) elements(token json.Token, ty cty.Type) (cty.Value, error) {
	if token != json.Delim('[') {
		return cty.NilVal, required(ty)
	}
	element := ty.ElementType()
	var values []cty.Value
	for d.json.More() {
		v, err := d.value(element)
		if err != nil {
			return cty.NilVal, within(indexStep(len(values)), err)
		}
		values = append(values, v)
	}
	_, _ = d.json.Token()
	if len(values) == 0 {
		return empty(ty), d.charge(weight(ty))
	}
	mixed := element.HasDynamicTypes() && !cty.CanListVal(values)
	switch {
	case mixed:
		return cty.NilVal, errMixed
	case ty.IsSetType():
		return d.set(values)
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

var errMixed = errors.New("all elements must have the same type")

func (d *decoder) tuple(token json.Token, types []cty.Type) (cty.Value, error) {
	if token != json.Delim('[') {
		return cty.NilVal, errors.New("a tuple is required")
	}
	values := make([]cty.Value, 0, len(types))
	for d.json.More() {
		if len(values) == len(types) {
			return cty.NilVal, fmt.Errorf("too many tuple elements (need %d)", len(types))
		}
		v, err := d.value(types[len(values)])
		if err != nil {
			return cty.NilVal, within(indexStep(len(values)), err)
		}
		values = append(values, v)
	}
	_, _ = d.json.Token()
	if len(values) < len(types) {
		return cty.NilVal, fmt.Errorf("not enough tuple elements (need %d)", len(types))
	}
	return cty.TupleVal(values), nil
}

func (d *decoder) mapping(token json.Token, ty cty.Type) (cty.Value, error) {
	if token != json.Delim('{') {
		return cty.NilVal, errors.New("a map is required")
	}
	element := ty.ElementType()
	values := make(map[string]cty.Value)
	for d.json.More() {
		key, err := d.key()
		if err != nil {
			return cty.NilVal, err
		}
		v, err := d.value(element)
		if err != nil {
			return cty.NilVal, within(d.keyStep(key), err)
		}
		values[cty.NormalizeString(key)] = v
	}
	_, _ = d.json.Token()
	if len(values) == 0 {
		return empty(ty), d.charge(weight(ty))
	}
	if element.HasDynamicTypes() && !cty.CanMapVal(values) {
		return cty.NilVal, errMixed
	}
	return cty.MapVal(values), nil
}

func (d *decoder) object(token json.Token, types map[string]cty.Type) (cty.Value, error) {
	if token != json.Delim('{') {
		return cty.NilVal, errors.New("an object is required")
	}
	values := make(map[string]cty.Value)
	for d.json.More() {
		name, err := d.key()
		if err != nil {
			return cty.NilVal, err
		}
		ty, ok := types[name]
		if !ok {
			return cty.NilVal, d.unsupported(name)
		}
		if values[name], err = d.value(ty); err != nil {
			return cty.NilVal, within(attributeStep(name), err)
		}
	}
	_, _ = d.json.Token()
	for name, ty := range types {
		if _, ok := values[name]; ok {
			continue
		}
		if err := d.charge(absentCost + weight(ty)); err != nil {
			return cty.NilVal, err
		}
		values[name] = cty.NullVal(ty)
	}
	return cty.ObjectVal(values), nil
}

func (d *decoder) key() (string, error) {
	token, err := d.json.Token()
	key, ok := token.(string)
	if err != nil || !ok {
		return "", errJSON
	}
	return key, nil
}
