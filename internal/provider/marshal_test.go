package provider

import (
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// sameAsCty checks that a CLI reads what marshal writes, and what cty's own
// encoder writes, as the same value.
func sameAsCty(t *testing.T, v cty.Value, typ cty.Type) {
	t.Helper()
	data, err := marshal(v, typ)
	if err != nil {
		t.Fatal(err)
	}
	got, err := msgpack.Unmarshal(data, typ)
	if err != nil {
		t.Fatalf("%#v: %v", v, err)
	}
	own, err := msgpack.Marshal(v, typ)
	if err != nil {
		t.Fatal(err)
	}
	want, err := msgpack.Unmarshal(own, typ)
	if err != nil || !got.RawEquals(want) || !got.RawEquals(v) {
		t.Errorf("got %#v, cty sends %#v, %v", got, want, err)
	}
}

func TestMarshal(t *testing.T) {
	object := cty.Object(map[string]cty.Type{"a": cty.String, "b": cty.List(cty.Number), "any": cty.DynamicPseudoType})
	full := cty.ObjectVal(map[string]cty.Value{
		"a": cty.StringVal("ü\x00"), "b": cty.ListVal([]cty.Value{cty.NumberIntVal(1), cty.NullVal(cty.Number)}),
		"any": cty.SetVal([]cty.Value{cty.True, cty.False}),
	})
	for _, v := range []cty.Value{
		full, cty.NullVal(object), cty.EmptyObjectVal, cty.EmptyTupleVal, cty.MapValEmpty(object), cty.ListValEmpty(object),
		cty.TupleVal([]cty.Value{full, cty.NullVal(cty.DynamicPseudoType), cty.MapVal(map[string]cty.Value{"k": cty.Zero})}),
		cty.SetVal([]cty.Value{cty.MustParseNumberVal("1.1"), cty.MustParseNumberVal("1.2")}),
	} {
		sameAsCty(t, v, v.Type())
		sameAsCty(t, v, cty.DynamicPseudoType)
	}
	sameAsCty(t, full, object)
	if _, err := marshal(cty.UnknownVal(cty.String), cty.String); err == nil {
		t.Error("an unknown value is sent")
	}
}

func TestMarshalNumbers(t *testing.T) {
	numbers := []string{
		"0", "-1", "9007199254740993", "18446744073709551615", "-9223372036854775809", "1e300", "1.5e300", "1e-300", "1e400", "-1e-400",
		"0.1", "1.1", "-1.1", "3.141592653589793", "3.141592653589793238462643383279502884197", "0.30000000000000004", "123456789.123456789",
		"1e22", "1e23", "4.9e-324", "2.2250738585072014e-308", "1.7976931348623157e308",
	}
	for _, text := range numbers {
		sameAsCty(t, cty.MustParseNumberVal(text), cty.Number)
	}
	sameAsCty(t, cty.PositiveInfinity, cty.Number)
	sameAsCty(t, cty.NumberVal(new(big.Float).SetPrec(53).SetFloat64(0.1)), cty.Number)
}

func FuzzMarshal(f *testing.F) {
	folders, err := filepath.Glob("../../encryption/tfstate/testdata/*/expected_outputs.json")
	if err != nil || len(folders) == 0 {
		f.Fatalf("found %d files, %v", len(folders), err)
	}
	for _, folder := range folders {
		text, err := os.ReadFile(folder)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`[1.1,{"a":[1e-9,null,"x"],"b":{}}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		typ, err := ctyjson.ImpliedType(text)
		if err != nil || len(text) > 1000 {
			return
		}
		v, err := ctyjson.Unmarshal(text, typ)
		if err != nil {
			return
		}
		sameAsCty(t, v, typ)
		sameAsCty(t, v, cty.DynamicPseudoType)
	})
}

func BenchmarkMarshalPrices(b *testing.B) {
	prices := make([]cty.Value, 1000)
	for i := range prices {
		prices[i] = cty.MustParseNumberVal(big.NewRat(int64(i)*10+1, 100).FloatString(2))
	}
	list := cty.ListVal(prices)
	for name, f := range map[string]func(cty.Value, cty.Type) ([]byte, error){"here": marshal, "cty": msgpack.Marshal} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := f(list, list.Type()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
