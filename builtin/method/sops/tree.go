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

// get returns the value under a name, nil if there is none.
func (o object) get(name string) any {
	for _, item := range o {
		if item.name == name {
			return item.value
		}
	}
	return nil
}

// withoutComments takes the comments out of lists, which YAML may have there.
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
