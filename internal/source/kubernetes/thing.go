package kubernetes

import (
	"fmt"
	"slices"
)

// thing is what can be read of a server: an object, or, without a name, the
// list of the kinds of an API.
type thing struct {
	group, version  string // the group is "" for secrets
	resource        string // plural
	namespace, name string
}

func secret(namespace, name string) thing {
	return thing{version: "v1", resource: "secrets", namespace: namespace, name: name}
}

// path is where it is. All parts were checked, or come from such as were: no
// one can hold a slash or be a dot segment.
func (t thing) path() []string {
	p := []string{"/apis", t.group, t.version}
	if t.group == "" {
		p = []string{"/api", t.version}
	}
	if t.namespace != "" {
		p = append(p, "namespaces", t.namespace)
	}
	return slices.DeleteFunc(append(p, t.resource, t.name), func(s string) bool { return s == "" })
}

// String names it for people.
func (t thing) String() string {
	switch {
	case t.name == "":
		return fmt.Sprintf("the kinds of %s/%s", t.group, t.version)
	case t.group == "":
		return fmt.Sprintf("the secret %s/%s", t.namespace, t.name)
	case t.namespace == "":
		return fmt.Sprintf("%s.%s %s", t.resource, t.group, t.name)
	}
	return fmt.Sprintf("%s.%s %s/%s", t.resource, t.group, t.namespace, t.name)
}

// rule is the right that is needed to read it.
func (t thing) rule() string {
	group := ""
	if t.group != "" {
		group = fmt.Sprintf(" of the API group %q", t.group)
	}
	if t.namespace == "" {
		return fmt.Sprintf("the verb \"get\" for the resource %q%s with the name %q, in a ClusterRole", t.resource, group, t.name)
	}
	return fmt.Sprintf("the verb \"get\" for the resource %q%s with the name %q, in a Role in the namespace %q", t.resource, group, t.name, t.namespace)
}
