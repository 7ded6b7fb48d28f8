package sops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// This file converts JSON and YAML to a tree, and the tree to JSON. It does not use the packages of the sops
// library for this: they follow any depth and all aliases, accept duplicate names, and take quadratic time to
// write.

// Limits for a file.
const (
	maxYAML  = 16 << 20 // in bytes; parsing takes a multiple of it
	maxDepth = 1000     // the maximum nesting depth of objects and lists
)

// reader charges a meter for the values that it reads.
type reader struct {
	json *jsonwalk.Reader
	cost *meter.Meter
	path []string // names from the root to the current value
}

func read(file []byte, cost *meter.Meter) (object, error) {
	value, err := (&reader{cost: cost}).file(file)
	if err != nil {
		return nil, err
	}
	branch, ok := value.(object)
	if !ok {
		return nil, fmt.Errorf("%w: it is not an object", driver.ErrDamaged)
	}
	return branch, nil
}

func (r *reader) file(file []byte) (any, error) {
	if !isJSON(file) {
		return r.yaml(file)
	}
	r.json = jsonwalk.NewReader(file)
	value, err := r.next(0)
	if wrong, ok := errors.AsType[*jsonwalk.SyntaxError](err); ok {
		return nil, fmt.Errorf("%w: %w", driver.ErrDamaged, wrong)
	}
	if err == nil && r.json.End() != nil {
		return nil, fmt.Errorf("%w: other data follows its JSON", driver.ErrDamaged)
	}
	return value, err
}

// next reads the next JSON value, at the given depth.
func (r *reader) next(depth int) (any, error) {
	if err := r.count(depth); err != nil {
		return nil, err
	}
	switch kind := r.json.Kind(); kind {
	case '{':
		branch, seen := object{}, map[string]bool{}
		err := r.json.Object(func(name string) error {
			return r.member(&branch, seen, name, func() (any, error) { return r.next(depth + 1) })
		})
		return branch, err
	case '[':
		elements := []any{}
		err := r.json.Array(func() error {
			v, err := r.next(depth + 1)
			elements = append(elements, v)
			return err
		})
		return elements, err
	case '"':
		return r.json.String()
	default:
		literal, err := r.json.Literal()
		switch {
		case err != nil || kind == 'n':
			return nil, err
		case kind != '0':
			return kind == 't', nil
		}
		return number(json.Number(literal))
	}
}

// number converts a number in the same way as sops, which decodes it to a Go number before encrypting it.
func number(text json.Number) (any, error) {
	if n, err := text.Int64(); err == nil {
		return int(n), nil
	}
	f, err := text.Float64()
	if err != nil {
		return nil, errors.New("the file has a number that is too large")
	}
	return f, nil
}

// member reads the value of a name, and adds both to an object. It rejects duplicate names: the MAC does not
// protect empty values, so an attacker could add a second {"outputs": {}}, which readers would prefer.
func (r *reader) member(of *object, seen map[string]bool, name string, value func() (any, error)) error {
	r.path = append(r.path, name)
	if seen[name] {
		return fmt.Errorf("the file has %s twice: "+changed, at(r.path))
	}
	seen[name] = true
	v, err := value()
	r.path = r.path[:len(r.path)-1]
	*of = append(*of, member{name: name, value: v})
	return err
}

func (r *reader) count(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the file is nested more than %d levels deep", maxDepth)
	}
	return r.cost.Charge(1, "the values of the file")
}

// yaml returns the value of a YAML file, which must contain a single document. It drops comments, which the
// MAC does not protect and JSON does not have. It rejects aliases, because they can expand a few lines to
// gigabytes.
func (r *reader) yaml(file []byte) (any, error) {
	if len(file) > maxYAML {
		return nil, fmt.Errorf("the file has %d bytes, but a YAML file may have at most %d", len(file), maxYAML)
	}
	if err := r.cost.YAML(file); err != nil {
		return nil, fmt.Errorf("the file is refused, because sops would not write it: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(file))
	var root yaml.Node
	if err := decoder.Decode(&root); err != nil || len(root.Content) != 1 {
		return nil, fmt.Errorf("%w: it is not YAML", driver.ErrDamaged)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file has more than one YAML document, or is damaged")
	}
	return r.node(root.Content[0], 0)
}

func (r *reader) node(n *yaml.Node, depth int) (any, error) {
	if err := r.count(depth); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yaml.MappingNode:
		branch, seen := object{}, map[string]bool{}
		for i := 0; i < len(n.Content); i += 2 { // names and values alternate
			var key any
			err := n.Content[i].Decode(&key)
			name, ok := key.(string)
			if err != nil || !ok || n.Content[i].Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("the file has a key at %s that is not a string", at(r.path))
			}
			if err := r.member(&branch, seen, name, func() (any, error) { return r.node(n.Content[i+1], depth+1) }); err != nil {
				return nil, err
			}
		}
		return branch, nil
	case yaml.SequenceNode:
		elements := []any{}
		for _, c := range n.Content {
			v, err := r.node(c, depth+1)
			if err != nil {
				return nil, err
			}
			elements = append(elements, v)
		}
		return elements, nil
	case yaml.ScalarNode:
		var value any
		if err := n.Decode(&value); err != nil {
			return nil, fmt.Errorf("the file has a value at %s that is not YAML", at(r.path))
		}
		return value, nil
	}
	return nil, errors.New("the file has a YAML alias, but aliases are not supported")
}

// emit returns the values as JSON, with numbers in the same form as sops. For a binary file, it returns the
// content.
func (d *document) emit() ([]byte, error) {
	if d.binary {
		if content, ok := d.state[0].value.(string); ok {
			return []byte(content), nil
		}
	}
	var out bytes.Buffer
	if err := write(&out, d.state); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func write(out *bytes.Buffer, value any) error {
	switch v := value.(type) {
	case object:
		out.WriteByte('{')
		for i, item := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := write(out, item.name); err != nil {
				return err
			}
			out.WriteByte(':')
			if err := write(out, item.value); err != nil {
				return err
			}
		}
		out.WriteByte('}')
		return nil
	case []any:
		out.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := write(out, element); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	case nil, string, bool, int, float64, time.Time:
		text, err := json.Marshal(v)
		if err != nil {
			return errors.New("a number or a time in the file cannot be written as JSON")
		}
		out.Write(text)
		return nil
	}
	return errors.New("the file has a value whose type does not exist in JSON")
}
