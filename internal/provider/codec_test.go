package provider

import (
	"math/big"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

// Every value that a state can hold survives the way to Terraform and back.
func TestValuesSurvive(t *testing.T) {
	t.Parallel()
	for _, v := range conformance.All() {
		if v.Kind != "plain_state" || v.Expect != "ok" {
			continue
		}
		state, err := tfstate.Parse(v.State())
		if err != nil {
			t.Fatal(err)
		}
		for name, output := range state.Outputs {
			value, err := output.Value()
			if err != nil {
				t.Fatal(err)
			}
			survives(t, v.Name+" "+name, value)
		}
	}
	huge, _, err := big.ParseFloat("123456789012345678901234567890.5", 10, 512, big.ToNearestEven)
	if err != nil {
		t.Fatal(err)
	}
	object := cty.ObjectVal(map[string]cty.Value{"": cty.NullVal(cty.DynamicPseudoType), "a.b": cty.NumberVal(huge)})
	for name, value := range map[string]cty.Value{
		"nested":      cty.TupleVal([]cty.Value{object, cty.SetVal([]cty.Value{cty.StringVal("é"), cty.StringVal("")}), cty.True}),
		"list":        cty.ListVal([]cty.Value{cty.NullVal(cty.String), cty.StringVal("x")}),
		"map":         cty.MapVal(map[string]cty.Value{"": cty.EmptyTupleVal}),
		"empty list":  cty.ListValEmpty(cty.DynamicPseudoType),
		"empty map":   cty.MapValEmpty(cty.DynamicPseudoType),
		"empty set":   cty.SetValEmpty(cty.Number),
		"empty":       cty.EmptyObjectVal,
		"null":        cty.NullVal(cty.DynamicPseudoType),
		"typed null":  cty.NullVal(cty.List(cty.String)),
		"set of maps": cty.SetVal([]cty.Value{cty.MapVal(map[string]cty.Value{"k": cty.False})}),
	} {
		survives(t, name, value)
	}
}

// survives has the framework's library of values, which is not ours, read what
// is sent and send it back.
func survives(t *testing.T, name string, value cty.Value) {
	t.Helper()
	sent := wire(t, value, cty.DynamicPseudoType)
	received, err := sent.Unmarshal(tftypes.DynamicPseudoType)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	again, err := tfprotov6.NewDynamicValue(tftypes.DynamicPseudoType, received)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	back, err := msgpack.Unmarshal(again.MsgPack, cty.DynamicPseudoType)
	// An untyped null has no type to come back with.
	if err != nil || !back.RawEquals(value) && !(back.IsNull() && value.IsNull()) {
		t.Errorf("%s: sent %#v, got %#v, %v", name, value, back, err)
	}
}

// A nested block is a list in Terraform and an object in a table.
func TestBlockValues(t *testing.T) {
	t.Parallel()
	inner := cty.Object(map[string]cty.Type{"x": cty.String, "y": cty.String})
	got := blockValues(cty.ObjectVal(map[string]cty.Value{
		"plain": cty.StringVal("p"),
		"set": cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
			"x": cty.StringVal("1"), "y": cty.NullVal(cty.String),
		})}),
		"unset":   cty.ListValEmpty(inner),
		"unknown": cty.UnknownVal(cty.List(inner)),
	}))
	table := attr.Table{Attrs: []attr.Attr{
		{Name: "plain", Type: cty.String},
		{Name: "set", Attrs: []attr.Attr{{Name: "x", Type: cty.String}, {Name: "y", Type: cty.String, Default: cty.StringVal("2")}}},
		{Name: "unset", Attrs: []attr.Attr{{Name: "x", Type: cty.String}}},
	}}
	delete(got, "unknown")
	v, err := unstable.NewEntry("e", table, got).Decode(table, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, ok := v.Block("set")
	if _, unset := v.Block("unset"); !ok || unset || set.String("x") != "1" || set.String("y") != "2" || v.String("plain") != "p" {
		t.Errorf("got %s", v.Identity())
	}
}
