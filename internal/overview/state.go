// Package overview describes the content of a plaintext state, and the differences between two, without showing values
// that nobody has named.
//
// A state is a file from a stranger. Its addresses, names of attributes, and types without their parts may be shown;
// its values may be secrets. A name in an object may be one, too, so the type of an object is "object". Text from the
// file is escaped where it is printed.
package overview

import (
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/address"
)

// State is the content of a plaintext state. Its values are not decoded, but it keeps the bytes that [Read] has read.
type State struct {
	Version          int    // the format version, 1 to 4
	TerraformVersion string // the version of Terraform or OpenTofu that wrote the state; "" if absent
	Serial           int64  // 0 if absent
	Lineage          string // "" if absent

	// Marked reports whether the writer has said which attributes are sensitive. Terraform 0.13 and earlier have not.
	Marked bool

	Outputs   []Output    // of the root module, sorted by name
	Resources []*Resource // instances, sorted by module, mode, type, name and key
	Checks    []Check     // sorted by address
}

// Output is an output of the root module.
type Output struct {
	Name      string
	Type      string // such as "list(string)"; "object" and "tuple" without their parts; "unknown" if there is none
	Sensitive bool   // whether the state marks the output as sensitive

	value, typ []byte // JSON, slices of the file
}

// Resource is an instance of a resource or a data source.
type Resource struct {
	address.Address

	Deposed string // the key of a deposed object; "" for the current one
	Tainted bool
	Marked  bool // whether the instance says which of its attributes are sensitive

	isFlat   bool // whether it is an instance of format 1 to 3, whose attributes are texts in one flat map
	provider *provider
	stored   []byte // the JSON of the instance, a slice of the file
}

// provider is the configuration of a provider, as resources name it.
type provider struct{ configuration, address string }

// Provider returns the address of the provider, such as "registry.terraform.io/hashicorp/aws", or "provider.aws" in a
// state that Terraform 0.12 wrote. It is empty if the state names none.
func (r *Resource) Provider() string { return r.provider.address }

// Check is the result of the checks of one object of the configuration, such as the preconditions of a resource. The
// messages of failed checks may contain values, and are not kept.
type Check struct {
	Address   string // of the object in the configuration
	Kind      string // "resource", "output", "check" or "var"
	Status    string // "pass", "fail", "error" or "unknown"
	Instances []CheckInstance
}

// CheckInstance is the result of the checks of one instance of an object.
type CheckInstance struct{ Address, Status string }

// Failed reports whether a status is the one of a failed check, or of a check that could not be evaluated.
func Failed(status string) bool { return status == "fail" || status == "error" }

// attribute is a top-level attribute of a resource.
type attribute struct {
	name      string
	value     []byte // JSON
	sensitive bool   // whether a mark covers the attribute or a part of it, or the instance has no marks
}
