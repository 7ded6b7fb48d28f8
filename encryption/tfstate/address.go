package tfstate

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
)

// maxAddress is the longest address that is parsed, in bytes. Real ones stay
// far below.
const maxAddress = 16 << 10

// Address says where a resource, or one instance of it, stands in a state. The
// zero value is no address.
type Address struct {
	module string // canonical, such as module.net["a"]; "" for the root
	mode   string // "managed" or "data"
	typ    string
	name   string
	key    instanceKey
}

// ParseAddress reads an address as Terraform and OpenTofu print one:
// module.net["a"].aws_vpc.main[0], or without the last index for all instances.
func ParseAddress(text string) (Address, error) {
	steps, err := traverse(text)
	if err != nil {
		return Address{}, err
	}
	a := Address{mode: managed}
	if a.module, steps, err = modulePath(steps); err != nil {
		return Address{}, err
	}
	names := make([]string, 0, 3)
	for len(steps) > 0 && isName(steps[0]) {
		names = append(names, nameOf(steps[0]))
		steps = steps[1:]
	}
	if len(names) > 0 && names[0] == data {
		a.mode, names = data, names[1:]
	}
	switch {
	case len(names) == 0 && a.mode == managed:
		return Address{}, errors.New("this is the address of a module; that of a resource has a type and a name after it, such as aws_vpc.main")
	case len(names) != 2:
		return Address{}, errors.New("the address of a resource has a type and a name, such as aws_vpc.main, module.net.aws_vpc.main or " +
			"data.aws_ami.linux")
	}
	a.typ, a.name = names[0], names[1]
	if len(steps) > 0 {
		if a.key, err = keyOf(steps[0]); err != nil {
			return Address{}, err
		}
		steps = steps[1:]
	}
	if len(steps) > 0 {
		return Address{}, errors.New("the address of a resource ends with its name or one instance key; attributes are taken from the result")
	}
	return a, nil
}

const (
	managed = "managed"
	data    = "data"
)

// String is the address as Terraform prints it.
func (a Address) String() string { return a.resource() + a.key.String() }

// resource is the address without an instance key.
func (a Address) resource() string {
	var b strings.Builder
	if a.module != "" {
		b.WriteString(a.module + ".")
	}
	if a.mode == data {
		b.WriteString("data.")
	}
	b.WriteString(a.typ + "." + a.name)
	return b.String()
}

// traverse splits an address into its steps.
func traverse(text string) (hcl.Traversal, error) {
	if len(text) > maxAddress {
		return nil, fmt.Errorf("an address has at most %d bytes", maxAddress)
	}
	steps, diags := hclsyntax.ParseTraversalAbs([]byte(text), "", hcl.InitialPos)
	if !diags.HasErrors() {
		return steps, nil
	}
	first := diags[0]
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			first = d
			break
		}
	}
	at := ""
	if first.Subject != nil {
		at = fmt.Sprintf(" at character %d", first.Subject.Start.Column)
	}
	return nil, fmt.Errorf("this is not an address%s: %s", at, strings.TrimSuffix(lowerFirst(first.Detail), "."))
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// modulePath takes the modules off the front, and returns them as text in the
// one form that is compared.
func modulePath(steps hcl.Traversal) (string, hcl.Traversal, error) {
	var path []string
	for len(steps) > 0 && isName(steps[0]) && nameOf(steps[0]) == "module" {
		if len(steps) < 2 || !isName(steps[1]) {
			return "", nil, errors.New("the name of a module is required after module, such as module.net")
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

// canonicalModule is how a state's text of a module path is compared. Old
// versions wrote keys with other escapes. A text that can't be parsed stays as
// it is, and is the path of no address.
func canonicalModule(text string) string {
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

// providerAddress takes the address of the provider from that of its
// configuration, such as
// module.net.provider["registry.terraform.io/hashicorp/aws"].west. What
// Terraform 0.12 wrote, provider.aws, has none, and stays as it is.
func providerAddress(configuration string) string {
	steps, err := traverse(configuration)
	if err != nil {
		return configuration
	}
	_, steps, err = modulePath(steps)
	if err != nil || len(steps) < 2 || !isName(steps[0]) || nameOf(steps[0]) != "provider" {
		return configuration
	}
	key, err := keyOf(steps[1])
	if err != nil || key.kind != stringKey {
		return configuration
	}
	return key.name
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

// instanceKey tells the instances of a resource, or of a module, apart. The
// zero value is that of the only one, which has none.
type instanceKey struct {
	kind  keyKind
	index int
	name  string
}

type keyKind int

const (
	noKey keyKind = iota
	intKey
	stringKey
)

func (k instanceKey) String() string {
	switch k.kind {
	case intKey:
		return indexStep(k.index)
	case stringKey:
		return `["` + escapeKey(k.name) + `"]`
	}
	return ""
}

func keyOf(step hcl.Traverser) (instanceKey, error) {
	index, ok := step.(hcl.TraverseIndex)
	if !ok {
		return instanceKey{}, errors.New("an instance key such as [0] or [\"a\"] is required")
	}
	if index.Key.Type() == cty.String {
		return instanceKey{kind: stringKey, name: index.Key.AsString()}, nil
	}
	n, accuracy := index.Key.AsBigFloat().Int64()
	if accuracy != big.Exact || n < 0 || n > math.MaxInt32 {
		return instanceKey{}, errors.New("an instance key must be a whole number that is not negative, or a string")
	}
	return instanceKey{kind: intKey, index: int(n)}, nil
}

// escapeKey writes a string as HCL reads it between quotes.
func escapeKey(s string) string {
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case (r == '$' || r == '%') && i+1 < len(runes) && runes[i+1] == '{':
			b.WriteRune(r)
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
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
