package tfstate

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func value(sensitive bool, typ, value string) (cty.Value, error) {
	return Output{shared: new(shared), name: "o", Sensitive: sensitive, typ: []byte(typ), value: []byte(value)}.Value()
}

func TestValueErrors(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tt := range []struct{ typ, value, want string }{
		{`"number"`, `"c4n4ry"`, `output "o": a number is required`},
		{`"number"`, `"inf"`, `a number is required`},
		{`"number"`, `"1p9"`, `a number is required`},
		{`"number"`, `"0x1f"`, `a number is required`},
		{`"number"`, `"1e"`, `a number is required`},
		{`"number"`, `""`, `a number is required`},
		{`"number"`, `true`, `a number is required`},
		{`"number"`, `1e999999999`, `a number has more than 1024 digits when it is written out`},
		{`"number"`, `-1E-99999999999999999999`, `a number has more than 1024 digits when it is written out`},
		{`"number"`, `"1e600000000"`, `a number has more than 1024 digits when it is written out`},
		{`"number"`, strings.Repeat("9", 1<<20), `a number has more than 1024 digits`},
		{`"bool"`, `"c4n4ry"`, `a bool is required`},
		{`"bool"`, `"True"`, `a bool is required`},
		{`"bool"`, `1`, `a bool is required`},
		{`"string"`, `["c4n4ry"]`, `a string is required`},
		{`["list","string"]`, `"c4n4ry"`, `a list of string is required`},
		{`["list","number"]`, `[1,"c4n4ry"]`, `output "o": at [1]: a number is required`},
		{`["set","string"]`, `{"c4n4ry":1}`, `a set of string is required`},
		{`["map","bool"]`, `{"k":"c4n4ry"}`, `output "o": at ["k"]: a bool is required`},
		{`["map","bool"]`, `"c4n4ry"`, `a map is required`},
		{`["tuple",["string"]]`, `["c4n4ry","c4n4ry"]`, `too many tuple elements (need 1)`},
		{`["tuple",["string","string"]]`, `["c4n4ry"]`, `not enough tuple elements (need 2)`},
		{`["tuple",["string"]]`, `"c4n4ry"`, `a tuple is required`},
		{`["object",{"a":["list",["object",{"b":"bool"}]]}]`, `{"a":[{"b":true},{"b":"c4n4ry"}]}`,
			`output "o": at ."a"[1]."b": a bool is required`},
		{`["object",{}]`, `{"z":"c4n4ry"}`, `unsupported attribute "z"`},
		{`["object",{}]`, `"c4n4ry"`, `an object is required`},
		{`"dynamic"`, `"c4n4ry"`, `an object of value and type is required`},
		{`"dynamic"`, `{"value":"c4n4ry"}`, `needs both value and type`},
		{`"dynamic"`, `{"type":"string"}`, `needs both value and type`},
		{`"dynamic"`, `{"value":"c4n4ry","type":"c4n4ry"}`, `the type of a dynamic value can't be used: it is not a type`},
		{`"dynamic"`, `{"value":"c4n4ry","type":"number"}`, `a number is required`},
		{`"dynamic"`, `{"value":"c4n4ry","type":"string","more":1}`, `unsupported attribute "more"`},
		{`"dynamic"`, strings.Repeat(`{"type":"dynamic","value":`, 900) + `"` + strings.Repeat("x", 100<<10) + `"` + strings.Repeat("}", 900),
			`its values of dynamic type cost far more work than a file of its size should`},
		{`["list","dynamic"]`, `[{"value":"c4n4ry","type":"string"},{"value":1,"type":"number"}]`, `all elements must have the same type`},
		{`["set","dynamic"]`, `[{"value":"c4n4ry","type":"string"},{"value":1,"type":"number"}]`, `all elements must have the same type`},
		{`["map","dynamic"]`, `{"a":{"value":"c4n4ry","type":"string"},"b":{"value":1,"type":"number"}}`, `all elements must have the same type`},

		{`"c4n4ry"`, `1`, `its type can't be used: it is not a type as Terraform writes one`},
		{`null`, `1`, `it is not a type`},
		{`["c4n4ry","string"]`, `1`, `it is not a type`},
		{`["object",{},["c4n4ry"]]`, `{}`, `it is not a type`},
		{`["list"]`, `[]`, `it is not a type`},
		{strings.Repeat(`["list",`, 1001) + `"string"` + strings.Repeat("]", 1001), `[]`,
			`its type can't be used: it is nested more than 1000 deep`},
		{strings.Repeat(`["list",`, 900) + `"` + strings.Repeat("x", 300<<10) + `"` + strings.Repeat("]", 900), `[]`,
			`its types cost far more work than a file of its size should`},
		{`["list","string"]`, deep(1001), `its value is nested more than 1000 deep`},
	} {
		for _, sensitive := range []bool{false, true} {
			_, err := value(sensitive, tt.typ, tt.value)
			if sensitive {
				tt.want = "" // TestSensitiveKeys has the differences
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "c4n4ry") {
				t.Errorf("%.60s as %.60s: got %v, want %q", tt.value, tt.typ, err, tt.want)
			}
		}
	}
}

// Keys that aren't in the type are data, which may be as secret as the values.
func TestSensitiveKeys(t *testing.T) {
	for _, tt := range []struct{ typ, value, open, sensitive string }{
		{`["map","bool"]`, `{"key":"x"}`, `at ["key"]: a bool is required`, `at […]: a bool is required`},
		{`["object",{}]`, `{"key":"x"}`, `unsupported attribute "key"`, `an attribute is not in its type`},
		{`"dynamic"`, `{"key":"x"}`, `unsupported attribute "key"`, `an attribute is not in its type`},
	} {
		for sensitive, want := range map[bool]string{false: tt.open, true: tt.sensitive} {
			if _, err := value(sensitive, tt.typ, tt.value); err == nil || err.Error() != `output "o": `+want+restore {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
}

func TestLongWayToAnError(t *testing.T) {
	_, err := value(false, strings.Repeat(`["list",`, 300)+`"bool"`+strings.Repeat("]", 300), strings.Repeat("[", 300)+"7"+
		strings.Repeat("]", 300))
	if want := `output "o": at [0][0][0][0][0][0][0][0][0][0]…: a bool is required`; err == nil || err.Error() != want+restore {
		t.Errorf("got %v", err)
	}
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
func TestSmallFilesWithMuchWork(t *testing.T) {
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
		if err == nil || !strings.Contains(err.Error(), "cost far more work than") {
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
	if err == nil || !strings.Contains(err.Error(), "the elements of its sets cost far more work than") {
		t.Errorf("got %v", err)
	}
}
