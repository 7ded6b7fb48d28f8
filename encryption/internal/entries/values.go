package entries

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// values implements [attr.Values] for an entry, or for one of its nested blocks.
type values struct {
	address string // the address of the entry
	within  string // the nested block that contains the values, such as "assume_role."; "" for the entry itself

	attrs  map[string]cty.Value // values by attribute name; null if absent
	blocks map[string]*values   // values of nested blocks, by name
	pos    map[string]attr.Pos  // positions in text by attribute name; "" for the entry
	given  []Given              // all attributes, including attributes of nested blocks

	resolver  resolver
	variables map[string]string // environment variables, by the name of the attribute they set
	layered   map[string]bool   // whether TF_ENCRYPTION sets an attribute, by attribute name
}

func (v *values) Address() string { return strings.TrimSuffix(v.address+"."+v.within, ".") }

func (v *values) Environment() attr.LookupEnv {
	if v.resolver.OtherServer {
		return nil
	}
	return v.resolver.Lookup
}

func (v *values) Variable(name string) string { return v.variables[name] }

func (v *values) get(name string) cty.Value {
	val, ok := v.attrs[name]
	if !ok {
		panic(fmt.Sprintf("%s has no attribute %q in its table", v.Address(), name))
	}
	return val
}

func (v *values) Has(name string) bool { return !v.get(name).IsNull() }

func (v *values) String(name string) string {
	if !v.Has(name) {
		return ""
	}
	return v.get(name).AsString()
}

func (v *values) Bool(name string) bool { return v.Has(name) && v.get(name).True() }

func (v *values) Int(name string) int64 {
	if !v.Has(name) {
		return 0
	}
	n, _ := v.get(name).AsBigFloat().Int64()
	return n
}

func (v *values) Strings(name string) []string {
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

func (v *values) StringMap(name string) map[string]string {
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

func (v *values) Bytes(name string) ([]byte, error) {
	if !v.Has(name) {
		return nil, nil
	}
	b, ok := syntax.Bytes(v.get(name))
	if !ok {
		return nil, v.Errorf(name, "the value must be a list of numbers from 0 to 255")
	}
	return b, nil
}

func (v *values) Identity() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(v.attrs)) {
		fmt.Fprintf(&b, "%s=%#v\n", name, v.attrs[name])
	}
	for _, name := range slices.Sorted(maps.Keys(v.blocks)) {
		fmt.Fprintf(&b, "%s{\n%s}\n", name, v.blocks[name].Identity())
	}
	return b.String()
}

func (v *values) Block(name string) (attr.Values, bool) {
	if b, ok := v.blocks[name]; ok {
		return b, true
	}
	return nil, false
}

func (v *values) Errorf(attribute, format string, args ...any) error {
	e := &attr.Error{Address: v.address, Attr: v.path(attribute), Pos: cmp.Or(v.pos[attribute], v.pos[""]),
		Err: v.withSuspects(fmt.Errorf(format, args...), v.path(attribute))}
	variable := v.variables[attribute]
	if variable == attribute || v.resolver.OnlyEnvironment { // settings cannot contain the attribute, or there is no block
		e.Attr = v.path("")
	}
	if variable != "" {
		e.Err = fmt.Errorf("the environment variable %s: %w", variable, e.Err)
	}
	if variable != "" && v.resolver.OnlyEnvironment {
		e.Address = ""
	}
	return e
}

// withSuspects adds facts to err: the oddities of the attribute or block at path, or of the whole
// entry if path is "".
func (v *values) withSuspects(err error, path string) error {
	return fault.Later(err, func() (facts []fault.Fact) {
		for _, odd := range Oddities(v) {
			if path == "" || odd.Attr == path || strings.HasPrefix(odd.Attr, path+".") {
				facts = append(facts, odd.Suspect())
			}
		}
		return facts
	})
}

// path returns the path of an attribute in the entry, or the path of the nested block if attribute
// is "".
func (v *values) path(attribute string) string { return strings.TrimSuffix(v.within+attribute, ".") }
