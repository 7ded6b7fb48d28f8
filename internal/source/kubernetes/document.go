package kubernetes

import (
	"fmt"
	"slices"
)

// document identifies a document on the server: an object or, if name is empty, the list of kinds in an API.
type document struct {
	group, version  string // group is "" for secrets
	resource        string // plural name of the kind
	namespace, name string
}

func secret(namespace, name string) document {
	return document{version: "v1", resource: "secrets", namespace: namespace, name: name}
}

// path returns the segments of the document's path on the server. All parts have been checked: none contains
// a slash or is a dot segment.
func (d document) path() []string {
	p := []string{"/apis", d.group, d.version}
	if d.group == "" {
		p = []string{"/api", d.version}
	}
	if d.namespace != "" {
		p = append(p, "namespaces", d.namespace)
	}
	return slices.DeleteFunc(append(p, d.resource, d.name), func(s string) bool { return s == "" })
}

// String names the document for people.
func (d document) String() string {
	switch {
	case d.name == "":
		return fmt.Sprintf("the kinds of %s/%s", d.group, d.version)
	case d.group == "":
		return fmt.Sprintf("the secret %s/%s", d.namespace, d.name)
	case d.namespace == "":
		return fmt.Sprintf("%s.%s %s", d.resource, d.group, d.name)
	}
	return fmt.Sprintf("%s.%s %s/%s", d.resource, d.group, d.namespace, d.name)
}

// rule describes the permission that is required to read the document.
func (d document) rule() string {
	group, in := "", "a ClusterRole"
	if d.group != "" {
		group = fmt.Sprintf(" of the API group %q", d.group)
	}
	if d.namespace != "" {
		in = fmt.Sprintf("a Role in the namespace %q", d.namespace)
	}
	return fmt.Sprintf("the verb \"get\" for the resource %q%s with the name %q, in %s", d.resource, group, d.name, in)
}
