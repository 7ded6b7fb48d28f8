package amplification

import (
	"fmt"
)

func state4(value, typ, attributes, marks string) string {
	return fmt.Sprintf(`{"version":4,"serial":1,"lineage":"l","outputs":{"a":{"value":%s,"type":%s}},`+
		`"resources":[{"mode":"managed","type":"x","name":"y","provider":"provider[\"example.com/x/x\"]",`+
		`"instances":[{"schema_version":0,"attributes":%s,"sensitive_attributes":%s}]}]}`, value, typ, attributes, marks)
}

func output4(value, typ string) string { return state4(value, typ, "{}", "[]") }

// power is a number that is written out with that many digits.
func power(digits int) string { return fmt.Sprintf("1e%d", digits-1) }

// collections is a list, a set or a map of texts or numbers, two in each other
// one around it.
func collections(kind, leaf string, open, end string, member func(i int, value string) string) Grammar {
	productions := with(unlimited("elements"), Production{"levels", 5})
	if leaf == "string" {
		productions = with(productions, unlimited("length of texts")...)
	} else {
		productions = with(productions, Production{"digits", 1000})
	}
	return Grammar{kind + "s of " + leaf + "s", productions, func(n Counts) string {
		number := 0 // of a leaf
		leaves := func(int) string {
			number++
			if leaf == "string" {
				return fmt.Sprintf(`"%d%s"`, number, word(n["length of texts"]))
			}
			return fmt.Sprintf("%de%d", number, n["digits"]-1)
		}
		level := func(size int, inner func(int) string) func(int) string {
			return func(int) string {
				return open + join(size, func(i int) string { return member(i, inner(i)) }) + end
			}
		}
		value := level(n["elements"], leaves)
		for range n["levels"] - 1 {
			value = level(2, value)
		}
		return output4(value(0), nested(n["levels"], `["`+kind+`",`, `"`+leaf+`"`, "]"))
	}}
}

func states() []Grammar {
	plain := func(_ int, value string) string { return value }
	keyed := func(i int, value string) string { return fmt.Sprintf(`"k%d":%s`, i, value) }
	all := []Grammar{}
	for _, leaf := range []string{"string", "number"} {
		all = append(all, collections("list", leaf, "[", "]", plain), collections("set", leaf, "[", "]", plain))
	}
	all = append(all, collections("map", "string", "{", "}", keyed))
	return append(all, setsOfSets(), objects(), deepTypes(), manyOutputs())
}

// sparse are states that say little of each value: what is absent, what has its
// type beside it, short fractions, and outputs without a type.
func sparse() []Grammar {
	return []Grammar{absent(), dynamic(), fractions(), oldModules(3), oldModules(1)}
}

func setsOfSets() Grammar {
	return Grammar{"sets of sets", unlimited("sets", "elements"), func(n Counts) string {
		return output4(list(n["sets"], func(i int) string {
			return list(n["elements"]-1, func(j int) string { return fmt.Sprintf(`"%d%s"`, i, word(j)) })
		}), `["set",["set","string"]]`)
	}}
}

func attributes(n int, length int, value string) string {
	return members(n, func(i int) string { return fmt.Sprintf(`"k%d%s":%s`, i, word(length), value) })
}

func objects() Grammar {
	return Grammar{"objects", unlimited("objects", "attributes", "length of names"), func(n Counts) string {
		object := func(value string) string { return attributes(n["attributes"], n["length of names"], value) }
		return output4(list(n["objects"], same(object("1"))), `["list",["object",`+object(`"number"`)+"]]")
	}}
}

// absent has more than eight attributes, so that a map of them hashes its names.
func absent() Grammar {
	return Grammar{"absent", with(unlimited("objects", "nulls", "attributes", "length of names"), Production{"depth", 900}),
		func(n Counts) string {
			object := `["object",` + attributes(8+n["attributes"], n["length of names"], `"number"`) + "]"
			inner := "[" + join(n["objects"], same("{}")) + "," + join(n["nulls"], same("null")) + "]"
			return output4(nested(n["depth"], "[", inner, "]"), nested(n["depth"]+1, `["list",`, object, "]"))
		}}
}

func dynamic() Grammar {
	return Grammar{"dynamic values", with(unlimited("values", "elements"), Production{Depth, 990}), func(n Counts) string {
		one := `{"value":` + list(n["elements"], same("1")) + `,"type":["list","number"]}`
		all := `{"value":` + list(n["values"], same(one)) + `,"type":["tuple",` + list(n["values"], same(`"dynamic"`)) + "]}"
		return output4(nested(n[Depth], `{"value":`, all, `,"type":"dynamic"}`), `"dynamic"`)
	}}
}

// fractions have no end in binary, and 512 bits.
func fractions() Grammar {
	return Grammar{"fractions", unlimited("values"), func(n Counts) string {
		return output4(list(n["values"], same("1.1")), `["list","number"]`)
	}}
}

func deepTypes() Grammar {
	return Grammar{"types", with(unlimited("attributes", "length of names"), Production{"depth", 980}), func(n Counts) string {
		object := func(value string) string { return attributes(n["attributes"], n["length of names"], value) }
		return output4(nested(n["depth"], "[", object("1"), "]"), nested(n["depth"], `["list",`, `["object",`+object(`"number"`)+"]", "]"))
	}}
}

func manyOutputs() Grammar {
	return Grammar{"outputs", unlimited("outputs", "length of names", "length of texts"), func(n Counts) string {
		return `{"version":4,"serial":1,"lineage":"l","outputs":` + members(n["outputs"], func(i int) string {
			return fmt.Sprintf(`"o%d%s":{"value":"%s","type":"string","sensitive":%t}`, i, word(n["length of names"]), word(n["length of texts"]), i%2 == 0)
		}) + "}"
	}}
}

// oldModules is a state in a format before 4, which has no types.
func oldModules(version int) Grammar {
	g := Grammar{Name: fmt.Sprintf("format %d", version), Productions: unlimited("outputs", "length of names")}
	if version > 1 {
		g.Productions = with(g.Productions, Production{"depth", 900}, Production{Name: "attributes"})
	}
	g.File = func(n Counts) string {
		value := `"v"`
		if version > 1 {
			value = `{"value":` + nested(n["depth"], `{"b":1,"a":`, attributes(n["attributes"], 1, "1"), "}") + `,"type":"map"}`
		}
		outputs := members(n["outputs"], func(i int) string { return fmt.Sprintf(`"o%d%s":%s`, i, word(n["length of names"]), value) })
		module := `{"path":["root"],"outputs":` + outputs + "}"
		return fmt.Sprintf(`{"version":%d,"serial":1,"lineage":"l","modules":[%s]}`, version, module)
	}
	return g
}

// resources are read as resources, whose types follow from the values.
func resources() []Grammar {
	nesting := Production{"depth", 900}
	mark := func(depth int, name string) string {
		return "[" + join(depth, same(`{"type":"get_attr","value":"`+name+`"}`)) + "]"
	}
	return []Grammar{
		{"attributes", with(unlimited("attributes", "length of names"), nesting, Production{"digits", 1000}), func(n Counts) string {
			inner := attributes(n["attributes"], n["length of names"], power(n["digits"]))
			return state4("1", `"number"`, nested(n["depth"], `{"a":`, inner, "}"), "[]")
		}},
		{"tuples", with(unlimited("elements", "length of texts"), nesting), func(n Counts) string {
			inner := list(n["elements"], same(`"`+word(n["length of texts"])+`"`))
			return state4("1", `"number"`, `{"a":`+nested(n["depth"], "[", inner, "]")+"}", "[]")
		}},
		{"marks", with(unlimited("marks", "length of names", "attributes"), nesting), func(n Counts) string {
			name := word(n["length of names"])
			attributes := nested(n["depth"], `{"`+name+`":`, attributes(n["attributes"], 1, "1"), "}")
			return state4("1", `"number"`, attributes, list(n["marks"], same(mark(n["depth"], name))))
		}},
		{"instances", unlimited("instances", "length of names", "attributes"), func(n Counts) string {
			return `{"version":4,"serial":1,"lineage":"l","resources":[{"mode":"managed","type":"x","name":"y","provider":"p","instances":` +
				list(n["instances"], func(i int) string {
					return fmt.Sprintf(`{"index_key":"%d%s","attributes":%s}`, i, word(n["length of names"]), attributes(n["attributes"], 1, "1"))
				}) + "}]}"
		}},
		{"counted", with(unlimited("instances"), Production{"gap", 9000}), func(n Counts) string {
			return `{"version":4,"serial":1,"lineage":"l","resources":[{"mode":"managed","type":"x","name":"y","provider":"p","instances":` +
				list(n["instances"], func(i int) string {
					return fmt.Sprintf(`{"index_key":%d,"attributes":{}}`, i+i/(n["instances"]-1)*n["gap"])
				}) + "}]}"
		}},
		{"resources", unlimited("resources", "length of names"), func(n Counts) string {
			return `{"version":4,"serial":1,"lineage":"l","resources":` + list(n["resources"], func(i int) string {
				name := "y"
				if i > 0 {
					name = fmt.Sprint("z", i, word(n["length of names"]))
				}
				return fmt.Sprintf(`{"mode":"managed","type":"x","name":"%s","instances":[{"attributes":{}}]}`, name)
			}) + "}"
		}},
	}
}
