package sops

// object is a JSON object or YAML mapping, in the order of the file. A value is an object, a []any, nil, or a
// string, bool, int, float64, time.Time or comment.
type object []member

type member struct {
	name  string
	value any
}

// comment is a value that sops treated as a YAML comment when it encrypted the file.
type comment string

// get returns the value of a name, or nil if there is none.
func (o object) get(name string) any {
	for _, item := range o {
		if item.name == name {
			return item.value
		}
	}
	return nil
}

// walk calls visit for a value and all values inside it. The path contains the object names that lead to the
// value; visit must not retain it.
func walk(value any, path []string, visit func(value any, path []string) error) error {
	if err := visit(value, path); err != nil {
		return err
	}
	switch v := value.(type) {
	case object:
		for _, item := range v {
			if err := walk(item.value, append(path, item.name), visit); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range v {
			if err := walk(element, path, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// withoutComments removes comments from the lists in a value. In YAML, lists may contain comments.
func withoutComments(value any) any {
	switch v := value.(type) {
	case object:
		for i := range v {
			v[i].value = withoutComments(v[i].value)
		}
	case []any:
		kept := v[:0]
		for _, element := range v {
			if _, is := element.(comment); !is {
				kept = append(kept, withoutComments(element))
			}
		}
		return kept
	}
	return value
}
