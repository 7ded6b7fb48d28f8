package sops

// object is an object of JSON, or a mapping of YAML, in the order of the file.
// A value is an object, a []any, or one of nil, string, bool, int, float64,
// time.Time and comment.
type object []member

type member struct {
	name  string
	value any
}

// comment is a value that sops took for a comment of YAML when it encrypted it.
type comment string

// get returns the value under a name, and nil if there is none.
func (o object) get(name string) any {
	for _, item := range o {
		if item.name == name {
			return item.value
		}
	}
	return nil
}

// walk calls visit for a value and for all values inside it. The path holds the names of objects
// that lead to a value, and visit must not keep it.
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

// withoutComments returns a value without the comments in its lists, where YAML may have them.
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
