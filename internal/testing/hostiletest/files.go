// Package hostiletest provides small states that cause much work, for tests and benchmarks of the cost of untrusted
// files.
package hostiletest

import (
	"fmt"
	"strings"
)

// File is a state that causes more work than an honest state of the same size.
type File struct {
	Name     string
	Data     []byte
	Resource bool // whether the resource x.y causes the work, instead of the output a
	Refused  bool // whether reading fails with an error that says what costs too much
}

// Honest returns an ordinary state of about size bytes. It contains a list of objects, both as an output and as an
// attribute of the resource x.y.
func Honest(size int) []byte {
	const one = `{"id":"i-%d","ports":[80,443],"name":"a name that is neither short nor long"}`
	list := list(max(size/2/len(one), 1), func(i int) string { return fmt.Sprintf(one, i) })
	return state(list, `["list",["object",{"id":"string","ports":["list","number"],"name":"string"}]]`, `{"a":`+list+`}`)
}

// Files returns the states. All but the last two are smaller than 1 MiB.
func Files() []File {
	const member = `"k%d":%s`
	same := func(s string) func(int) string { return func(int) string { return s } }
	numbers := func(n int) string { return members(n, func(i int) string { return fmt.Sprintf(member, i, "1") }) }
	types := func(n int) string {
		return members(n, func(i int) string { return fmt.Sprintf(member, i, `"number"`) })
	}
	nested := func(depth int, before, inside, after string) string {
		return strings.Repeat(before, depth) + inside + strings.Repeat(after, depth)
	}
	alike := func(i int) string {
		return list(100, func(j int) string { return fmt.Sprintf("12345678901234.%d", i*max(j-98, 0)) })
	}
	text := func(i int) string { return fmt.Sprintf(`"%d"`, i) }
	object := func(n int) string { return `["object",` + types(n) + `]` }
	output := func(name, value, typ string) File { return File{Name: name, Data: state(value, typ, "{}")} }
	refused := func(f File) File {
		f.Refused = true
		return f
	}
	resource := func(name, attributes string) File {
		return File{Name: name, Data: state("1", `"number"`, attributes), Resource: true}
	}
	version3 := func(value string) []byte {
		return fmt.Appendf(nil, `{"version":3,"serial":1,"modules":[{"path":["root"],"outputs":{"a":{"value":%s,"type":"map"}}}]}`, value)
	}
	return []File{
		refused(output("20 numbers 1e-9999", list(20, same("1e-9999")), `["list","number"]`)),
		refused(output("1,000 numbers 1e-9999", list(1000, same("1e-9999")), `["list","number"]`)),
		refused(output("50,000 numbers 1e9999", list(50_000, same("1e9999")), `["list","number"]`)),
		refused(output("100,000 numbers 1e-999", list(100_000, same("1e-999")), `["list","number"]`)),
		refused(output("100,000 numbers 1e999", list(100_000, same("1e999")), `["list","number"]`)),
		output("250,000 numbers 1.1", list(250_000, same("1.1")), `["list","number"]`),
		refused(output("500 numbers 1e-999", list(500, same("1e-999")), `["list","number"]`)),
		refused(output("a set of 300 lists of 100 alike numbers", list(300, alike), `["set",["list","number"]]`)),
		refused(output("a set of 300 sets of 300 numbers", list(300, func(i int) string {
			return list(300, func(j int) string { return fmt.Sprint(i*300 + j) })
		}), `["set",["set","number"]]`)),
		output("a set of 20,000 strings", list(20_000, text), `["set","string"]`),
		refused(output("a set of 90,000 strings", list(90_000, text), `["set","string"]`)),
		refused(output("a set of 90,000 numbers", list(90_000, func(i int) string { return fmt.Sprint(i) }), `["set","number"]`)),
		refused(output("the deepest type", nested(990, "[", "1", "]"), nested(990, `["list",`, `"number"`, "]"))),
		output("the widest type", numbers(35_000), object(35_000)),
		refused(output("a type that is wide and deep", nested(200, "[", numbers(10_000), "]"), nested(200, `["list",`, object(10_000), "]"))),
		refused(output("a type that is wide and very deep", nested(900, "[", numbers(10_000), "]"),
			nested(900, `["list",`, object(10_000), "]"))),
		refused(output("16 dynamic values in each other", nested(15, `{"type":"dynamic","value":`, `{"type":["list","number"],"value":`+
			list(200_000, same("1"))+`}`, "}"), `"dynamic"`)),
		output("20,000 dynamic values", list(20_000, same(`{"type":["list","string"],"value":["a"]}`)), `["list","dynamic"]`),
		output("100,000 nulls of an object", list(100_000, same("null")), `["list",`+object(20)+`]`),
		refused(output("10,000 objects without their attributes", list(10_000, same("{}")), `["list",`+object(20)+`]`)),
		refused(output("100,000 objects without their attributes", list(100_000, same("{}")), `["list",`+object(100)+`]`)),
		refused(output("100,000 objects without an attribute of a long name", list(100_000, same("{}")),
			`["list",["object",{"`+strings.Repeat("k", 10_000)+`":"bool"}]]`)),
		output("long keys", members(10, func(i int) string { return fmt.Sprintf(`"%d%s":1`, i, strings.Repeat("k", 100_000)) }),
			`["map","number"]`),
		refused(File{Name: "format 3, 10,000 attributes, 900 deep", Data: version3(nested(900, `{"b":1,"a":`, numbers(10_000), "}"))}),
		{Name: "format 3, 1,000 attributes, 200 deep", Data: version3(nested(200, `{"b":1,"a":`, numbers(1000), "}"))},
		refused(resource("a resource with 1,000 numbers 1e-9999", `{"a":`+list(1000, same("1e-9999"))+"}")),
		refused(resource("a resource with 10,000 attributes, 900 deep", nested(900, `{"a":`, numbers(10_000), "}"))),
		resource("a resource with 50,000 attributes", numbers(50_000)),
		{Name: "100,000 outputs", Data: outputs(100_000, func(i int) string { return fmt.Sprintf("o%d", i) })},
		{Name: "100,000 outputs of one name", Data: outputs(100_000, same("a"))},
	}
}

func outputs(n int, name func(int) string) []byte {
	return fmt.Appendf(nil, `{"version":4,"serial":1,"outputs":%s}`,
		members(n, func(i int) string { return fmt.Sprintf(`%q:{"value":1,"type":"number"}`, name(i)) }))
}

func state(value, typ, attributes string) []byte {
	return fmt.Appendf(nil, `{"version":4,"serial":1,"outputs":{"a":{"value":%s,"type":%s}},`+
		`"resources":[{"mode":"managed","type":"x","name":"y","provider":"provider[\"example.com/x/x\"]",`+
		`"instances":[{"schema_version":0,"attributes":%s,"sensitive_attributes":[]}]}]}`, value, typ, attributes)
}

func list(n int, element func(int) string) string   { return "[" + join(n, element) + "]" }
func members(n int, member func(int) string) string { return "{" + join(n, member) + "}" }

func join(n int, part func(int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = part(i)
	}
	return strings.Join(parts, ",")
}
