package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// dataInstance is an instance of terraform_data in a state that a test makes.
type dataInstance struct {
	module, name string
	key          any // nil, an int or a string
	deposed      string
	tainted      bool
	id           string
	input        any
	replace      any
	marked       bool // the input
}

// dataState is such a state.
type dataState struct {
	serial    int
	instances []dataInstance
	outputs   map[string]any
	secret    map[string]bool // which outputs are sensitive
}

// typeOfData returns the type of a value as the state has it.
func typeOfData(v any) any {
	switch v := v.(type) {
	case nil:
		return "dynamic"
	case string:
		return "string"
	case bool:
		return "bool"
	case []any:
		types := make([]any, len(v))
		for i, inner := range v {
			types[i] = typeOfData(inner)
		}
		return []any{"tuple", types}
	case map[string]any:
		types := map[string]any{}
		for name, inner := range v {
			types[name] = typeOfData(inner)
		}
		return []any{"object", types}
	}
	return "number"
}

func dynamicData(v any) any {
	if v == nil {
		return nil
	}
	return map[string]any{"value": v, "type": typeOfData(v)}
}

// text returns the state as a file.
func (s dataState) text(t *testing.T, r *rand.Rand) string {
	t.Helper()
	type place struct{ module, name string }
	byPlace := map[place][]any{}
	for _, one := range s.instances {
		instance := map[string]any{
			"schema_version": 0, "sensitive_attributes": []any{},
			"attributes": map[string]any{
				"id": one.id, "input": dynamicData(one.input), "output": dynamicData(one.input), "triggers_replace": dynamicData(one.replace),
			},
		}
		if one.key != nil {
			instance["index_key"] = one.key
		}
		if one.deposed != "" {
			instance["deposed"] = one.deposed
		}
		if one.tainted {
			instance["status"] = "tainted"
		}
		if one.marked {
			instance["sensitive_attributes"] = []any{[]any{map[string]any{"type": "get_attr", "value": "input"}}}
		}
		at := place{one.module, one.name}
		byPlace[at] = append(byPlace[at], instance)
	}
	resources := []any{}
	for at, instances := range byPlace { // in any order
		resource := map[string]any{
			"mode": "managed", "type": "terraform_data", "name": at.name, "provider": `provider["terraform.io/builtin/terraform"]`,
			"instances": instances,
		}
		if at.module != "" {
			resource["module"] = at.module
		}
		resources = append(resources, resource)
	}
	outputs := map[string]any{}
	for name, value := range s.outputs {
		outputs[name] = map[string]any{"value": value, "type": typeOfData(value), "sensitive": s.secret[name]}
	}
	all := map[string]any{
		"version": 4, "terraform_version": "1.5.0", "serial": s.serial, "lineage": "6f1c1c50-2b1e-4b0e-9d6a-0d0c6f7d8a11", "outputs": outputs,
		"resources": resources, "check_results": nil,
	}
	out, err := json.Marshal(all)
	if r.IntN(2) == 0 {
		out, err = json.MarshalIndent(all, "", "  ")
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(out), ":1.5,", ":15e-1,")
}

// next returns a state after some random changes.
func (s dataState) next(r *rand.Rand) dataState {
	after := dataState{s.serial + 1, slices.Clone(s.instances), maps.Clone(s.outputs), maps.Clone(s.secret)}
	value := func() any {
		all := []any{"a", "b\"é\n", true, false, 1, 1.5, 12345678901, []any{"x", 1}, map[string]any{"k": "v", "n": []any{}}, map[string]any{},
			nil}
		return all[r.IntN(len(all))]
	}
	fresh := func() dataInstance {
		one := dataInstance{
			module: []string{"", "module.m", `module.m["a b"].module.n[0]`}[r.IntN(3)], name: string(rune('a' + r.IntN(4))),
			id: fmt.Sprintf("id-%d", r.IntN(1_000_000)), input: value(), replace: value(),
		}
		if r.IntN(8) == 0 {
			one.id = "none" // which may be the id of several
		}
		switch kind := int(one.name[0]+byte(len(one.module))) % 3; kind { // all instances of a resource have the same kind of key
		case 1:
			one.key = r.IntN(12)
		case 2:
			one.key = []string{"x", "y.z", `q"`}[r.IntN(3)]
		}
		return one
	}
	where := func(one dataInstance) string {
		return fmt.Sprint(one.module, " ", one.name, " ", one.key, " ", one.deposed)
	}
	taken := func(one dataInstance) bool {
		return slices.ContainsFunc(after.instances, func(other dataInstance) bool { return where(other) == where(one) })
	}
	for range r.IntN(6) {
		at := 0
		if len(after.instances) > 0 {
			at = r.IntN(len(after.instances))
		}
		action := r.IntN(9)
		switch one := fresh(); {
		case action < 2 || len(after.instances) == 0:
			if r.IntN(6) == 0 {
				one.deposed = fmt.Sprintf("%08x", r.IntN(1000))
			}
			if !taken(one) {
				after.instances = append(after.instances, one)
			}
		case action == 2:
			after.instances = slices.Delete(after.instances, at, at+1)
		case action == 3:
			moved := after.instances[at]
			moved.module, moved.name, moved.key = one.module, one.name, one.key
			if !taken(moved) {
				after.instances[at] = moved
			}
		case action == 4:
			after.instances[at].input = value()
		case action == 5:
			after.instances[at].replace = value()
		case action == 6:
			after.instances[at].tainted = !after.instances[at].tainted
		case action == 7:
			after.instances[at].id = one.id
		default:
			after.instances[at].marked = !after.instances[at].marked
		}
	}
	for range r.IntN(3) {
		name := string(rune('o' + r.IntN(4)))
		switch r.IntN(3) {
		case 0:
			delete(after.outputs, name)
		case 1:
			after.outputs[name] = value()
		default:
			after.secret[name] = !after.secret[name]
		}
		if after.outputs[name] == nil { // Terraform writes no output that is null
			delete(after.outputs, name)
		}
	}
	return after
}

// shownResource is a resource as "terraform show -json" prints it.
type shownResource struct {
	Address   string
	Deposed   string `json:"deposed_key"`
	Tainted   bool
	Values    map[string]any
	Sensitive map[string]any `json:"sensitive_values"`
}

type shownModule struct {
	Resources []shownResource
	Modules   []shownModule `json:"child_modules"`
}

// shownState is a state as "terraform show -json" prints it.
type shownState struct {
	Values struct {
		Outputs map[string]any
		Root    shownModule `json:"root_module"`
	}
}

func (m shownModule) all() (all []shownResource) {
	all = m.Resources
	for _, inner := range m.Modules {
		all = append(all, inner.all()...)
	}
	return all
}

// differences returns what "statecrypt diff" should say of two states, by what Terraform shows of them.
func differences(old, now shownState) (all []string) {
	index := func(s shownState) (found map[string]shownResource, ids map[string][]string) {
		found, ids = map[string]shownResource{}, map[string][]string{}
		for _, r := range s.Values.Root.all() {
			at := r.Address + " " + r.Deposed
			if found[at] = r; r.Deposed == "" {
				ids[r.Values["id"].(string)] = append(ids[r.Values["id"].(string)], at)
			}
		}
		return found, ids
	}
	before, idsBefore := index(old)
	after, idsAfter := index(now)
	moved := map[string]string{} // from the new address to the old one
	for id, at := range idsBefore {
		there := idsAfter[id]
		if len(at) != 1 || len(there) != 1 {
			continue
		}
		_, stays := after[at[0]]
		_, was := before[there[0]]
		if !stays && !was {
			moved[there[0]] = at[0]
		}
	}
	gone := maps.Clone(before)
	for at, r := range after {
		from, isMoved := moved[at]
		was, isThere := before[at]
		switch change := "changed"; {
		case !isMoved && !isThere:
			all = append(all, "added "+at)
		default:
			if isMoved {
				change, was = "moved from "+from, before[from]
				delete(gone, from)
			}
			delete(gone, at)
			if text := changesOf(was, r); text != "" || isMoved {
				all = append(all, change+" "+at+text)
			}
		}
	}
	for at := range gone {
		all = append(all, "removed "+at)
	}
	for name, output := range now.Values.Outputs {
		if was, ok := old.Values.Outputs[name]; !ok {
			all = append(all, "added output "+name)
		} else if !reflect.DeepEqual(was, output) {
			all = append(all, "changed output "+name)
		}
	}
	for name := range old.Values.Outputs {
		if _, ok := now.Values.Outputs[name]; !ok {
			all = append(all, "removed output "+name)
		}
	}
	slices.Sort(all)
	return all
}

// changesOf lists the attributes that differ, and whether one of the two is tainted, or has another mark.
func changesOf(old, now shownResource) (text string) {
	for _, name := range slices.Sorted(maps.Keys(now.Values)) {
		if !reflect.DeepEqual(old.Values[name], now.Values[name]) {
			text += " " + name
		}
	}
	if (old.Sensitive["input"] == true) != (now.Sensitive["input"] == true) {
		text += " (sensitive_attributes)"
	}
	if old.Tainted != now.Tainted {
		text += " (status)"
	}
	return text
}

// said returns what "statecrypt diff -json" prints, in the same words.
func said(t *testing.T, text string) (all []string) {
	t.Helper()
	var printed struct {
		Outputs   []struct{ Change, Name string }
		Resources []struct {
			Change, Address      string
			Previous             string `json:"previous_address"`
			Deposed              string `json:"deposed_key"`
			Attributes, Metadata []string
		}
	}
	if err := json.Unmarshal([]byte(text), &printed); err != nil {
		t.Fatal(err)
	}
	for _, o := range printed.Outputs {
		all = append(all, o.Change+" output "+o.Name)
	}
	for _, r := range printed.Resources {
		line := r.Change + " "
		if r.Previous != "" {
			line += "from " + r.Previous + "  "
		}
		line += r.Address + " " + r.Deposed
		for _, name := range r.Attributes {
			line += " " + name
		}
		for _, name := range r.Metadata {
			line += " (" + name + ")"
		}
		all = append(all, line)
	}
	slices.Sort(all)
	return all
}

// TestDiffLikeShow: of 300 pairs of states, diff says what differs in what "terraform show -json" prints of both.
func TestDiffLikeShow(t *testing.T) {
	t.Parallel()
	c := terraform(t, "")
	r := rand.New(rand.NewPCG(2026, 71)) //nolint:gosec // states of a test
	state := dataState{outputs: map[string]any{}, secret: map[string]bool{}}
	show := func(name string) (shown shownState, file string) {
		file = write(t, c.file(name), state.text(t, r))
		d := json.NewDecoder(strings.NewReader(c.run(t, "", "show", "-json", file)))
		d.UseNumber()
		if err := d.Decode(&shown); err != nil {
			t.Fatal(err)
		}
		return shown, file
	}
	before, old := show("0.tfstate")
	kinds := map[string]int{}
	for n := range testkit.Rounds(300) {
		state = state.next(r)
		after, now := show(fmt.Sprintf("%d.tfstate", n+1))
		want := differences(before, after)
		got := said(t, must(t, opensPlain, "", "diff", "-json", old, now))
		if !slices.Equal(got, want) {
			t.Errorf("pair %d: got\n  %s\nwant\n  %s", n, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
		for _, line := range want {
			kind, _, _ := strings.Cut(line, " ")
			kinds[kind]++
		}
		before, old = after, now
	}
	for _, kind := range []string{"added", "removed", "moved", "changed"} {
		if kinds[kind] == 0 {
			t.Errorf("no difference is of the kind %s: %v", kind, kinds)
		}
	}
	t.Log(kinds)
}
