package overview

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
)

// attributeReader reads the attributes of one instance after the other, with little new memory for each.
type attributeReader struct {
	json *jsonwalk.Reader
	all  []attribute
}

func newAttributeReader() *attributeReader {
	return &attributeReader{json: jsonwalk.NewReader(nil).KeepStrings()}
}

// read returns the top-level attributes of an instance, sorted by name. They are valid until the next call. A mark
// inside an attribute makes all of it sensitive. If the instance has no marks, or marks of an unknown form, every
// attribute is sensitive.
func (a *attributeReader) read(r *Resource) ([]attribute, error) {
	var open, texts, marks []byte
	if err := a.members(r.stored, func(name string, value []byte) {
		switch jsonwalk.Fold(name) {
		case "attributes":
			open = value
		case "attributes_flat":
			texts = value
		case "sensitive_attributes":
			marks = value
		}
	}); err != nil {
		return nil, errForm("instances")
	}
	if r.isFlat {
		open, texts = nil, open
	}
	a.all = a.all[:0]
	var err error
	switch {
	case isObject(texts):
		a.all, err = flat(texts)
	case isObject(open):
		names, known := marked(marks)
		err = a.members(open, func(name string, value []byte) {
			_, isMarked := slices.BinarySearch(names, cty.NormalizeString(name))
			a.all = append(a.all, attribute{name, value, !known || isMarked})
		})
	}
	if err != nil {
		return nil, errForm("attributes")
	}
	slices.SortStableFunc(a.all, func(x, y attribute) int { return strings.Compare(x.name, y.name) })
	last := a.all[:0]
	for i, one := range a.all { // the last of several attributes with the same name counts
		if i+1 == len(a.all) || a.all[i+1].name != one.name {
			last = append(last, one)
		}
	}
	a.all = last
	return a.all, nil
}

// members calls visit with each member of the JSON object in data.
func (a *attributeReader) members(data []byte, visit func(name string, value []byte)) error {
	a.json.Reset(data)
	return a.json.Object(func(name string) error {
		value, err := a.json.Skip()
		visit(name, value)
		return err
	})
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// marked returns the sorted names of the attributes that marks cover, at least in part. It returns false if the marks
// are missing, or do not all begin with the name of an attribute.
func marked(raw []byte) (names []string, known bool) {
	if string(raw) == "[]" { // as almost all are
		return nil, true
	}
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
	slices.Sort(names)
	return names, true
}
