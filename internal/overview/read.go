package overview

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/address"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// Read reads a plaintext state in format 1 to 4, in one pass. The result keeps slices of data, which must not be
// changed. Read takes time and memory linear in the length of data: about 200 bytes for each instance. Its errors
// quote no values.
func Read(data []byte) (*State, error) {
	r := &reader{
		json: jsonwalk.NewReader(data).KeepStrings(), state: &State{Marked: true}, data: data, left: 16*len(data) + 1<<16,
		modules: map[string]string{}, providers: map[string]*provider{},
	}
	err := r.file()
	if err != nil {
		if _, reason := tfstate.Parse(data); reason != nil { // such as that this is not a state at all
			return nil, reason
		}
		return nil, err
	}
	s := r.state
	slices.SortFunc(s.Outputs, func(a, b Output) int { return strings.Compare(a.Name, b.Name) })
	if !slices.IsSortedFunc(s.Resources, order) { // Terraform and OpenTofu sort them
		slices.SortStableFunc(s.Resources, order)
	}
	slices.SortStableFunc(s.Checks, func(a, b Check) int { return strings.Compare(a.Address, b.Address) })
	return s, nil
}

// order compares the addresses of two instances. A deposed object comes after the current one.
func order(a, b *Resource) int {
	if c := strings.Compare(a.Module, b.Module); c != 0 {
		return c
	}
	if c := strings.Compare(b.Mode, a.Mode); c != 0 { // managed resources come first
		return c
	}
	if c := strings.Compare(a.Type, b.Type); c != 0 {
		return c
	}
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(a.Key.Index, b.Key.Index),
		strings.Compare(a.Key.Name, b.Key.Name), strings.Compare(a.Deposed, b.Deposed),
	)
}

// reader reads one state.
type reader struct {
	json  *jsonwalk.Reader
	state *State
	data  []byte
	left  int        // how many bytes the addresses of further instances may have together
	free  []Resource // for the next instances, so that each is no allocation of its own

	modules   map[string]string // canonical module paths by the path in the file
	providers map[string]*provider
}

// errForm is the error for a state that Terraform and OpenTofu would not write.
func errForm(member string) error {
	return fault.With(fmt.Errorf("%q in the state does not have the form that Terraform and OpenTofu write, so the state was edited "+
		"or damaged", member), "restore an intact copy")
}

func (r *reader) file() error {
	small := map[string]any{
		"version": &r.state.Version, "terraform_version": &r.state.TerraformVersion, "serial": &r.state.Serial, "lineage": &r.state.Lineage,
	}
	var modules []byte
	err := r.json.Object(func(name string) (err error) {
		switch name = jsonwalk.Fold(name); name {
		case "version", "terraform_version", "serial", "lineage":
			var raw []byte
			if raw, err = r.json.Skip(); err == nil && json.Unmarshal(raw, small[name]) != nil {
				err = errForm(name)
			}
		case "outputs":
			r.state.Outputs, err = r.outputs(output4)
		case "resources":
			r.state.Resources = nil
			err = r.list(name, r.resource)
		case "check_results":
			r.state.Checks = nil
			err = r.list(name, r.check)
		case "modules":
			modules, err = r.json.Skip()
		default:
			_, err = r.json.Skip()
		}
		return formed(name, err)
	})
	if err == nil {
		err = r.json.End()
	}
	switch v := r.state.Version; {
	case err != nil:
		return err
	case v < 1 || v > 4 || r.state.Serial < 0:
		return errForm("version") // the parser of outputs says more
	case v < 4:
		r.state.Outputs, r.state.Resources, r.state.Checks, r.state.Marked = nil, nil, nil, false
		if modules == nil {
			return nil
		}
		r.json = jsonwalk.NewReader(modules).KeepStrings()
		return r.list("modules", r.module)
	}
	return nil
}

// formed replaces a syntax error in a member by one that names the member.
func formed(member string, err error) error {
	if _, ok := errors.AsType[*jsonwalk.SyntaxError](err); ok {
		return errForm(member)
	}
	return err
}

// list reads an array, which may be null.
func (r *reader) list(member string, element func() error) error {
	if r.json.Kind() == 'n' {
		_, err := r.json.Skip()
		return err
	}
	return formed(member, r.json.Array(element))
}

// text reads a string, or null as an empty string.
func (r *reader) text() (string, error) {
	if r.json.Kind() == 'n' {
		_, err := r.json.Skip()
		return "", err
	}
	return r.json.String()
}

// resource reads a resource in format 4, with its instances.
func (r *reader) resource() error {
	at, first := address.Address{}, len(r.state.Resources)
	configuration := ""
	if err := r.json.Object(func(name string) (err error) {
		switch jsonwalk.Fold(name) {
		case "module":
			at.Module, err = r.text()
		case "mode":
			at.Mode, err = r.text()
		case "type":
			at.Type, err = r.text()
		case "name":
			at.Name, err = r.text()
		case "provider":
			configuration, err = r.text()
		case "instances":
			r.state.Resources = r.state.Resources[:first]
			err = r.list("instances", r.instance)
		default:
			_, err = r.json.Skip()
		}
		return err
	}); err != nil {
		return err
	}
	switch {
	case at.Mode == "" || at.Type == "" || at.Name == "":
		return errForm("resources")
	case at.Mode != address.Managed && at.Mode != address.Data: // later versions may have other modes
		r.state.Resources = r.state.Resources[:first]
		return nil
	}
	at.Module = r.module4(at.Module)
	length := len(at.Module) + len(at.Type) + len(at.Name)
	for _, one := range r.state.Resources[first:] {
		at.Key = one.Key
		one.Address = at
		if one.provider == nil {
			one.provider = r.provider(configuration)
		}
		r.state.Marked = r.state.Marked && one.Marked
		if r.left -= length; r.left < 0 {
			return fault.With(fmt.Errorf("the addresses of the instances of %s are far longer than the whole state, so the state was edited",
				outside.Line(at.Resource(), 300)), "restore an intact copy")
		}
	}
	return nil
}

// module4 returns the canonical form of a module path.
func (r *reader) module4(path string) string {
	module, known := r.modules[path]
	if !known {
		module = address.Module(path)
		r.modules[path] = module
	}
	return module
}

func (r *reader) provider(configuration string) *provider {
	p, known := r.providers[configuration]
	if !known {
		p = &provider{configuration, address.Provider(configuration)}
		r.providers[configuration] = p
	}
	return p
}

// instance reads an instance in format 4. Its address is only known at the end of the resource.
func (r *reader) instance() error {
	if len(r.free) == 0 {
		r.free = make([]Resource, 1+min(len(r.state.Resources), 255))
	}
	one := &r.free[0]
	r.free = r.free[1:]
	hasAttributes := false
	start := r.json.Offset()
	err := r.json.Object(func(name string) (err error) {
		var text string
		switch jsonwalk.Fold(name) {
		case "index_key":
			one.Key, err = r.key()
		case "deposed":
			one.Deposed, err = r.text()
		case "status":
			text, err = r.text()
			one.Tainted = text == "tainted"
		case "provider": // OpenTofu has one for an instance if instances differ
			if text, err = r.text(); text != "" {
				one.provider = r.provider(text)
			}
		case "attributes", "attributes_flat":
			hasAttributes = r.json.Kind() != 'n' || hasAttributes
			_, err = r.json.Skip()
		case "sensitive_attributes":
			one.Marked = r.json.Kind() == '['
			_, err = r.json.Skip()
		default:
			_, err = r.json.Skip()
		}
		return err
	})
	one.Marked = one.Marked || !hasAttributes
	one.stored = bytes.TrimRight(r.data[start:r.json.Offset()], " \t\r\n")
	r.state.Resources = append(r.state.Resources, one)
	return err
}

// key reads the key of an instance.
func (r *reader) key() (address.Key, error) {
	switch r.json.Kind() {
	case 'n':
		_, err := r.json.Skip()
		return address.Key{}, err
	case '"':
		name, err := r.json.String()
		return address.Key{Kind: address.StringKey, Name: cty.NormalizeString(name)}, err
	}
	raw, err := r.json.Literal()
	if err != nil {
		return address.Key{}, err
	}
	n, err := strconv.ParseUint(string(raw), 10, 31)
	if err != nil {
		return address.Key{}, errForm("index_key")
	}
	return address.Key{Kind: address.IntKey, Index: int(n)}, nil
}

// check reads the result of the checks of one object.
func (r *reader) check() error {
	var c Check
	err := r.json.Object(func(name string) (err error) {
		switch jsonwalk.Fold(name) {
		case "object_kind":
			c.Kind, err = r.text()
		case "config_addr":
			c.Address, err = r.text()
		case "status":
			c.Status, err = r.text()
		case "objects":
			err = r.list("objects", func() error {
				one := CheckInstance{}
				err := r.json.Object(func(name string) (err error) {
					switch jsonwalk.Fold(name) {
					case "object_addr":
						one.Address, err = r.text()
					case "status":
						one.Status, err = r.text()
					default: // such as the messages
						_, err = r.json.Skip()
					}
					return err
				})
				c.Instances = append(c.Instances, one)
				return err
			})
		default:
			_, err = r.json.Skip()
		}
		return err
	})
	slices.SortStableFunc(c.Instances, func(a, b CheckInstance) int { return strings.Compare(a.Address, b.Address) })
	r.state.Checks = append(r.state.Checks, c)
	return err
}

// outputs reads the outputs of a module. It calls output with the JSON of each.
func (r *reader) outputs(output func(raw []byte) (Output, error)) (all []Output, err error) {
	if r.json.Kind() == 'n' {
		_, err := r.json.Skip()
		return nil, err
	}
	at := map[string]int{} // the last of two outputs with the same name wins, as for Terraform
	err = r.json.Object(func(name string) error {
		raw, err := r.json.Skip()
		if err != nil {
			return err
		}
		one, err := output(raw)
		one.Name = name
		if i, twice := at[name]; twice {
			all[i] = one
		} else {
			at[name] = len(all)
			all = append(all, one)
		}
		return err
	})
	return all, err
}

// output4 reads an output in format 2 to 4.
func output4(raw []byte) (o Output, err error) {
	err = jsonwalk.Members(raw, func(name string, value []byte) (bool, error) {
		switch jsonwalk.Fold(name) {
		case "value":
			o.value = value
		case "type":
			o.typ = value
		case "sensitive": // anything else than false is a mark
			o.Sensitive = o.Sensitive || string(value) != "false" && string(value) != "null"
		}
		return true, nil
	})
	o.Type = typeOf(o.typ, 0)
	return o, err
}

// typeOf returns the type of an output without names: those of an object's attributes may be data.
func typeOf(typ []byte, depth int) string {
	const unknown, deepest = "unknown", 10
	r := jsonwalk.NewReader(typ)
	switch {
	case depth > deepest:
		return "…"
	case r.Kind() == '"':
		text, _ := r.String()
		if slices.Contains([]string{"string", "number", "bool", "dynamic", "list", "map"}, text) { // the last two of format 2 and 3
			return text
		}
		return unknown
	case r.Kind() != '[':
		return unknown
	}
	var parts [][]byte
	if err := r.Array(func() error {
		part, err := r.Skip()
		parts = append(parts, part)
		return err
	}); err != nil || len(parts) < 2 {
		return unknown
	}
	switch kind := string(parts[0]); kind {
	case `"list"`, `"set"`, `"map"`:
		return strings.Trim(kind, `"`) + "(" + typeOf(parts[1], depth+1) + ")"
	case `"object"`, `"tuple"`:
		return strings.Trim(kind, `"`)
	}
	return unknown
}
