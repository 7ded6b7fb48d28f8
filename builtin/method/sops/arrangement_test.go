package sops_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// arranged is a state as Terraform 1.5 writes it, with everything whose brackets
// may be moved.
func arranged(t *testing.T) string {
	t.Helper()
	state, err := os.ReadFile("testdata/arranged.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(state)
}

// object keeps the order of its members.
type object struct{ members []named }

type named struct {
	name  string
	value any // *object, *list, or JSON text
}

type list struct{ elements []any }

func parseTree(t *testing.T, text []byte) *object {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var next func() any
	token := func() json.Token {
		tok, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	next = func() any {
		switch tok := token().(type) {
		case json.Delim:
			if tok == '{' {
				o := &object{}
				for d.More() {
					name, _ := token().(string)
					o.members = append(o.members, named{name: name, value: next()})
				}
				token()
				return o
			}
			l := &list{}
			for d.More() {
				l.elements = append(l.elements, next())
			}
			token()
			return l
		default:
			raw, _ := json.Marshal(tok)
			return string(raw)
		}
	}
	root, _ := next().(*object)
	return root
}

func text(value any) string {
	var parts []string
	switch v := value.(type) {
	case *object:
		for _, m := range v.members {
			name, _ := json.Marshal(m.name)
			parts = append(parts, string(name)+":"+text(m.value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case *list:
		for _, e := range v.elements {
			parts = append(parts, text(e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	s, _ := value.(string)
	return s
}

func hollow(value any) bool {
	switch v := value.(type) {
	case *object:
		return !slices.ContainsFunc(v.members, func(m named) bool { return !hollow(m.value) })
	case *list:
		return !slices.ContainsFunc(v.elements, func(e any) bool { return !hollow(e) })
	}
	return value == "null" || value == `""`
}

// move changes a tree, of which it holds a part.
type move struct {
	what, path string
	do         func()
}

func (m move) String() string { return m.what + " in " + m.path }

// moves are the ways to move one bracket, or to add or change one empty value.
// Paths have no list positions.
func moves(root *object) []move {
	var all []move
	var visit func(path string, value any)
	visit = func(path string, value any) {
		switch v := value.(type) {
		case *object:
			all = append(all, objectMoves(path, v)...)
			for _, m := range v.members {
				if path != "" || m.name != "sops" {
					visit(strings.TrimPrefix(path+"."+m.name, "."), m.value)
				}
			}
		case *list:
			all = append(all, listMoves(path, v)...)
			for _, e := range v.elements {
				visit(path, e)
			}
		}
	}
	visit("", root)
	return all
}

func objectMoves(path string, o *object) (all []move) {
	add := func(what string, do func()) { all = append(all, move{what, path, do}) }
	for i, m := range o.members {
		if path == "" && m.name == "sops" {
			continue
		}
		if inner, ok := m.value.(*object); ok && !hollow(inner) {
			for _, rest := range []any{nil, &object{}, "null"} {
				add("join names", func() {
					var out []named
					if rest != nil {
						out = append(out, named{name: m.name, value: rest})
					}
					for _, in := range inner.members {
						out = append(out, named{name: m.name + ":" + in.name, value: in.value})
					}
					o.members = slices.Replace(o.members, i, i+1, out...)
				})
			}
		}
		if hollow(m.value) {
			add("leave out empty", func() { o.members = slices.Delete(o.members, i, i+1) })
			for _, other := range []any{"null", `""`, &list{}, &object{}} {
				add("exchange empty", func() { o.members[i].value = other })
			}
		}
		if l, ok := m.value.(*list); ok && len(l.elements) == 1 {
			add("unwrap", func() { o.members[i].value = l.elements[0] })
		} else if _, scalar := m.value.(string); scalar {
			add("wrap", func() { o.members[i].value = &list{elements: []any{m.value}} })
		}
	}
	for _, name := range []string{"sensitive_attributes", "Sensitive_Attributes", "attributes", "value", "extra"} {
		for _, value := range []any{"null", &list{}, &object{}} {
			if !slices.ContainsFunc(o.members, func(m named) bool { return m.name == name }) {
				add("add empty "+name, func() { o.members = append(o.members, named{name: name, value: value}) })
			}
		}
	}
	return all
}

func listMoves(path string, l *list) (all []move) {
	add := func(what string, do func()) { all = append(all, move{what, path, do}) }
	for i := range len(l.elements) + 1 {
		for _, empty := range []any{"null", `""`, &list{}, &object{}} {
			add("insert empty", func() { l.elements = slices.Insert(l.elements, i, empty) })
		}
	}
	for i, e := range l.elements {
		var next any
		if i+1 < len(l.elements) {
			next = l.elements[i+1]
		}
		switch v := e.(type) {
		case *object:
			for k := range len(v.members) + 1 {
				for _, nulls := range []bool{false, true} {
					add("divide object", func() {
						l.elements = slices.Replace(l.elements, i, i+1, halves(v.members[:k], v.members[k:], nulls)...)
					})
					if other, ok := next.(*object); ok {
						add("move to the next object", func() {
							pushed := join(v.members[k:], other.members)
							l.elements[i], l.elements[i+1] = halves(v.members[:k], v.members[k:], nulls)[0], &object{members: pushed}
							if k == 0 && !nulls {
								l.elements = slices.Delete(l.elements, i, i+1)
							}
						})
					}
				}
			}
			if other, ok := next.(*object); ok {
				for k := range other.members {
					for _, nulls := range []bool{false, true} {
						add("move to the object before", func() {
							l.elements[i] = &object{members: join(v.members, other.members[:k])}
							l.elements[i+1] = halves(other.members[:k], other.members[k:], nulls)[1]
						})
					}
				}
			}
		case *list:
			for k := range len(v.elements) + 1 {
				add("divide list", func() {
					l.elements = slices.Replace(l.elements, i, i+1, any(&list{elements: slices.Clone(v.elements[:k])}),
						any(&list{elements: slices.Clone(v.elements[k:])}))
				})
				if other, ok := next.(*list); ok {
					add("move to the next list", func() {
						l.elements[i], l.elements[i+1] = &list{elements: v.elements[:k:k]}, &list{elements: slices.Concat(v.elements[k:], other.elements)}
						if k == 0 {
							l.elements = slices.Delete(l.elements, i, i+1)
						}
					})
				}
			}
			add("flatten", func() { l.elements = slices.Replace(l.elements, i, i+1, v.elements...) })
		case string:
			add("wrap", func() { l.elements[i] = &list{elements: []any{v}} })
		}
		if hollow(e) {
			add("leave out empty", func() { l.elements = slices.Delete(l.elements, i, i+1) })
		}
	}
	return all
}

// halves are two objects, perhaps with null for what is in the other.
func halves(a, b []named, nulls bool) []any {
	first, second := slices.Clone(a), slices.Clone(b)
	if nulls {
		for _, m := range b {
			first = append(first, named{name: m.name, value: "null"})
		}
		second = nil
		for _, m := range a {
			second = append(second, named{name: m.name, value: "null"})
		}
		second = append(second, b...)
	}
	return []any{&object{members: first}, &object{members: second}}
}

// join is one object of two, without empty members that are there twice.
func join(a, b []named) []named {
	var out []named
	for i, side := range [][]named{a, b} {
		other := [][]named{b, a}[i]
		for _, m := range side {
			if !hollow(m.value) || !slices.ContainsFunc(other, func(n named) bool { return n.name == m.name }) {
				out = append(out, m)
			}
		}
	}
	return out
}

// canariesOpen returns what no mark covers of an opened state.
func canariesOpen(t *testing.T, state []byte) (open []string) {
	t.Helper()
	var s struct {
		Resources []struct {
			Instances []struct {
				Attributes map[string]json.RawMessage
				Sensitive  [][]struct{ Value string } `json:"sensitive_attributes"`
			}
		}
	}
	if err := json.Unmarshal(state, &s); err != nil {
		t.Fatalf("%v: %s", err, state)
	}
	for _, r := range s.Resources {
		for _, i := range r.Instances {
			marked := map[string]bool{}
			for _, path := range i.Sensitive {
				if len(path) == 0 {
					i.Attributes = nil
					continue
				}
				marked[path[0].Value] = true
			}
			for name, value := range i.Attributes {
				if !marked[name] && bytes.Contains(value, []byte("canary")) {
					open = append(open, name)
				}
			}
		}
	}
	return open
}

// Promise: Key services
// Promise: Authentication
func TestRearranged(t *testing.T) {
	if testing.Short() {
		t.Skip("it tries every move; TestRearrangements has those that someone would make")
	}
	t.Parallel()
	identity, recipient := newAge(t)
	dataKey := newDataKey()
	file := sealed{plain: arranged(t), dataKey: dataKey, groups: groupOf(ageKey(t, recipient, dataKey))}.file(t)
	m := build(t, attrs{"age_identities": texts(identity)}, nil)
	original, err := m.Decrypt(t.Context(), nil, bytes.Clone(file))
	if err != nil {
		t.Fatal(err)
	}
	remain, known := map[string]bool{}, remaining()
	all := make([]int, len(moves(parseTree(t, file))))
	for i := range all {
		all[i] = i
	}
	for _, i := range testkit.Sample(all) {
		root := parseTree(t, file)
		one := moves(root)[i]
		name := one.String()
		one.do()
		if got := opened(t, m, root); got != nil && !bytes.Equal(compact(t, got), compact(t, original)) {
			if remain[name] = true; !slices.Contains(known, name) {
				t.Errorf("this move is possible: %s", name)
			}
		}
	}
	if all := testkit.Rounds(10) == 10; all && len(remain) != len(known) {
		t.Errorf("these moves are possible:\n%s", strings.Join(slices.Sorted(maps.Keys(remain)), "\n"))
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	for range testkit.Rounds(500) {
		root := parseTree(t, file)
		for range 2 + random.IntN(2) {
			all := moves(root)
			all[random.IntN(len(all))].do()
		}
		opened(t, m, root)
	}
}

// remaining are the moves that change what is read, and that nothing tells from
// what Terraform writes. None opens what is marked.
func remaining() []string {
	var all []string
	add := func(what string, paths ...string) {
		for _, path := range paths {
			all = append(all, what+" in "+path)
		}
	}
	const attributes, users = "resources.instances.attributes", "resources.instances.attributes.users"
	// Lists in lists, and maps in lists: nothing but brackets divides them.
	add("divide list", "outputs.lists.value")
	add("move to the next list", "outputs.lists.value")
	add("divide object", "outputs.maps.value", users)
	add("move to the next object", "outputs.maps.value")
	// Empty elements and members of lists and maps.
	add("insert empty", "outputs.lists.value", "outputs.maps.value", "outputs.names.value", "outputs.ports.value.ports",
		"outputs.rules.value.cidrs", "outputs.single.value.m", users, "resources.instances.dependencies",
		"resources.instances.sensitive_attributes")
	for _, name := range []string{"extra", "sensitive_attributes", "value"} {
		add("add empty "+name, "", "outputs.maps.value", "outputs.tags.value", "resources", "resources.instances", attributes, users)
	}
	for _, name := range []string{"Sensitive_Attributes", "attributes"} {
		add("add empty "+name, "", "resources", attributes)
	}
	// One empty value for another; a value in brackets of its own.
	add("exchange empty", "", "resources.instances", attributes)
	add("leave out empty", "", "resources.instances", attributes)
	add("wrap", "", "resources", "resources.instances", attributes, users, "resources.instances.dependencies")
	all = slices.DeleteFunc(all, func(what string) bool {
		// An instance has these, or the objects are in order of their names.
		return what == "add empty sensitive_attributes in resources.instances" || what == "add empty extra in outputs.maps.value" ||
			what == "add empty extra in "+users
	})
	slices.Sort(all)
	return all
}

// TestRearrangements moves several brackets at once, as someone would who
// wants to gain by it.
func TestRearrangements(t *testing.T) {
	t.Parallel()
	identity, recipient := newAge(t)
	dataKey := newDataKey()
	file := string(sealed{plain: arranged(t), dataKey: dataKey, groups: groupOf(ageKey(t, recipient, dataKey))}.file(t))
	m := build(t, attrs{"age_identities": texts(identity)}, nil)
	value := func(root *object, path ...string) *any {
		for {
			i := slices.IndexFunc(root.members, func(m named) bool { return m.name == path[0] })
			if len(path) == 1 {
				return &root.members[i].value
			}
			root, path = root.members[i].value.(*object), path[1:]
		}
	}
	pairs := func(root *object, output string) []any {
		return (*value(root, "outputs", output, "value")).(*list).elements
	}
	role := func(o any) named { return o.(*object).members[1] }
	name := func(o any) named { return o.(*object).members[0] }
	null := func(name string) named { return named{name: name, value: "null"} }
	users := func(output string, members ...[]named) func(*object) {
		return func(root *object) {
			var all []any
			for _, m := range members {
				all = append(all, &object{members: m})
			}
			*value(root, "outputs", output, "value") = &list{elements: all}
		}
	}
	root := parseTree(t, []byte(file))
	u, p := pairs(root, "users"), pairs(root, "team")
	instance := func(root *object, i int) *object {
		resource := (*value(root, "resources")).(*list).elements[0].(*object)
		return (*value(resource, "instances")).(*list).elements[i].(*object)
	}
	says := kindtest.OpenMistakes(t, "sops, arrangement")
	for what, change := range map[string]func(*object){
		"roles of others": users("users", []named{name(u[0]), null("role")}, []named{role(u[0]), name(u[1])},
			[]named{null("name"), role(u[1])}),
		"roles of others in a tuple": users("team", []named{name(p[0]), null("role")}, []named{role(p[0]), name(p[1])},
			[]named{null("name"), role(p[1])}),
		"roles of others, without nulls": users("users", []named{name(u[0])}, []named{role(u[0]), name(u[1])}, []named{role(u[1])}),
		"a user without a role": users("users", []named{name(u[0]), null("role")}, []named{null("name"), role(u[0])},
			u[1].(*object).members),
		"a user of nothing": users("users", u[0].(*object).members, []named{null("name"), null("role")}, u[1].(*object).members),
		"two lists of a tuple merged": func(root *object) {
			lists := pairs(root, "cidrs")
			all := slices.Concat(lists[0].(*list).elements, lists[1].(*list).elements)
			*value(root, "outputs", "cidrs", "value") = &list{elements: []any{&list{elements: all}}}
		},
		"a list divided": func(root *object) {
			rules := pairs(root, "rules")
			first := rules[0].(*object).members
			cidrs := first[0].value.(*list).elements
			*value(root, "outputs", "rules", "value") = &list{elements: []any{
				&object{members: []named{{name: "cidrs", value: &list{elements: cidrs[:1]}}, null("port")}},
				&object{members: []named{{name: "cidrs", value: &list{elements: cidrs[1:]}}, first[1]}}, rules[1]}}
		},
		"marks of a phantom": func(root *object) {
			i := instance(root, 0)
			resource := (*value(root, "resources")).(*list).elements[0].(*object)
			all := (*value(resource, "instances")).(*list)
			all.elements = slices.Insert(all.elements, 1, any(&object{members: slices.Clone(i.members[3:])}))
			i.members = append(i.members[:3:3], named{name: "sensitive_attributes", value: &list{}})
		},
		"marks of the next": func(root *object) {
			first, second := instance(root, 0), instance(root, 1)
			second.members = slices.Concat(first.members[3:], second.members[:3])
			first.members = append(first.members[:3:3], named{name: "sensitive_attributes", value: &list{}})
		},
		"marks under another name": func(root *object) {
			resource := (*value(root, "resources")).(*list).elements[1].(*object)
			i := (*value(resource, "instances")).(*list).elements[0].(*object)
			step := (*value(i, "sensitive_attributes")).(*list).elements[0].(*list).elements[0].(*object).members
			i.members = append(i.members[:2:2], named{name: "sensitive_attributes", value: &list{}},
				named{name: "sensitive_attributes:type", value: step[0].value}, named{name: "sensitive_attributes:value", value: step[1].value})
		},
		"a deep output": func(root *object) {
			deep := any("null")
			for range 300 {
				deep = &list{elements: []any{deep}}
			}
			*value(root, "outputs", "object", "value", "n") = deep
		},
	} {
		root := parseTree(t, []byte(file))
		change(root)
		_, err := m.Decrypt(t.Context(), nil, []byte(text(root)))
		says.Error(t, what, err)
	}
	// The steps of two paths in one: both names are marked nevertheless.
	root = parseTree(t, []byte(file))
	marks := (*value(instance(root, 0), "sensitive_attributes")).(*list)
	first, second := marks.elements[0].(*list), marks.elements[1].(*list)
	marks.elements = slices.Replace(marks.elements, 0, 2, any(&list{elements: slices.Concat(first.elements, second.elements)}))
	if got := opened(t, m, root); got == nil {
		t.Error("it does not open, although all marks are there")
	}
	// No mark at all hides everything.
	root = parseTree(t, []byte(file))
	second1 := instance(root, 1)
	second1.members = second1.members[:3]
	if got := opened(t, m, root); !bytes.Contains(got, []byte(`"sensitive_attributes":[[]]`)) {
		t.Errorf("an instance without marks: %s", got)
	}
	old := strings.Replace(arranged(t), "1.5.7", "0.13.7", 1)
	got, err := m.Decrypt(t.Context(), nil, sealed{plain: old, dataKey: dataKey, groups: groupOf(ageKey(t, recipient, dataKey))}.file(t))
	if err != nil || !bytes.Contains(got, []byte(`"sensitive_attributes":[[]]`)) {
		t.Errorf("a version that writes no marks: %s, %v", got, err)
	}
}

// TestArranged opens states that look as if someone had moved something.
func TestArranged(t *testing.T) {
	t.Parallel()
	deep := func(n int, begin, inside, end string) string {
		return strings.Repeat(begin, n) + inside + strings.Repeat(end, n)
	}
	colons := func(n int) string { return strings.Repeat(":", n) }
	const list, tuple = `["list",["object",{"a":"string","n":"string"}]]`, `["tuple",[["object",{"a":"string","n":"dynamic"}],["object",`
	for name, c := range map[string]struct {
		value, typ, more string
		ok               bool
	}{
		"nothing in a list":         {value: `["a",null,""]`, typ: `["list","string"]`, ok: true},
		"null of a tuple":           {value: `[{"a":"x","n":null},{"a":"y","n":1}]`, typ: tuple + `{"a":"string","n":"number"}]]]`, ok: true},
		"nulls of a tuple":          {value: `[{"a":"x","n":null},{"a":null,"n":1}]`, typ: tuple + `{"a":"dynamic","n":"number"}]]]`, ok: true},
		"null in an object":         {value: `[{"a":"x","n":null},{"a":"y","n":"z"}]`, typ: list, ok: true},
		"perhaps divided":           {value: `[{"a":"x","n":null},{"a":null,"n":"z"}]`, typ: list},
		"perhaps divided, deeper":   {value: `[{"o":[{"a":"x","n":null},{"a":null,"n":"z"}]}]`, typ: `["list",["object",{"o":` + list + `}]]`},
		"objects of nothing":        {value: `[{}]`, typ: `["list",["object",{}]]`, ok: true},
		"nothing but an empty type": {value: `[{"t":[]}]`, typ: `["list",["object",{"t":["tuple",[]]}]]`, ok: true},
		"an object of no content":   {value: `[{"t":[]}]`, typ: `["list",["object",{"t":["list","string"]}]]`},
		"a dynamic value":           {value: `{"value":"x","type":"string"}`, typ: `"dynamic"`, ok: true},
		"of another type":           {value: `{"value":1,"type":"string"}`, typ: `"dynamic"`},
		"null":                      {value: `null`, typ: `"dynamic"`, ok: true},
		"no type":                   {value: `null`, typ: `["list"]`},
		"digits":                    {value: `"1"`, typ: `"number"`},
		"all members":               {value: `"x"`, typ: `"string"`, more: `,"sensitive":true,"deprecated":"y"`, ok: true},
		"another member":            {value: `"x"`, typ: `"string"`, more: `,"extra":"y"`},
		"another order":             {value: `{"b":"x","a":"y"}`, typ: `["map","string"]`},
		"beside a name of it":       {value: `{"a":"x","a:b":"y"}`, typ: `["map","string"]`, ok: true},
		"out of a null":             {value: `{"a":null,"a:b":"y"}`, typ: `["map","string"]`},
		"out of an object":          {value: `{"a":{},"a:b":{"c":"y"}}`, typ: `["map",["map","string"]]`},
		"out of a list":             {value: `[{"m":{"a":[],"a:b:c":["y"]}}]`, typ: `["list",["object",{"m":["map",["list","string"]]}]]`},
		"64 colons":                 {value: `{"` + colons(63) + `":null,"` + colons(64) + `b":"y"}`, typ: `["map","string"]`},
		"more colons":               {value: `{"` + colons(64) + `":null,"` + colons(65) + `b":"y"}`, typ: `["map","string"]`, ok: true},
		"as deep as may be":         {value: deep(199, "[", `"x"`, "]"), typ: deep(199, `["list",`, `"string"`, "]"), ok: true},
		"deeper":                    {value: deep(200, "[", `"x"`, "]"), typ: deep(200, `["list",`, `"string"`, "]")},
		"no map":                    {value: `"x"`, typ: `["map","string"]`},
		"a number in a map":         {value: `{"a":1}`, typ: `["map","string"]`},
		"a name of nothing":         {value: `[{"":"x"}]`, typ: `["list",["map","string"]]`, ok: true},
		"no colon before it":        {value: `{"a:b":"y","c":null}`, typ: `["map","string"]`, ok: true},
		"types in another order":    {value: `{"b":"x","a":"y"}`, typ: `["object",{"b":"string","a":"string"}]`},
		"no type of an attribute":   {value: `null`, typ: `["object",{"a":"text"}]`},
		"nothing, of any type":      {value: `{}`, typ: `"dynamic"`},
		"no type beside it":         {value: `{"value":"x"}`, typ: `"dynamic"`},
		"type first":                {value: `{"type":"string","value":"x"}`, typ: `"dynamic"`},
		"another name":              {value: `{"val":"x","type":"string"}`, typ: `"dynamic"`},
		"another name of the type":  {value: `{"value":"x","typ":"string"}`, typ: `"dynamic"`},
		"a type that is none":       {value: `{"value":"x","type":"text"}`, typ: `"dynamic"`},
		"perhaps divided, a tuple": {value: `[{"a":"x","n":null},{"a":null,"n":"z"}]`,
			typ: `["tuple",[["object",{"a":"string","n":"string"}],["object",{"a":"string","n":"string"}]]]`},
		"one gap of a tuple": {value: `[{"a":"x","n":null},{"a":null,"n":"z"}]`,
			typ: `["tuple",[["object",{"a":"string","n":"string"}],["object",{"a":"dynamic","n":"string"}]]]`, ok: true},
		"nothing before, in a tuple": {value: `[{"a":null,"n":null},{"a":"y","n":1}]`, typ: tuple + `{"a":"string","n":"number"}]]]`, ok: true},
		"nothing before, beside a list": {value: `[{"a":null,"l":null},{"a":null,"l":["z"]}]`, ok: true,
			typ: `["tuple",[["object",{"a":"string","l":["list","string"]}],["object",{"a":"string","l":["list","string"]}]]]`},
		"both have the first": {value: `[{"a":"x","o":{"p":"1","q":null}},{"a":"y","o":{"p":null,"q":"2"}}]`,
			typ: `["list",["object",{"a":"string","o":["object",{"p":"string","q":"string"}]}]]`, ok: true},
		"objects in objects": {value: `[{"o":{"a":"x","n":null}},{"o":{"a":null,"n":"z"}}]`,
			typ: `["list",["object",{"o":["object",{"a":"string","n":"string"}]}]]`},
	} {
		t.Run(name, func(t *testing.T) {
			judged(t, `{"version":4,"terraform_version":"1.5.7","serial":1,"lineage":"l","outputs":{"o":{"value":`+c.value+`,"type":`+c.typ+
				c.more+`}},"resources":[]}`, c.ok)
		})
	}
	// Modules of older versions, and what is no state.
	const outputs = `"outputs":{"a":{"sensitive":false,"type":"string","value":"x"}}`
	judged(t, `{"version":3,"serial":1,"lineage":"l","modules":[{"path":["root"],`+outputs+`,"resources":{}}]}`, true)
	judged(t, `{"version":3,"modules":[{`+outputs+`,"path":["root"]}]}`, false)
	judged(t, `{"version":3,"modules":[{"path":["root"]},{`+outputs+`}]}`, false)
	judged(t, `{"version":4,"outputs":{"o":{"value":"x"}}}`, false)
	judged(t, `{"version":5,"outputs":{"o":{"value":"x"}}}`, true)
	judged(t, `{"version":0,"outputs":{"o":{"value":"x"}}}`, true)
	judged(t, `{"version":1,"modules":[{"outputs":{"a":"x"},"path":["root"]}]}`, false)
	judged(t, `{"version":4,"Version":3}`, false)
	judged(t, `{"encryption_version":"v0","meta":{"key_provider.x":"y"},"encrypted_data":"z"}`, true)
	judged(t, `{"b":[{"y":1,"x":2}]}`, true)
	// Marks stay what they are, and names that differ only in case may be deeper than those of the format.
	judged(t, `{"version":4,"terraform_version":"1.5.7","serial":1,"lineage":"l","outputs":{},"resources":[{"mode":"managed","type":"t",`+
		`"name":"n","provider":"p","instances":[{"schema_version":0,"attributes":{"a":"x","get_attr":"y","value":"z"},`+
		`"sensitive_attributes":[[{"type":"get_attr","value":"a"}]]}]}]}`, true)
	judged(t, `{"a":{"b":{"c":{"d":"","D":""}}}}`, true)
	judged(t, `{"a":{"b":{"c":"","C":""}}}`, false)
	judged(t, `{"a":`+deep(999, "[", `"x"`, "]")+`}`, true)
	judged(t, `{"a":`+deep(1000, "[", `"x"`, "]")+`}`, false)
}

// judged fails unless a file of plain opens, or is refused for what is where.
func judged(t *testing.T, plain string, ok bool) {
	t.Helper()
	identity, recipient := newAge(t)
	dataKey := newDataKey()
	m := build(t, attrs{"age_identities": texts(identity)}, nil)
	file := sealed{plain: plain, dataKey: dataKey, groups: groupOf(ageKey(t, recipient, dataKey))}.file(t)
	if ok {
		opens(t, m, file, plain)
	} else {
		fails(t, m, file, false)
	}
}

// opened returns what a rearranged file opens to, nil for an error.
func opened(t *testing.T, m driver.Method, root *object) []byte {
	t.Helper()
	rearranged := text(root)
	got, err := m.Decrypt(t.Context(), nil, []byte(rearranged))
	if err != nil {
		return nil
	}
	if open := canariesOpen(t, got); len(open) > 0 {
		t.Errorf("%q came out of their marks: %s", open, got)
	}
	return got
}

func compact(t *testing.T, state []byte) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(state, &v); err != nil {
		t.Fatal(err)
	}
	out, _ := json.Marshal(v)
	return out
}
