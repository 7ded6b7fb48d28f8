// Package attr declares the attributes of key providers, methods, sources and
// credentials, holds them as the user wrote them, and decodes them.
package attr

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Table declares one kind of key provider, method, source or credentials: its
// name and its attributes. It is the only declaration: Terraform block schemas,
// the decoding of OpenTofu's text, documentation and environment variable names
// all come from it.
type Table struct {
	Name  string // the kind, such as "pbkdf2"
	Doc   string // Markdown, one paragraph
	Attrs []Attr

	// OtherNames are names of the kind in other programs. Errors suggest Name in their place.
	OtherNames []string

	// Variables are environment variables that no attribute stands for, each declared as an
	// attribute of its name, which settings cannot contain. They count only for the server
	// that the environment names.
	Variables []Attr

	// Example lists the arguments that a block of this kind requires, as a user may write
	// them, such as "passphrase = var.passphrase". Errors show them in a block to copy.
	Example []string
}

// Attr is one attribute of a [Table].
type Attr struct {
	Name string // as users write it, such as "passphrase"
	Doc  string // Markdown, a sentence or two

	// Type is the type that values are converted to: a primitive type, a list or a map.
	// It is unset when Attrs is set.
	Type cty.Type

	Required bool      // a missing value is an error, unless an attribute in Excludes has one
	Secrecy  Secrecy   // whether the value is secret: errors omit it, and the environment must not redirect it
	Default  cty.Value // cty.NilVal when an absent attribute stays null

	// Form tells which form a text has. The zero value allows any text.
	Form Form

	// Check is a further requirement on a value. It skips an empty text, except where Form
	// makes an empty text a value, and where the attribute is Required or has a Default.
	Check Check

	// Env names environment variables; the first that is set and not empty
	// fills an absent attribute; see Harmless and Group.
	Env []string

	// Harmless is a sentence that tells why the environment may set this attribute beside a
	// secret of the configuration. Without it, that combination is an error, which names both.
	Harmless string

	// HarmlessIf limits Harmless to some values, such as values that protect more than an
	// absent attribute does. Nil allows all values.
	HarmlessIf func(value string) bool

	// Group names a set of attributes that belong together, such as a certificate and its
	// key: the environment fills all that are absent, or none if the user set one of them.
	// An attribute that is false does not count as set.
	Group string

	// UnlessGroup names a group. The environment fills this attribute only if the user set no
	// member of it. Setting this attribute does not stop the environment from filling members.
	UnlessGroup string

	// EntryInFiles names the attributes that hold the paths of the files in which this secret
	// is an entry, such as a profile. The secret comes with the file, so an environment
	// variable may name the file beside this attribute.
	EntryInFiles []string

	// Excludes names attributes that the configuration must not set beside this one. The kind
	// decides which environment variable counts if both have one.
	Excludes []string

	// RequiredWith names an attribute that the configuration must set beside this one, such
	// as the ID that a secret key belongs to. If two attributes name each other, such as a
	// certificate and its key, environment variables must not set only one of them either.
	RequiredWith string

	// StandsFor is set in [Table.Variables] only. It names the attribute that users write in
	// place of the variable, with another type or meaning.
	StandsFor string

	// Attrs are the attributes of a nested block: a list block with at most one element in
	// Terraform, a block or an object attribute in text. If Default is [cty.EmptyObjectVal],
	// an absent block counts as an empty one, which environment variables can fill.
	Attrs []Attr
}

// Without returns the table without the named attributes, for a block that has them in another form.
func (t Table) Without(names ...string) Table {
	t.Attrs = slices.DeleteFunc(slices.Clone(t.Attrs), func(a Attr) bool { return slices.Contains(names, a.Name) })
	return t
}

// Attr returns the attribute called name, and false if there is none. Names of attributes in
// a nested block have the form block.name.
func (t Table) Attr(name string) (Attr, bool) {
	name, inside, isNested := strings.Cut(name, ".")
	for _, a := range t.Attrs {
		if a.Name == name && isNested {
			return Table{Attrs: a.Attrs}.Attr(inside)
		} else if a.Name == name {
			return a, true
		}
	}
	return Attr{}, false
}
