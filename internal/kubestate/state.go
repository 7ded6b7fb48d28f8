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
)

// state is a version 4 state with one resource, as the controllers write it.
type state struct {
	Version          int            `json:"version"`
	TerraformVersion string         `json:"terraform_version"`
	Serial           uint64         `json:"serial"`
	Lineage          string         `json:"lineage"`
	Outputs          map[string]any `json:"outputs"` // there never are any
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

	// The controllers do not write these. They say which attributes come from
	// secrets, so that nobody takes them for values in the open.
	Sensitive [][]step `json:"sensitive_attributes"`
}

// step is one step of a path to a sensitive attribute, as states write it.
type step struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// fromSecret is a value of a secret among the attributes.
type fromSecret struct{ value any }

func (f fromSecret) MarshalJSON() ([]byte, error) { return json.Marshal(f.value) }

// sensitivePaths finds the values of secrets in attributes. at is the path to
// value.
func sensitivePaths(found [][]step, at []step, value any) [][]step {
	switch v := value.(type) {
	case fromSecret:
		return append(found, slices.Clone(at))
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = sensitivePaths(found, append(at, step{"get_attr", name}), v[name])
		}
	case []any:
		for i, element := range v {
			index := map[string]any{"value": i, "type": "number"}
			found = sensitivePaths(found, append(at, step{"index", index}), element)
		}
	}
	return found
}

func (s state) encode() ([]byte, error) {
	for _, r := range s.Resources {
		for i := range r.Instances {
			r.Instances[i].Sensitive = sensitivePaths([][]step{}, nil, r.Instances[i].Attributes)
		}
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, errors.New("its state cannot be written as JSON") // the encoder's error would quote it
	}
	return data, nil
}

// textOf returns a value of a secret, which must be text to be an attribute.
func textOf(ref SecretRef, key, value string) (string, error) {
	if !utf8.ValidString(value) {
		return "", fmt.Errorf("the secret %s: the value of %s is not text", ref, shown(key))
	}
	return value, nil
}

// put puts the values of a secret whose keys begin with prefix where the rest of
// the key says, as value reads them.
func (r SecretRef) put(
	attributes map[string]any, data map[string]string, prefix string, where func(path string) place, value func(string) any,
) error {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		path, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		text, err := textOf(r, key, data[key])
		if err != nil {
			return err
		}
		if err := where(path).put(attributes, fromSecret{value(text)}); err != nil {
			return fmt.Errorf("the secret %s, %s: %w", r, shown(key), err)
		}
	}
	return nil
}

// whole reads a number that is not negative.
func whole(v any) (uint64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	u, err := strconv.ParseUint(n.String(), 10, 63)
	return u, err == nil
}
