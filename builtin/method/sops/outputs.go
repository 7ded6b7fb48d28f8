package sops

import (
	"slices"
	"strings"
	"time"
)

// checkOutputs returns an error unless each output has a value and a type, and Terraform would write such a
// value for that type.
func checkOutputs(outputs any) error {
	branch, ok := outputs.(object)
	if !ok && hasContent(outputs) {
		return misplaced("outputs", "the value is not an object")
	}
	if err := (shape{}).check("outputs", branch); err != nil {
		return err
	}
	for _, item := range branch {
		where := "outputs." + item.name
		output, ok := item.value.(object)
		if !ok || !isOutput(output) {
			return misplaced(where, "the output has no value, no type, or an unknown member")
		}
		value, typ := output.get("value"), output.get("type")
		if err := checkSorted(value, where, true); err != nil {
			return err
		}
		if nesting(output) > maxOutput {
			return misplaced(where, "the value is nested too deeply")
		}
		if !isType(typ) || !conforms(value, typ) {
			return misplaced(where, "the value does not match its type")
		}
	}
	return nil
}

// maxOutput is the maximum nesting depth of an output and its type. The depth is limited because each level
// checks again whether the objects below it are empty.
const maxOutput = 200

// nesting returns the nesting depth of objects and lists in a value.
func nesting(value any) int {
	deepest := 0
	switch v := value.(type) {
	case object:
		for _, item := range v {
			deepest = max(deepest, 1+nesting(item.value))
		}
	case []any:
		for _, element := range v {
			deepest = max(deepest, 1+nesting(element))
		}
	}
	return deepest
}

func isOutput(output object) bool {
	found := 0
	for _, item := range output {
		ok := true
		switch item.name {
		case "value", "type":
			found++
		case "sensitive":
			_, ok = item.value.(bool)
		case "deprecated":
			_, ok = item.value.(string)
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return found == 2
}

// kind returns the name and the inner part of a type such as "string", ["list", "string"] or ["object", {…}].
// The name is empty for any other value.
func kind(typ any) (name string, inner any) {
	switch t := typ.(type) {
	case string:
		switch t {
		case "string", "number", "bool", "dynamic":
			return t, nil
		}
	case []any:
		if len(t) != 2 {
			return "", nil
		}
		ok := false
		switch name, _ = t[0].(string); name {
		case "list", "set", "map":
			ok = true
		case "tuple":
			_, ok = t[1].([]any)
		case "object":
			_, ok = t[1].(object)
		}
		if ok {
			return name, t[1]
		}
	}
	return "", nil
}

// conforms reports whether Terraform would write value for the given type.
func conforms(value, typ any) bool {
	if value == nil {
		return true
	}
	switch name, inner := kind(typ); name {
	case "string":
		_, isText := value.(string)
		_, isTime := value.(time.Time) // YAML can contain times
		return isText || isTime
	case "number":
		_, isInt := value.(int)
		_, isFloat := value.(float64)
		return isInt || isFloat
	case "bool":
		_, is := value.(bool)
		return is
	case "dynamic":
		v, ok := value.(object)
		return ok && isWrapper(v) && conforms(v[0].value, v[1].value)
	case "list", "set":
		return listConforms(value, inner)
	case "map":
		all, ok := value.(object)
		return ok && !slices.ContainsFunc(all, func(item member) bool { return !conforms(item.value, inner) })
	case "tuple":
		return tupleConforms(value, inner)
	case "object":
		return objectConforms(value, inner)
	}
	return false
}

// isType reports whether typ is a valid type at all levels, with object attributes in sorted order.
func isType(typ any) bool {
	switch name, inner := kind(typ); name {
	case "":
		return false
	case "list", "set", "map":
		return isType(inner)
	case "tuple":
		all, _ := inner.([]any)
		return !slices.ContainsFunc(all, func(t any) bool { return !isType(t) })
	case "object":
		all, _ := inner.(object)
		inOrder := slices.IsSortedFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
		return inOrder && !slices.ContainsFunc(all, func(item member) bool { return !isType(item.value) })
	}
	return true
}

// isWrapper reports whether an object consists of a dynamically typed value and its type.
func isWrapper(v object) bool {
	return len(v) == 2 && v[0].name == "value" && v[1].name == "type" && isType(v[1].value)
}

func listConforms(value, element any) bool {
	all, ok := value.([]any)
	if !ok {
		return false
	}
	name, inner := kind(element)
	for i, v := range all {
		switch name {
		case "list", "set", "map", "tuple", "object":
			if v == nil {
				return false // an attacker could insert a null between two elements
			}
		}
		if !conforms(v, element) {
			return false
		}
		if name == "object" && (vacant(v, inner) || i > 0 && divided(all[i-1], v, element, element)) {
			return false
		}
	}
	return true
}

func tupleConforms(value, types any) bool {
	all, ok := value.([]any)
	inner, _ := types.([]any)
	if !ok || len(all) != len(inner) {
		return false
	}
	for i, v := range all {
		if !conforms(v, inner[i]) {
			return false
		}
		if name, _ := kind(inner[i]); name == "object" && i > 0 && divided(all[i-1], v, inner[i-1], inner[i]) {
			return false
		}
	}
	return true
}

func objectConforms(value, types any) bool {
	all, ok := value.(object)
	inner, _ := types.(object)
	return ok && slices.EqualFunc(all, inner, func(item, typ member) bool {
		return item.name == typ.name && conforms(item.value, typ.value)
	})
}

// If an attacker splits an object into two list elements, both contain nulls or other empty values where
// content moved away. Terraform may write such elements, too. They cannot be distinguished from an
// attacker's, so they are rejected.

// mayHaveMoved reports whether a value is empty, but may have had content that an attacker moved elsewhere.
// It returns false for a dynamically typed null, because content would be accompanied by its type, and for a
// value whose type only allows empty values.
func mayHaveMoved(value, typ any) bool {
	name, inner := kind(typ)
	switch name {
	case "dynamic":
		return false
	case "tuple", "object":
		return !hasContent(value) && hasContent(inner)
	}
	return !hasContent(value)
}

// vacant reports whether an object has attributes but no content, so that an attacker may have inserted it.
func vacant(value, types any) bool {
	all, _ := value.(object)
	inner, _ := types.(object)
	for i, item := range all {
		if !mayHaveMoved(item.value, inner[i].value) {
			return false
		}
	}
	return len(all) > 0
}

// divided reports whether an attacker may have split one object into the two neighboring objects a and b,
// with empty values where content moved away. Both objects must conform to their types.
func divided(a, b, typeA, typeB any) bool {
	joins, gaps := rejoins(a, b, typeA, typeB)
	return joins && gaps
}

// rejoins reports whether two values may be parts of one value that an attacker split, and whether the split
// may have left empty values.
func rejoins(a, b, typeA, typeB any) (joins, gaps bool) {
	kindA, innerA := kind(typeA)
	kindB, innerB := kind(typeB)
	switch {
	case kindA != kindB:
		return false, false
	case kindA == "list", kindA == "set", kindA == "map":
		return true, false
	case kindA != "object":
		return false, false
	}
	first, _ := a.(object)
	second, _ := b.(object)
	inA, _ := innerA.(object)
	inB, _ := innerB.(object)
	end := -1 // the last attribute of a that has content
	for i := range first {
		if hasContent(first[i].value) {
			end = i
		}
	}
	start := slices.IndexFunc(second, func(item member) bool { return hasContent(item.value) }) // the first one of b
	sameName := func(x, y member) bool { return x.name == y.name }
	if end < 0 || start < end || !slices.EqualFunc(first, second, sameName) {
		return false, false
	}
	if start > end {
		gaps = mayHaveMoved(first[start].value, inA[start].value) && mayHaveMoved(second[end].value, inB[end].value)
		return gaps, gaps
	}
	joins, gaps = rejoins(first[end].value, second[end].value, inA[end].value, inB[end].value)
	return joins, gaps || gap(first[end+1:], inA[end+1:]) || gap(second[:end], inB[:end])
}

func gap(items, types object) bool {
	for i, item := range items {
		if mayHaveMoved(item.value, types[i].value) {
			return true
		}
	}
	return false
}
