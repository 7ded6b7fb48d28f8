package kubestate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// state is a version 4 state with one resource, as the controllers write it.
type state struct {
	Version          int            `json:"version"`
	TerraformVersion string         `json:"terraform_version"`
	Serial           uint64         `json:"serial"`
	Lineage          string         `json:"lineage"`
	Outputs          map[string]any `json:"outputs"` // always nil
	Resources        []resource     `json:"resources"`
}

type resource struct {
	Mode      string     `json:"mode"`
	Type      string     `json:"type"`
	Name      string     `json:"name"`
	Provider  string     `json:"provider"`
	Instances []instance `json:"instances"`
}

type instance struct {
	SchemaVersion int64          `json:"schema_version"`
	Attributes    map[string]any `json:"attributes"`
	Private       []byte         `json:"private,omitempty"`

	// Sensitive contains the paths of the attributes that come from secrets, so that readers treat them as
	// sensitive. The controllers do not write it.
	Sensitive [][]step `json:"sensitive_attributes"`
}

// step is one step of a path to a sensitive attribute, in the form that states use.
type step struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// index is the value of a step to a list element.
type index struct {
	Type  string `json:"type"`
	Value int    `json:"value"`
}

// fromSecret marks a value in the attributes that comes from a secret.
type fromSecret struct{ value any }

func (f fromSecret) MarshalJSON() ([]byte, error) { return json.Marshal(f.value) }

// marker finds the values in the attributes that come from secrets.
type marker struct {
	paths [][]step
	at    []step // path of the current value
	names int    // size of the names in at, in bytes
	cost  *meter.Meter
}

func (m *marker) mark(value any) error {
	switch v := value.(type) {
	case fromSecret:
		m.paths = append(m.paths, slices.Clone(m.at))
		return m.cost.Charge(meter.Rebuilt*int64(len(m.at))+int64(m.names)/32, "the paths of its sensitive values")
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := m.inside(step{"get_attr", name}, len(name), v[name]); err != nil {
				return err
			}
		}
	case []any:
		for i, element := range v {
			if err := m.inside(step{"index", index{"number", i}}, 0, element); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *marker) inside(s step, length int, value any) error {
	m.at, m.names = append(m.at, s), m.names+length
	err := m.mark(value)
	m.at, m.names = m.at[:len(m.at)-1], m.names-length
	return err
}

func (s state) encode(cost *meter.Meter) ([]byte, error) {
	for _, r := range s.Resources {
		for i := range r.Instances {
			m := marker{paths: [][]step{}, cost: cost}
			if err := m.mark(r.Instances[i].Attributes); err != nil {
				return nil, err
			}
			r.Instances[i].Sensitive = m.paths
		}
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, errors.New("its state cannot be written as JSON") // the encoder's error would quote the state
	}
	return data, nil
}

// textOf returns a secret's value, or an error if it is not text, because an attribute must be text.
func textOf(ref SecretRef, key, value string) (string, error) {
	if !utf8.ValidString(value) {
		return "", fmt.Errorf("the secret %s: the value of %s is not text", ref, shown(key))
	}
	return value, nil
}

// keys says which of a secret's keys hold attribute values, and at which places.
type keys struct {
	prefix string // prefix of the keys that hold values
	place  func(path string) place
	value  func(string) any // converts a value
}

// put sets a secret's values in attributes, at the places that their keys name.
func (r SecretRef) put(attributes map[string]any, data map[string]string, k keys, cost *meter.Meter) error {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		path, ok := strings.CutPrefix(key, k.prefix)
		if !ok {
			continue
		}
		text, err := textOf(r, key, data[key])
		if err != nil {
			return err
		}
		if err := k.place(path).put(attributes, fromSecret{k.value(text)}, cost); err != nil {
			return fmt.Errorf("the secret %s, %s: %w", r, shown(key), err)
		}
	}
	return nil
}

// whole returns a non-negative whole number. It returns false for any other value.
func whole(v any) (uint64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	u, err := strconv.ParseUint(n.String(), 10, 63)
	return u, err == nil
}
