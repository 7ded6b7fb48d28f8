package provider

import (
	"cmp"
	"maps"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// codec converts between protocol values and cty values. All arguments and results pass through it.
//
// The framework's own conversion walks the whole schema, including the blocks of all sources, many times for
// each call, and copies the result, which may be large, several times. With that conversion, a plan with
// 1,000 data sources that read the same state took four times as long.
type codec struct {
	fields []field
	typ    func() cty.Type // the type of the object that Terraform builds from the fields
}

// newCodec returns a codec that makes its type when it is first used. Many commands need nothing but the schema.
func newCodec(fields []field) codec {
	return codec{fields: fields, typ: sync.OnceValue(func() cty.Type { return typeOf(fields) })}
}

// decode returns the arguments of a block. It returns false if they do not conform to the schema.
func (c codec) decode(sent *tfprotov6.DynamicValue) (arguments cty.Value, ok bool) {
	// cty panics on values that no CLI sends, such as NaN or an unknown name.
	defer func() {
		if recover() != nil {
			arguments, ok = cty.NilVal, false
		}
	}()
	var err error
	switch {
	case sent == nil || c.typ == nil:
		return cty.NilVal, false
	case sent.MsgPack != nil:
		if promisesTooMuch(sent.MsgPack) {
			return cty.NilVal, false
		}
		arguments, err = msgpack.Unmarshal(sent.MsgPack, c.typ())
	default:
		arguments, err = ctyjson.Unmarshal(sent.JSON, c.typ())
	}
	if err == nil && arguments.IsNull() {
		arguments = empty(c.fields)
	}
	return arguments, err == nil && new(findings).conforms(arguments, c.fields, path.Empty())
}

// encode returns the arguments together with the values of the read-only attributes.
func (c codec) encode(arguments cty.Value, attributes map[string]cty.Value) (*tfprotov6.DynamicValue, error) {
	values := arguments.AsValueMap()
	maps.Copy(values, attributes)
	data, err := marshal(cty.ObjectVal(values), c.typ())
	return &tfprotov6.DynamicValue{MsgPack: data}, err
}

// empty returns a block without arguments.
func empty(fields []field) cty.Value {
	values := map[string]cty.Value{}
	for _, f := range fields {
		if values[f.Name] = cty.NullVal(f.Type); f.isBlock() {
			values[f.Name] = cty.ListValEmpty(typeOf(f.Fields))
		}
	}
	return cty.ObjectVal(values)
}

// misfits returns the schema violations for which we have better messages than the framework. It returns nil
// if there are none.
func (c codec) misfits(block cty.Value) []problem {
	if block == cty.NilVal || !block.Type().IsObjectType() {
		return nil
	}
	var f findings
	f.conforms(block, c.fields, path.Empty())
	return f.problems
}

// conforms reports whether a block passes the framework's schema checks. It records two kinds of problems,
// with their paths: read-only attributes that are set, and required arguments that are null. The framework
// reports all other problems. Unlike the framework, conforms does not report missing arguments in an unknown
// block.
func (f *findings) conforms(block cty.Value, fields []field, at path.Path) bool {
	if block.IsNull() || !block.IsKnown() {
		return !block.IsNull()
	}
	ok := true
	for _, field := range fields {
		v := block.GetAttr(field.Name)
		switch {
		case field.isBlock():
			ok = f.allConform(v, field, at.AtName(field.Name)) && ok
			continue
		case field.required() && v.IsNull():
			f.fail(at.AtName(field.Name), "this argument is required, but its value is null; check whether a variable is set")
		case !field.Computed || v.IsNull():
			continue
		case field.Secrecy.IsHidden(): // given the attribute's own path, Terraform would print the value
			f.fail(path.Empty(), "the attribute %s is a result of the read, and cannot be "+
				"set%s", field.Name, cmp.Or(inPlaceOf(field.Name), "; remove it"))
		default:
			f.fail(at.AtName(field.Name), "this attribute is a result of the read, and cannot be set%s",
				cmp.Or(inPlaceOf(field.Name), "; remove it"))
		}
		ok = false
	}
	return ok
}

func (f *findings) allConform(blocks cty.Value, of field, at path.Path) bool {
	if !blocks.IsKnown() || blocks.IsNull() {
		return true
	}
	ok := of.Many || blocks.LengthInt() <= 1
	for i, block := range blocks.AsValueSlice() {
		ok = f.conforms(block, of.Fields, at.AtListIndex(i)) && ok
	}
	return ok
}

// inPlaceOf returns advice about the argument to set instead of a read-only attribute, or an empty string if
// there is no such argument.
func inPlaceOf(attribute string) string {
	switch attribute {
	case "lineage":
		return "; set expected_lineage to accept only your state"
	case "serial":
		return "; set minimum_serial to refuse old copies"
	case "outputs", "sensitive_outputs":
		return "; set the argument only to choose outputs"
	case "type", "mode":
		return "; set the argument address to choose a resource"
	}
	return ""
}

// blocks returns the nested blocks with the given name. It returns nil and false if any of them is unknown.
func blocks(block cty.Value, name string) ([]cty.Value, bool) {
	list := block.GetAttr(name)
	switch {
	case !list.IsKnown():
		return nil, false
	case list.IsNull():
		return nil, true
	}
	all := list.AsValueSlice()
	for _, one := range all {
		if !one.IsKnown() {
			return nil, false
		}
	}
	return all, true
}

// given returns the value of a string argument. It returns false if the argument is not set or not known.
func given(block cty.Value, name string) (string, bool) {
	v := block.GetAttr(name)
	if v.IsNull() || !v.IsKnown() {
		return "", false
	}
	return v.AsString(), true
}

// text returns the value of a string argument, or an empty string if it is not set or not known.
func text(block cty.Value, name string) string {
	s, _ := given(block, name)
	return s
}

// isYes reports whether a bool is known and true.
func isYes(v cty.Value) bool { return v.IsKnown() && !v.IsNull() && v.True() }

// isTrue returns the value of a bool argument, or otherwise if the argument is not set or not known.
func isTrue(block cty.Value, name string, otherwise bool) bool {
	v := block.GetAttr(name)
	return isYes(v) || otherwise && (v.IsNull() || !v.IsKnown())
}
