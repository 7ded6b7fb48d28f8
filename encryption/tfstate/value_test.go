package tfstate

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func value(sensitive bool, typ, value string) (cty.Value, error) {
	return Output{shared: new(shared), name: "o", Sensitive: sensitive, typ: []byte(typ), value: []byte(value)}.Value()
}

func TestValueErrors(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	says := golden(t, "values")
	for _, tt := range []struct{ typ, value string }{
		{`"number"`, `"c4n4ry"`},
		{`"number"`, `"inf"`},
		{`"number"`, `"1p9"`},
		{`"number"`, `"0x1f"`},
		{`"number"`, `"1e"`},
		{`"number"`, `""`},
		{`"number"`, `true`},
		{`"number"`, `1e999999999`},
		{`"number"`, `-1E-99999999999999999999`},
		{`"number"`, `"1e600000000"`},
		{`"number"`, strings.Repeat("9", 1<<20)},
		{`"bool"`, `"c4n4ry"`},
		{`"bool"`, `"True"`},
		{`"bool"`, `1`},
		{`"string"`, `["c4n4ry"]`},
		{`["list","string"]`, `"c4n4ry"`},
		{`["list","number"]`, `[1,"c4n4ry"]`},
		{`["set","string"]`, `{"c4n4ry":1}`},
		{`["map","bool"]`, `{"k":"c4n4ry"}`},
		{`["map","bool"]`, `"c4n4ry"`},
		{`["tuple",["string"]]`, `["c4n4ry","c4n4ry"]`},
		{`["tuple",["string","string"]]`, `["c4n4ry"]`},
		{`["tuple",["string"]]`, `"c4n4ry"`},
		{`["object",{"a":["list",["object",{"b":"bool"}]]}]`, `{"a":[{"b":true},{"b":"c4n4ry"}]}`},
		{`["object",{}]`, `{"z":"c4n4ry"}`},
		{`["object",{}]`, `"c4n4ry"`},
		{`"dynamic"`, `"c4n4ry"`},
		{`"dynamic"`, `{"value":"c4n4ry"}`},
		{`"dynamic"`, `{"type":"string"}`},
		{`"dynamic"`, `{"value":"c4n4ry","type":"c4n4ry"}`},
		{`"dynamic"`, `{"value":"c4n4ry","type":"number"}`},
		{`"dynamic"`, `{"value":"c4n4ry","type":"string","more":1}`},
		{`"dynamic"`, strings.Repeat(`{"type":"dynamic","value":`, 900) + `"` + strings.Repeat("x", 100<<10) + `"` + strings.Repeat("}", 900)},
		{`["list","dynamic"]`, `[{"value":"c4n4ry","type":"string"},{"value":1,"type":"number"}]`},
		{`["set","dynamic"]`, `[{"value":"c4n4ry","type":"string"},{"value":1,"type":"number"}]`},
		{`["map","dynamic"]`, `{"a":{"value":"c4n4ry","type":"string"},"b":{"value":1,"type":"number"}}`},

		{`"c4n4ry"`, `1`},
		{`null`, `1`},
		{`["c4n4ry","string"]`, `1`},
		{`["object",{},["c4n4ry"]]`, `{}`},
		{`["list"]`, `[]`},
		{strings.Repeat(`["list",`, 1001) + `"string"` + strings.Repeat("]", 1001), `[]`},
		{strings.Repeat(`["list",`, 900) + `"` + strings.Repeat("x", 300<<10) + `"` + strings.Repeat("]", 900), `[]`},
		{`["list","string"]`, deep(1001)},
	} {
		for _, sensitive := range []bool{false, true} {
			_, err := value(sensitive, tt.typ, tt.value)
			name := fmt.Sprintf("%.60s as %.60s, %d bytes", tt.value, tt.typ, len(tt.value)+len(tt.typ))
			if sensitive {
				name += ", sensitive"
			}
			says.Error(t, name, err)
		}
	}
}

// Keys that aren't in the type are data, which may be as secret as the values.
func TestSensitiveKeys(t *testing.T) {
	for _, typ := range []string{`["map","bool"]`, `["object",{}]`, `"dynamic"`} {
		for _, sensitive := range []bool{false, true} {
			if _, err := value(sensitive, typ, `{"key":"x"}`); err == nil || strings.Contains(err.Error(), "key") == sensitive {
				t.Errorf("%s: got %v", typ, err)
			}
		}
	}
}

func TestLongWayToAnError(t *testing.T) {
	_, err := value(false, strings.Repeat(`["list",`, 300)+`"bool"`+strings.Repeat("]", 300), strings.Repeat("[", 300)+"7"+
		strings.Repeat("]", 300))
	golden(t, "places").Error(t, "a long way", err)
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]string{
		`9007199254740993`:                          "9007199254740993",
		`"9007199254740993"`:                        "9007199254740993",
		`3.141592653589793238462643383279502884197`: "3.141592653589793238462643383279502884197",
		`-0.5`:                          "-0.5",
		`1.5E+300`:                      "15" + strings.Repeat("0", 299),
		`1e-30`:                         "0." + strings.Repeat("0", 29) + "1",
		`"+.5"`:                         "0.5",
		`1` + strings.Repeat("0", 1000): "1" + strings.Repeat("0", 1000),
	} {
		v, err := value(false, `"number"`, text)
		if err != nil {
			t.Errorf("%.50s: %v", text, err)
			continue
		}
		got, _ := new(big.Rat).SetString(v.AsBigFloat().Text('f', -1))
		if exact, _ := new(big.Rat).SetString(want); got.Cmp(exact) != 0 {
			t.Errorf("%.50s: got %s", text, v.AsBigFloat().Text('f', -1))
		}
	}
}

// Small files that ask for much work or memory are refused before it is done:
// the type is of many attributes, the value of as many elements.
//
// Promise: Cost
func TestSmallFilesWithMuchWork(t *testing.T) {
	testkit.OneGoroutine(t)
	const many = 20_000
	var wide strings.Builder
	wide.WriteString(`["object",{"a":"bool"`)
	for i := range many {
		fmt.Fprintf(&wide, `,"a%d":"bool"`, i)
	}
	wide.WriteString("}]")
	for name, element := range map[string]struct{ typ, value string }{
		"absent attributes": {wide.String(), "{}"},
		"nulls":             {wide.String(), "null"},
		"empty lists":       {`["list",` + wide.String() + `]`, "[]"},
	} {
		_, err := value(false, `["list",`+element.typ+`]`, "["+strings.Repeat(element.value+",", many)+"null]")
		if !errors.Is(err, ErrCost) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSetOfAlikeNumbers(t *testing.T) {
	var numbers strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&numbers, "%d,", int64(1_000_000_000_000_000)+int64(i))
	}
	_, err := value(false, `["set","number"]`, "["+numbers.String()+"1]")
	golden(t, "sets").Error(t, "alike numbers", err)
}
