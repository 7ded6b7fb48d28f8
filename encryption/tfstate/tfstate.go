// Package tfstate reads the outputs and the resources of a plaintext state, as Terraform and
// OpenTofu write them: outputs of formats 1 to 4 with exactly the types that they have in the
// configuration, and resources of format 4, the only one since Terraform 0.12.
// encryption.Target.Decrypt returns such a state.
//
// Anybody who can write to the store of a state can change the file. The costs of decoding are
// limited by its size, see [ErrCost] and [ErrDigits]. Values may be nested 1,000 deep.
//
// Values are secrets. Errors name an output or a resource, and the path within its value, never
// the value. Text from the file is escaped and cut short in them, so that they can be printed.
//
// A value is a [cty.Value]. Package gocty of the same module turns one into Go values, and its
// package json into JSON; the examples show both. An output that a configuration writes as
// ["a", "b"] or { a = "b" } is a tuple or an object: package convert makes it the list or the map
// that gocty requires for a slice or a Go map.
package tfstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/zclconf/go-cty/cty"
)

// State holds the outputs of the root module and the metadata of a state. Any number of goroutines
// may use it at once.
//
// [State.Resource] and [State.Resources] read the bytes that were parsed, which stay
// in memory as long as the State, and must not be changed.
type State struct {
	Version          int    // the version of the format, 1 to 4
	TerraformVersion string // the version of the Terraform or OpenTofu that wrote the state; "" if absent
	Serial           int64  // 0 if absent, never negative
	Lineage          string // "" if absent

	// Outputs maps names to outputs, whose values are not decoded yet.
	Outputs map[string]Output

	list      []byte                        // the JSON of the resources, a part of the file
	resources func() (resourceIndex, error) // the list by address; nil in a copy without resources
}

// WithoutResources returns a copy that has all but the resources, and shares no memory with
// the file.
func (s *State) WithoutResources() *State {
	c := *s
	c.list, c.resources = nil, nil
	return &c
}

// Output is one output of the root module, not decoded yet.
type Output struct {
	Sensitive  bool   // whether the configuration marks it as sensitive; false in format 1
	Deprecated string // the reason why it is deprecated, which only OpenTofu writes; "" if it is not

	name    string
	value   json.RawMessage
	typ     json.RawMessage
	implied bool    // whether the type follows from the value, as in formats before 4
	shared  *shared // nil for an output that the state does not have
}

// Parse reads a plaintext state of any size, and takes little more memory than the outputs have
// bytes. It does not decode outputs: a type or value that cannot be used is an error of
// [Output.Value]. Like Terraform, it ignores keys that it does not know, and the last of two
// outputs with the same name wins. The error tells if data is no state, such as an encrypted one,
// or a state in a later format.
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
// one limit of costs, independent of other calls. The first error, which names its output, ends it.
// It leaves out names that the state does not have.
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

// Value decodes the output with exactly the type that the file gives it; in formats 1 to 3,
// which have no types, with the type that follows from the value. Each call decodes again.
// [Parse] decodes no values, so an unused output costs nothing, and an invalid output does not
// affect the others.
//
// Errors name the output. It can return [ErrCost] because of outputs that were decoded before,
// which share a limit; [State.Values] decodes a selection with a limit of its own.
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
		return cty.NilType, fmt.Errorf("its type can't be used: %w", err)
	}
	return ty, nil
}
