package attr

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// Values are the attributes of one entry, decoded against its [Table]:
// converted, known, with defaults and environment filled in. Asking for an
// attribute that the table does not declare is a programming error and panics.
type Values struct {
	Address string // of the entry, such as "key_provider.pbkdf2.main"

	attrs  map[string]cty.Value // :: attribute name → value, null when absent
	blocks map[string]Values    // :: nested block name → its values
	pos    map[string]Pos       // :: attribute name → place in text; "" is the entry's

	resolver  resolver
	variables map[string]string // :: attribute name → the variable that it comes from
	layered   map[string]bool   // :: attribute name, "" for the entry → a layer of the environment says it
}

// Environment returns the environment that absent attributes were filled from,
// for kinds that need more of it than attributes. It is nil, which finds
// nothing, if the environment must not be read, or has no say about the server
// that is asked: a client library that looks into the environment by itself must
// then be kept from it. Build may keep it, but reads nothing from it.
func (v Values) Environment() LookupEnv {
	if v.resolver.OtherServer {
		return nil
	}
	return v.resolver.Lookup
}

// Variable returns the variable that an attribute comes from, "" if the settings
// say it or nobody does.
func (v Values) Variable(name string) string { return v.variables[name] }

// Command returns [ErrCommand] if only the environment says what the attribute is, and
// must not choose what runs. It is for attributes of which some values name a command;
// those with [Attr.Command] have been refused before.
func (v Values) Command(name string) error {
	if v.resolver.AllowCommands || !v.layered[name] && v.variables[name] == "" {
		return nil
	}
	return errCommand()
}

// LeadsToCommand is Command for attributes whose values lead to a command that stands
// elsewhere, such as a profile. What only a variable says counts beside a layer: it is the
// user's own if the code has the rest. Without names, it is for a command that the entry
// leads to whatever it says.
func (v Values) LeadsToCommand(names ...string) error {
	beside := slices.Contains(slices.Collect(maps.Values(v.layered)), true)
	leads := func(name string) bool { return v.layered[name] || v.variables[name] != "" }
	if !v.resolver.AllowCommands && beside && (names == nil || slices.ContainsFunc(names, leads)) {
		return ErrCommand
	}
	return nil
}

// Hands reports whether the code gives one of the secrets called names, which are those
// that a client or a program is handed: variables and files that it finds by itself must
// then not lead the secret elsewhere. One in a block is called block.name, and all of a
// block by the name of the block; without names, it is any secret that is sent somewhere.
func (v Values) Hands(names ...string) bool { return v.handed(names) >= 0 }

// handed is the index of the first such secret, -1 for none.
func (v Values) handed(names []string) int {
	return slices.IndexFunc(v.resolver.secrets, func(w written) bool {
		return names == nil || slices.Contains(names, w.Path) || slices.Contains(names, strings.TrimSuffix(w.block, "."))
	})
}

// Refuse returns an error if the code gives one of the secrets called handed, see
// [Values.Hands]: what the client would follow, such as "the file ~/.kube/config", takes
// the place of an attribute.
func (v Values) Refuse(attribute, what string, handed ...string) error {
	i := v.handed(handed)
	if i < 0 {
		return nil
	}
	return v.Errorf(attribute, "%w", v.resolver.secrets[i].refuse(what, attribute))
}

func (v Values) get(name string) cty.Value {
	val, ok := v.attrs[name]
	if !ok {
		panic(fmt.Sprintf("%s has no attribute %q in its table", v.Address, name))
	}
	return val
}

// Has reports whether the attribute has a value.
func (v Values) Has(name string) bool { return !v.get(name).IsNull() }

// String returns a string attribute, "" when it is absent.
func (v Values) String(name string) string {
	if !v.Has(name) {
		return ""
	}
	return v.get(name).AsString()
}

// Bool returns a bool attribute, false when it is absent.
func (v Values) Bool(name string) bool { return v.Has(name) && v.get(name).True() }

// Int returns a number attribute, 0 when it is absent. A fraction, or a number
// outside min and max, is an error.
func (v Values) Int(name string, min, max int64) (int64, error) {
	if !v.Has(name) {
		return 0, nil
	}
	f := v.get(name).AsBigFloat()
	n, acc := f.Int64()
	switch {
	case !f.IsInt():
		return 0, v.Errorf(name, "a whole number is required")
	case acc != big.Exact || n < min || n > max:
		return 0, v.Errorf(name, "a number from %d to %d is required", min, max)
	}
	return n, nil
}

// Strings returns a list of strings, nil when it is absent.
func (v Values) Strings(name string) []string {
	var out []string
	if v.Has(name) {
		for _, e := range v.get(name).AsValueSlice() {
			if !e.IsNull() {
				out = append(out, e.AsString())
			}
		}
	}
	return out
}

// StringMap returns a map of strings, nil when it is absent.
func (v Values) StringMap(name string) map[string]string {
	if !v.Has(name) {
		return nil
	}
	out := map[string]string{}
	for k, e := range v.get(name).AsValueMap() {
		if !e.IsNull() {
			out[k] = e.AsString()
		}
	}
	return out
}

// Bytes returns a list of numbers from 0 to 255 as bytes, nil when it is
// absent. This is how OpenTofu writes bytes.
func (v Values) Bytes(name string) ([]byte, error) {
	if !v.Has(name) {
		return nil, nil
	}
	b, ok := syntax.Bytes(v.get(name))
	if !ok {
		return nil, v.Errorf(name, "a list of numbers from 0 to 255 is required")
	}
	return b, nil
}

// Identity is equal for equal values of the same kind of entry. It contains the
// values, secrets included: compare it, but never show it.
func (v Values) Identity() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(v.attrs)) {
		fmt.Fprintf(&b, "%s=%#v\n", name, v.attrs[name])
	}
	for _, name := range slices.Sorted(maps.Keys(v.blocks)) {
		fmt.Fprintf(&b, "%s{\n%s}\n", name, v.blocks[name].Identity())
	}
	return b.String()
}

// Block returns a nested block, and whether the user wrote it.
func (v Values) Block(name string) (Values, bool) {
	b, ok := v.blocks[name]
	return b, ok
}

// Errorf makes an error about one attribute, or about the whole entry when
// attr is empty. It names the variable if the value comes from one. Never put a
// value into it.
func (v Values) Errorf(attr, format string, args ...any) error {
	e := &Error{Address: v.Address, Attr: attr, Pos: v.pos[attr], Err: fmt.Errorf(format, args...)}
	variable := v.variables[attr]
	if variable == attr || v.resolver.OnlyEnvironment { // nobody can write it, or has written anything
		e.Attr = ""
	}
	if variable != "" {
		e.Err = fmt.Errorf("the environment variable %s: %w", variable, e.Err)
	}
	if variable != "" && v.resolver.OnlyEnvironment {
		e.Address = ""
	}
	return e
}
