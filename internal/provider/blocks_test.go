package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// minimal are the members of a block with what Terraform insists on.
func minimal(fs []field) map[string]cty.Value {
	out := map[string]cty.Value{}
	for _, f := range fs {
		switch {
		case f.isBlock():
			out[f.Name] = cty.ListValEmpty(typeOf(f.Fields))
		case f.Name == "key_spec": // which is checked
			out[f.Name] = text1("AES_256")
		case f.required() && f.Type == cty.String:
			out[f.Name] = text1("x")
		case f.required() && f.Type.IsListType():
			out[f.Name] = cty.ListVal([]cty.Value{text1("x")})
		default:
			out[f.Name] = cty.NullVal(f.Type)
		}
	}
	return out
}

// withElement returns an object for each kind of block in fields, however deep,
// in which that kind has this one element.
func withElement(fs []field, element func(cty.Type) cty.Value) map[string]cty.Value {
	out := map[string]cty.Value{}
	for _, f := range fs {
		if !f.isBlock() {
			continue
		}
		inner := withElement(f.Fields, element)
		inner[""] = element(typeOf(f.Fields))
		for path, block := range inner {
			members := minimal(fs)
			members[f.Name] = cty.ListVal([]cty.Value{block})
			out[f.Name+" "+path] = cty.ObjectVal(members)
		}
	}
	return out
}

// Terraform sends no null in a list of blocks, but other programs might; and an
// unknown one must wait like any other unknown value.
func TestNullAndUnknownBlocks(t *testing.T) {
	t.Parallel()
	s := NewServer("test")
	configureProvider(t, s, "", s.block.sends(t, nil))
	for _, w := range everything(s) {
		for what, c := range map[string]call{"validated": w.validate, "used": w.use} {
			for path, block := range withElement(w.codec.fields, cty.NullVal) {
				if _, diags := c(t, s, w.typeName, wire(t, block, w.codec.typ())); !hasError(diags) {
					t.Errorf("%s %s is %s with null as a block %s", w.name, w.typeName, what, path)
				}
			}
			for path, block := range withElement(w.codec.fields, cty.UnknownVal) {
				_, diags := c(t, s, w.typeName, wire(t, withUnknownRest(block), w.codec.typ()))
				if hasError(diags) != (what == "used" && w.name != "provider") {
					t.Errorf("%s %s is %s with an unknown block %s: got %v", w.name, w.typeName, what, path, shown(diags))
				}
			}
		}
	}
}

// withUnknownRest leaves open what the block lacks: a source, an address.
func withUnknownRest(block cty.Value) cty.Value {
	values := block.AsValueMap()
	if v, ok := values["file"]; ok && (values["object"].LengthInt() > 0 || values["fallback"].LengthInt() > 0) {
		values["file"] = cty.UnknownVal(v.Type())
	}
	if _, ok := values["address"]; ok {
		values["address"] = cty.UnknownVal(cty.String)
	}
	return cty.ObjectVal(values)
}

func hasError(diags []*tfprotov6.Diagnostic) bool {
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return true
		}
	}
	return false
}
