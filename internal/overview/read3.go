package overview

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/address"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
)

// module reads a module in format 1 to 3. The path of the root module is ["root"].
func (r *reader) module() error {
	var path []string
	var outputs, resources []byte
	if err := r.json.Object(func(name string) error {
		raw, err := r.json.Skip()
		if err != nil {
			return err
		}
		switch jsonwalk.Fold(name) {
		case "path":
			if json.Unmarshal(raw, &path) != nil {
				return errForm("path")
			}
		case "outputs":
			outputs = raw
		case "resources":
			resources = raw
		}
		return nil
	}); err != nil {
		return err
	}
	if len(path) == 0 {
		return errForm("path")
	}
	module := ""
	for _, name := range path[1:] {
		module = strings.TrimPrefix(module+".module."+name, ".")
	}
	inner := &reader{json: jsonwalk.NewReader(outputs), state: r.state, data: outputs, providers: r.providers}
	if slices.Equal(path, []string{"root"}) && outputs != nil {
		read := output4
		if r.state.Version == 1 {
			read = output1
		}
		var err error
		if r.state.Outputs, err = inner.outputs(read); err != nil {
			return err
		}
	}
	if resources == nil || resources[0] == 'n' {
		return nil
	}
	inner.json = jsonwalk.NewReader(resources)
	return inner.json.Object(func(name string) error {
		at, err := addressOf(module, name)
		if err != nil {
			return err
		}
		if r.left -= len(at.Module) + len(name); r.left < 0 {
			return errForm("modules")
		}
		return inner.resource3(at)
	})
}

// output1 reads an output in format 1, which is a string and has no marks.
func output1(raw []byte) (Output, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return Output{}, errForm("outputs")
	}
	return Output{Type: "string", value: raw}, nil
}

// addressOf returns the address of a resource by its name in format 1 to 3: data.TYPE.NAME.INDEX, of which the first
// and the last may be absent.
func addressOf(module, name string) (address.Address, error) {
	at := address.Address{Module: module, Mode: address.Managed}
	parts := strings.Split(name, ".")
	if len(parts) > 2 && parts[0] == address.Data {
		at.Mode, parts = address.Data, parts[1:]
	}
	if len(parts) == 3 {
		n, err := strconv.ParseUint(parts[2], 10, 31)
		if err != nil {
			return at, errForm("resources")
		}
		at.Key, parts = address.Key{Kind: address.IntKey, Index: int(n)}, parts[:2]
	}
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return at, errForm("resources")
	}
	at.Type, at.Name = parts[0], parts[1]
	return at, nil
}

// resource3 reads a resource in format 1 to 3: its primary instance, and its deposed and, in format 1, tainted ones.
func (r *reader) resource3(at address.Address) error {
	provider, first, others := "", len(r.state.Resources), 0
	add := func(deposed string, tainted bool) error {
		raw, err := r.json.Skip()
		if err != nil || string(raw) == "null" {
			return err
		}
		one := &Resource{Address: at, Deposed: deposed, isFlat: true, stored: raw}
		if err := jsonwalk.Members(raw, func(name string, value []byte) (bool, error) {
			tainted = tainted || jsonwalk.Fold(name) == "tainted" && string(value) == "true"
			return true, nil
		}); err != nil {
			return err
		}
		one.Tainted = tainted
		r.state.Resources = append(r.state.Resources, one)
		return nil
	}
	err := r.json.Object(func(name string) (err error) {
		switch name = jsonwalk.Fold(name); name {
		case "primary":
			err = add("", false)
		case "deposed", "tainted":
			if r.json.Kind() != '[' {
				_, err = r.json.Skip()
				return err
			}
			err = r.json.Array(func() error { // these have no keys in the file
				others++
				return add(strconv.Itoa(others), name == "tainted")
			})
		case "provider":
			provider, err = r.text()
		default:
			_, err = r.json.Skip()
		}
		return err
	})
	for _, one := range r.state.Resources[first:] {
		one.provider = r.provider(provider)
	}
	return err
}

// flat returns the attributes in a flat map, in which an attribute is a text, or several texts whose names begin with
// the attribute's name and a dot. The names behind the dot may be data.
func flat(raw []byte) (all []attribute, err error) {
	texts := map[string]map[string]json.RawMessage{}
	if err := jsonwalk.Members(raw, func(key string, value []byte) (bool, error) {
		name, _, _ := strings.Cut(key, ".")
		if texts[name] == nil {
			texts[name] = map[string]json.RawMessage{}
		}
		texts[name][key] = value
		return true, nil
	}); err != nil {
		return nil, err
	}
	for name, parts := range texts {
		one := attribute{name: name, value: parts[name], sensitive: true}
		if len(parts) > 1 || one.value == nil {
			if one.value, err = json.Marshal(parts); err != nil {
				return nil, err
			}
		}
		one.value = bytes.TrimSpace(one.value)
		all = append(all, one)
	}
	return all, nil
}
