// Package attr declares the attributes of key providers, methods, sources and credentials, and the
// interface to the decoded values of these attributes.
package attr

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Table declares one kind of key provider, method, source or credentials: its name and its
// attributes. Everything else is derived from it: Terraform block schemas, the decoding of
// OpenTofu's text, documentation, and the names of environment variables.
type Table struct {
	Name  string // the kind, such as "pbkdf2"
	Doc   string // Markdown, one paragraph
	Attrs []Attr

	// OtherNames are names that other programs use for the kind. Errors suggest Name instead.
	OtherNames []string

	// Variables are environment variables that correspond to no attribute. Each is declared as an
	// attribute of the same name, which settings cannot contain. They count only for the server
	// that the environment names.
	Variables []Attr

	// Example lists the arguments that a block of this kind requires, as a user may write them,
	// such as "passphrase = var.passphrase". Errors show them in a block that users can copy.
	Example []string
}

// Attr is one attribute of a [Table].
type Attr struct {
	Name string // as users write it, such as "passphrase"
	Doc  string // Markdown, a sentence or two

	// Type is the type that values are converted to: a primitive type, a list or a map. It is not
	// set if Attrs is set.
	Type cty.Type

	Required bool      // whether a value is required, unless an attribute in Excludes has one
	Secrecy  Secrecy   // whether the value is secret: errors omit it, and the environment must not redirect it
	Default  cty.Value // cty.NilVal if an absent attribute stays null

	// Form is the form of a text. The zero value allows any text.
	Form Form

	// Check is a further requirement on a value. An empty text is checked only if Form makes it a
	// value, or if the attribute is Required or has a Default.
	Check Check

	// Env names environment variables. The first one that is set and not empty fills an absent
	// attribute; see Harmless and Group.
	Env []string

	// Harmless is a sentence that explains why the environment may set this attribute together with
	// a secret of the configuration. Without it, that combination is an error, which names both.
	Harmless string

	// HarmlessIf limits Harmless to some values, such as values that give more protection than an
	// absent attribute. Nil allows all values.
	HarmlessIf func(value string) bool

	// Group names a set of attributes that belong together, such as a certificate and its key. The
	// environment fills all absent ones, or none if the user set one of them. An attribute that is
	// false does not count as set.
	Group string

	// UnlessGroup names a group. The environment fills this attribute only if the user set no
	// member of the group. Setting this attribute does not stop the environment from filling
	// members of the group.
	UnlessGroup string

	// EntryInFiles names the attributes that hold file paths, if this secret is an entry in these
	// files, such as a profile. Because the secret comes with the file, an environment variable may
	// name the file even if this attribute is set.
	EntryInFiles []string

	// Excludes names attributes that the configuration must not set together with this one. If
	// environment variables set both, the kind decides which one counts.
	Excludes []string

	// RequiredWith names an attribute that the configuration must set together with this one, such
	// as the ID that belongs to a secret key. If two attributes name each other, such as a
	// certificate and its key, environment variables must not set only one of them either.
	RequiredWith string

	// StandsFor is set only in [Table.Variables]. It names the attribute that users write instead
	// of the variable, with another type or meaning.
	StandsFor string

	// Attrs are the attributes of a nested block. In Terraform, it is a list block with at most one
	// element. In text, it is a block or an object attribute. If Default is [cty.EmptyObjectVal],
	// an absent block counts as an empty one, which environment variables can fill.
	Attrs []Attr
}

// Without returns the table without the named attributes, for a block that has these attributes in
// another form.
func (t Table) Without(names ...string) Table {
	t.Attrs = slices.DeleteFunc(slices.Clone(t.Attrs), func(a Attr) bool { return slices.Contains(names, a.Name) })
	return t
}

// Attr returns the attribute called name, or false if there is none. The name of an attribute in a
// nested block has the form block.name.
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
