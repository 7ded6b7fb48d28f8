package overview

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
)

// attributes returns the top-level attributes of an instance, sorted by name. A mark inside an attribute makes all of
// it sensitive. If the instance has no marks, or marks of an unknown form, every attribute is sensitive.
func (r *Resource) attributes() (all []attribute, err error) {
	var open, texts, marks []byte
	if err := jsonwalk.Members(r.stored, func(name string, value []byte) (bool, error) {
		switch jsonwalk.Fold(name) {
		case "attributes":
			open = value
		case "attributes_flat":
			texts = value
		case "sensitive_attributes":
			marks = value
		}
		return true, nil
	}); err != nil {
		return nil, errForm("instances")
	}
	if r.isFlat {
		open, texts = nil, open
	}
	switch {
	case isObject(texts):
		all, err = flat(texts)
	case isObject(open):
		names, known := marked(marks)
		at := map[string]int{}
		err = jsonwalk.Members(open, func(name string, value []byte) (bool, error) {
			one := attribute{name: name, value: value, sensitive: !known || slices.Contains(names, cty.NormalizeString(name))}
			if i, twice := at[name]; twice {
				all[i] = one
				return true, nil
			}
			at[name] = len(all)
			all = append(all, one)
			return true, nil
		})
	}
	if err != nil {
		return nil, errForm("attributes")
	}
	slices.SortFunc(all, func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// marked returns the names of the attributes that marks cover, at least in part. It returns false if the marks are
// missing, or do not all begin with the name of an attribute.
func marked(raw []byte) (names []string, known bool) {
	var paths [][]struct {
		Type  string          `json:"type"`
		Value json.RawMessage `json:"value"`
	}
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &paths) != nil {
		return nil, false
	}
	for _, path := range paths {
		var name *string
		if len(path) == 0 || path[0].Type != "get_attr" || json.Unmarshal(path[0].Value, &name) != nil || name == nil {
			return nil, false
		}
		names = append(names, cty.NormalizeString(*name))
	}
	return names, true
}
