// Package tfstate reads the header and the outputs of a plaintext state file,
// formats 1 to 4, as Terraform and OpenTofu write them, and the resources of
// format 4. Nothing else of the file is kept, and resources only if they are
// asked for: see [ParseResources].
//
// A state can be replaced by anyone who may write to the place where it is
// kept, so everything in it is taken as hostile, and its outputs and
// attributes are secrets: errors name an output or a resource, and the place within
// its value, never the value.
package tfstate

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"
)

// State is what a state file says of itself, and the outputs of its root
// module. It shares no memory with the file.
type State struct {
	Version          int    // of the format, 1 to 4
	TerraformVersion string // of the Terraform or OpenTofu that wrote it; "" if absent
	Serial           int64  // 0 if absent, never negative
	Lineage          string // "" if absent
	Outputs          map[string]Output
	Resources        *Resources // nil unless read by [ParseResources]
}

// Output is one output, not decoded yet.
type Output struct {
	Sensitive  bool
	Deprecated string // the producer's note, "" if it isn't deprecated

	name    string
	value   json.RawMessage
	typ     json.RawMessage
	implied bool // the type follows from the value: formats before 4
	types   *types
}

// Parse reads a state file. It looks at each output only as far as to tell
// whether it is sensitive: a type or value that can't be used is an error of
// [Output.Value]. As Terraform does, it ignores keys that it doesn't know, and
// the last of two outputs with the same name wins.
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
		return nil, errors.New("the state's serial is negative")
	}
	s := &State{Version: *doc.Version, TerraformVersion: doc.TerraformVersion, Serial: doc.Serial, Lineage: doc.Lineage}
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

// Size is the length in bytes of the output as the file holds it.
func (o Output) Size() int { return len(o.value) + len(o.typ) }

// Values decodes the outputs of these names, with exactly the types that the file
// gives them. Together they may cost as much as their size allows. A name that
// the state does not have is left out.
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

// Value decodes the output with exactly the type that the file gives it. What
// costs time or memory happens here, so that an output which nobody wants
// costs nothing.
func (o Output) Value() (cty.Value, error) { return o.valueWithin(newBudget(o.Size())) }

func (o Output) valueWithin(b *budget) (cty.Value, error) {
	v, err := o.decode(b)
	if err != nil {
		return cty.NilVal, fmt.Errorf("output %s: %w", quote(o.name), err)
	}
	return v, nil
}

func (o Output) decode(b *budget) (cty.Value, error) {
	if len(o.value) == 0 {
		return cty.NilVal, errors.New("it has no value")
	}
	if nesting(o.value) > maxNesting {
		return cty.NilVal, fmt.Errorf("its value is nested more than %d deep", maxNesting)
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
	ty, err := o.types.decode(o.typ, b)
	if err != nil {
		return cty.NilType, fmt.Errorf("its type can't be used: %w", err)
	}
	return ty, nil
}
