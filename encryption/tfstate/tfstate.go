// Package tfstate reads the outputs and the resources of a plaintext state, as Terraform and
// OpenTofu write it. It reads outputs in formats 1 to 4, with exactly the types that they have in
// the configuration. It reads resources in format 4, the only format since Terraform 0.12. Such a
// state is the result of encryption.Target.Decrypt.
//
// Anyone who can write to the place where a state is stored can change the file. The cost of
// decoding is therefore limited, in proportion to the size of the file; see [ErrCost] and
// [ErrDigits]. Values may be nested 1,000 levels deep.
//
// Values are secrets. Errors name an output or a resource, and the path within its value, but never
// the value. Text from the file is escaped and shortened in errors, so that errors can be printed.
//
// A value is a [cty.Value]. In the cty module, package gocty converts it to Go values, and package
// json converts it to JSON; the examples show both. An output that a configuration writes as ["a",
// "b"] or { a = "b" } is a tuple or an object. Package convert turns it into the list or the map
// that gocty requires for a slice or a Go map.
package tfstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/zclconf/go-cty/cty"
)

// State holds the outputs of the root module and the metadata of a state. It is safe for concurrent
// use.
//
// [State.Resource] and [State.Resources] read the bytes that were parsed. These bytes stay in
// memory as long as the State, and must not be changed.
type State struct {
	Version          int    // the format version, 1 to 4
	TerraformVersion string // the version of Terraform or OpenTofu that wrote the state; "" if absent
	Serial           int64  // 0 if absent, never negative
	Lineage          string // "" if absent

	// Outputs maps names to outputs, whose values are not yet decoded.
	Outputs map[string]Output

	list      []byte                        // the JSON of the resources, a slice of the file
	resources func() (resourceIndex, error) // the resources by address; nil in a copy without resources
}

// WithoutResources returns a copy of the state without the resources. The copy shares no memory
// with the file.
func (s *State) WithoutResources() *State {
	c := *s
	c.list, c.resources = nil, nil
	return &c
}

// Output is one output of the root module, not yet decoded.
type Output struct {
	Sensitive  bool   // whether the configuration marks it as sensitive; false in format 1
	Deprecated string // why the output is deprecated, which only OpenTofu writes; "" if it is not

	name    string
	value   json.RawMessage
	typ     json.RawMessage
	implied bool    // whether the type follows from the value, as in formats before 4
	shared  *shared // nil for an output that the state does not have
}

// Parse reads a plaintext state of any size. It takes little more memory than the size of the
// outputs. It does not decode outputs: [Output.Value] returns the error for a type or a value that
// cannot be used. Like Terraform, Parse ignores unknown keys, and the last of two outputs with the
// same name wins. Its error says whether data is not a state, such as an encrypted one, or is a
// state in a later format.
func Parse(data []byte) (*State, error) {
	doc, err := parseDocument(data)
	if _, wrongType := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !wrongType {
		return nil, syntaxError(data, err)
	}
	// The version comes first: other formats may use the other keys differently.
	if err := checkVersion(doc, err); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, typeError(err)
	}
	if doc.Serial < 0 {
		return nil, edited(errors.New("the state's serial is negative"))
	}
	s := &State{Version: *doc.Version, TerraformVersion: doc.TerraformVersion, Serial: doc.Serial, Lineage: doc.Lineage}
	s.list = doc.Resources
	s.resources = sync.OnceValues(func() (resourceIndex, error) { return indexed(doc.Resources) })
	switch s.Version {
	case 4:
		s.Outputs, err = outputs4(doc.Outputs)
	case 3, 2:
		s.Outputs, err = rootOutputs(doc.Modules, output3)
	case 1:
		s.Outputs, err = rootOutputs(doc.Modules, output1)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Size returns the length of the output's value and type in the file, in bytes.
func (o Output) Size() int { return len(o.value) + len(o.typ) }

// Values returns the values of the outputs with these names, like [Output.Value]. The outputs share
// one cost limit, which is independent of other calls. Values stops at the first error, which names
// the output. It leaves out names that the state does not have.
func (s *State) Values(names ...string) (map[string]cty.Value, error) {
	size := 0
	for _, name := range names {
		size += s.Outputs[name].Size()
	}
	b := newBudget(size)
	values := make(map[string]cty.Value, len(names))
	for _, name := range names {
		o, ok := s.Outputs[name]
		if !ok {
			continue
		}
		v, err := o.valueWithin(b)
		if err != nil {
			return nil, err
		}
		values[name] = v
	}
	return values, nil
}

// Value decodes the output with exactly the type that the file gives it. Formats 1 to 3 have no
// types, so the type then follows from the value. Each call decodes the output again. [Parse]
// decodes no values, so an unused output costs nothing, and an invalid output does not affect the
// others.
//
// Errors name the output. Value can return [ErrCost] because of outputs that were decoded before,
// because all of them share a limit. [State.Values] decodes a selection of outputs with a separate
// limit.
func (o Output) Value() (cty.Value, error) {
	if o.shared == nil {
		return cty.NilVal, errors.New("the state has no such output")
	}
	return o.shared.value(o)
}

func (o Output) valueWithin(b *budget) (cty.Value, error) {
	v, err := o.decode(b)
	if err != nil {
		return cty.NilVal, fmt.Errorf("output %s: %w", quote(o.name), edited(err))
	}
	return v, nil
}

func (o Output) decode(b *budget) (cty.Value, error) {
	if len(o.value) == 0 {
		return cty.NilVal, errors.New("it has no value")
	}
	if nesting(o.value) > maxNesting {
		return cty.NilVal, fmt.Errorf("its value %w", errNesting)
	}
	typeOf := o.declaredType
	if o.implied {
		typeOf = o.impliedType
	}
	ty, err := typeOf(b)
	if err != nil {
		return cty.NilVal, err
	}
	d := &decoder{sensitive: o.Sensitive, budget: b}
	return d.decode(o.value, ty)
}

func (o Output) declaredType(b *budget) (cty.Type, error) {
	if len(o.typ) == 0 {
		return cty.NilType, errors.New("it has no type")
	}
	ty, err := o.shared.typeOf(o.typ, b)
	if err != nil {
		return cty.NilType, fmt.Errorf("its type is not valid: %w", err)
	}
	return ty, nil
}
