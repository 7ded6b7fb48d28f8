package kubestate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// maxIndex is the maximum length of a list that a secret's keys can create. Crossplane has the same limit.
const maxIndex = 1024

const maxDepth = 100

// errPlace means that a secret's key names a place that the attributes cannot have.
var errPlace = errors.New("this key does not match the attributes")

// place is the path of a value in the attributes: names, and numbers for list elements.
type place []string

// splitKey returns the place that a secret's key names. The parts of a key are separated by dots. A map key
// that contains dots has three dots on either side.
func splitKey(key string) place {
	var p place
	for i, part := range strings.Split(key, "...") {
		if i%2 == 1 {
			p = append(p, part)
			continue
		}
		p = append(p, strings.FieldsFunc(part, func(r rune) bool { return r == '.' })...)
	}
	return p
}

// put sets the value at a place in container, and creates missing containers.
func (p place) put(container map[string]any, value any, cost *meter.Meter) error {
	if len(p) == 0 || len(p) > maxDepth {
		return errPlace
	}
	_, err := p.in(container, value, cost)
	return err
}

// in sets the value at the place in container and returns it. If container is nil, in creates one.
func (p place) in(container any, value any, cost *meter.Meter) (any, error) {
	if len(p) == 0 {
		return value, nil
	}
	switch c := container.(type) {
	case map[string]any:
		v, err := p[1:].in(c[p[0]], value, cost)
		if err != nil {
			return nil, err
		}
		c[p[0]] = v
		return c, nil
	case []any:
		i, err := strconv.ParseUint(p[0], 10, 16)
		if err != nil || i >= maxIndex {
			return nil, errPlace
		}
		if missing := int(i) + 1 - len(c); missing > 0 {
			if err := cost.Charge(meter.Rebuilt*int64(missing), "the list elements that its keys skip"); err != nil {
				return nil, err
			}
			c = append(c, make([]any, missing)...)
		}
		c[i], err = p[1:].in(c[i], value, cost)
		return c, err
	case nil:
		if strings.Trim(p[0], "0123456789") == "" && p[0] != "" {
			return p.in([]any{}, value, cost)
		}
		return p.in(map[string]any{}, value, cost)
	}
	return nil, fmt.Errorf("%w: a value is in the place of a block or a map", errPlace)
}
