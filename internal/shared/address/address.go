// Package address parses resource addresses in the form that Terraform and OpenTofu print and store in
// states.
package address

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// maxAddress is the maximum length of an address, in bytes. Real addresses are far shorter.
const maxAddress = 16 << 10

// Address identifies a resource, or one of its instances, in a state. The zero value is not a valid address.
type Address struct {
	Module string // in canonical form, such as module.net["a"]; empty for the root module
	Mode   string // [Managed] or [Data]
	Type   string
	Name   string
	Key    Key
}

// Parse parses an address in the form that Terraform and OpenTofu print, such as
// module.net["a"].aws_vpc.main[0]. The Key of an address without an instance key is the zero Key.
func Parse(text string) (Address, error) {
	steps, err := traverse(text)
	if err != nil {
		return Address{}, err
	}
	a := Address{Mode: Managed}
	if a.Module, steps, err = modulePath(steps); err != nil {
		return Address{}, err
	}
	names := make([]string, 0, 3)
	for len(steps) > 0 && isName(steps[0]) {
		names = append(names, nameOf(steps[0]))
		steps = steps[1:]
	}
	if len(names) > 0 && names[0] == Data {
		a.Mode, names = Data, names[1:]
	}
	switch {
	case len(names) == 0 && a.Mode == Managed:
		return Address{}, errors.New("this is the address of a module, not of a resource; add the type and the name of the resource, " +
			"like aws_vpc.main")
	case len(names) == 2 && (names[0] == "output" || names[0] == "outputs"):
		return Address{}, errors.New("this is an output, not a resource; use statecrypt_remote_state to read outputs")
	case len(names) == 3 && names[0] == "resource":
		return Address{}, errors.New("the address of a resource begins with its type; remove the leading \"resource.\"")
	case len(names) > 2:
		return Address{}, errAttribute
	case len(names) != 2:
		return Address{}, errors.New("this is not the address of a resource; write its type and its name, like aws_vpc.main, " +
			"module.net.aws_vpc.main or data.aws_ami.linux")
	}
	a.Type, a.Name = names[0], names[1]
	if len(steps) > 0 {
		if a.Key, err = keyOf(steps[0]); err != nil {
			return Address{}, err
		}
		steps = steps[1:]
	}
	if len(steps) > 0 {
		return Address{}, errAttribute
	}
	return a, nil
}

var errAttribute = errors.New("the address does not end after the name or the instance key of the resource; remove the attribute, and " +
	"use attributes.NAME of the result")

// The modes of a resource.
const (
	Managed = "managed"
	Data    = "data"
)

// String returns the address as Terraform prints it.
func (a Address) String() string { return a.Resource() + a.Key.String() }

// Resource returns the address without the instance key.
func (a Address) Resource() string {
	var b strings.Builder
	if a.Module != "" {
		b.WriteString(a.Module + ".")
	}
	if a.Mode == Data {
		b.WriteString("data.")
	}
	b.WriteString(a.Type + "." + a.Name)
	return b.String()
}

func traverse(text string) (hcl.Traversal, error) {
	if len(text) > maxAddress {
		return nil, fmt.Errorf("the address is longer than %d bytes", maxAddress)
	}
	steps, diags := hclsyntax.ParseTraversalAbs([]byte(text), "", hcl.InitialPos)
	if !diags.HasErrors() {
		return steps, nil
	}
	if strings.Contains(text, "[*]") {
		return nil, errors.New("an address must not contain [*]; remove [*] to get all instances")
	}
	first, at := diags[0], ""
	if first.Subject != nil {
		at = fmt.Sprintf(" at character %d", first.Subject.Start.Column)
	}
	return nil, fmt.Errorf("the syntax of the address is wrong%s: %s; write the address like module.net.aws_instance.web[0]", at,
		strings.TrimSuffix(syntax.LowerFirst(first.Detail), "."))
}

// modulePath returns the canonical form of the modules at the beginning of steps, and the remaining steps.
func modulePath(steps hcl.Traversal) (string, hcl.Traversal, error) {
	var path []string
	for len(steps) > 0 && isName(steps[0]) && nameOf(steps[0]) == "module" {
		if len(steps) < 2 || !isName(steps[1]) {
			return "", nil, errors.New("the name of the module is missing after \"module.\"; write it like module.net")
		}
		one := "module." + nameOf(steps[1])
		steps = steps[2:]
		if len(steps) > 0 && !isName(steps[0]) {
			key, err := keyOf(steps[0])
			if err != nil {
				return "", nil, err
			}
			one += key.String()
			steps = steps[1:]
		}
		path = append(path, one)
	}
	return strings.Join(path, "."), steps, nil
}

// Module returns the canonical form of a module path in a state, because old versions escaped keys
// differently. It returns a path that it cannot parse unchanged; such a path matches no address.
func Module(text string) string {
	if text == "" {
		return ""
	}
	steps, err := traverse(text)
	if err != nil {
		return text
	}
	path, rest, err := modulePath(steps)
	if err != nil || len(rest) > 0 {
		return text
	}
	return path
}

// Provider extracts the provider's address from a provider configuration address, such as
// module.net.provider["registry.terraform.io/hashicorp/aws"].west. It returns an address in the form of
// Terraform 0.12, such as provider.aws, unchanged.
func Provider(configuration string) string {
	steps, err := traverse(configuration)
	if err != nil {
		return configuration
	}
	_, steps, err = modulePath(steps)
	if err != nil || len(steps) < 2 || !isName(steps[0]) || nameOf(steps[0]) != "provider" {
		return configuration
	}
	key, err := keyOf(steps[1])
	if err != nil || key.Kind != StringKey {
		return configuration
	}
	return key.Name
}

func isName(step hcl.Traverser) bool {
	_, isIndex := step.(hcl.TraverseIndex)
	return !isIndex
}

func nameOf(step hcl.Traverser) string {
	switch s := step.(type) {
	case hcl.TraverseRoot:
		return s.Name
	case hcl.TraverseAttr:
		return s.Name
	}
	return ""
}

// Key identifies an instance of a resource or module. The zero value is for a single instance without a key.
type Key struct {
	Kind  KeyKind
	Index int    // the key of an [IntKey], from 0 to [math.MaxInt32]
	Name  string // the key of a [StringKey]
}

// KeyKind says which argument creates the instances: count, for_each or neither.
type KeyKind int

// The kinds of keys.
const (
	NoKey     KeyKind = iota
	IntKey            // count
	StringKey         // for_each
)

func (k Key) String() string {
	switch k.Kind {
	case IntKey:
		return "[" + strconv.Itoa(k.Index) + "]"
	case StringKey:
		return `["` + escapeKey(k.Name) + `"]`
	}
	return ""
}

func keyOf(step hcl.Traverser) (Key, error) {
	index, ok := step.(hcl.TraverseIndex)
	if !ok {
		return Key{}, errors.New("this is not an instance key; write it like [0] or [\"a\"]")
	}
	if index.Key.Type() == cty.String {
		return Key{Kind: StringKey, Name: index.Key.AsString()}, nil
	}
	n, accuracy := index.Key.AsBigFloat().Int64()
	if accuracy != big.Exact || n < 0 || n > math.MaxInt32 {
		return Key{}, errors.New("an instance key must be a non-negative whole number or a string")
	}
	return Key{Kind: IntKey, Index: int(n)}, nil
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "${", "$${", "%{", "%%{", "\n", `\n`, "\r", `\r`, "\t", `\t`)

// escapeKey escapes a string for use between quotation marks in HCL.
func escapeKey(s string) string {
	var b strings.Builder
	for _, r := range escapes.Replace(s) {
		switch {
		case strconv.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
