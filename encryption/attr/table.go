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

	// OtherNames are what other programs call the kind, for errors.
	OtherNames []string

	// Variables are further ones, each declared as an attribute of its name that
	// nobody can write. They count only for the server that variables are meant for.
	Variables []Attr

	// Example is what a block of this kind cannot do without, as a user may write it, such
	// as "passphrase = var.passphrase". Errors show it in a block to copy.
	Example []string
}

// Attr is one attribute of a [Table].
type Attr struct {
	Name string // as users write it, such as "passphrase"
	Doc  string // Markdown, a sentence or two

	// Type is what the value is converted to. It is unset when Attrs is set.
	// Lists, maps and the primitive types are supported.
	Type cty.Type

	Required bool      // neither settings, environment nor default give a value, nor one to what it Excludes: an error
	Secrecy  Secrecy   // whether errors, and the environment, are kept from it
	Default  cty.Value // cty.NilVal when an absent attribute stays null

	// Form says what a text is, if not any text.
	Form Form

	// Check is what else is required of a value. An empty text is not checked, unless it is a
	// value, or takes the place of what is Required or of a Default.
	Check Check

	// Env names environment variables; the first that is set and not empty
	// fills an absent attribute; see Harmless and Group.
	Env []string

	// Harmless says why the environment may set this attribute although a secret
	// of the code stands beside it, in a sentence. Without a reason it may not:
	// that is an error, which names both.
	Harmless string

	// HarmlessIf limits Harmless to some values, such as those that protect more
	// than their absence does. Nil means all.
	HarmlessIf func(value string) bool

	// Group names attributes that belong together, such as the file of a
	// certificate and that of its key: the environment fills all that are
	// absent, or, if the user set one of them, none. False does not count as set.
	Group string

	// UnlessGroup names a group that this attribute belongs to without closing it:
	// it is filled only if the user set nothing of the group.
	UnlessGroup string

	// EntryInFiles names the attributes for the files that this secret is an entry of,
	// such as a profile. Whoever names such a file brings the secret, so a
	// variable may name it beside this one.
	EntryInFiles []string

	// Excludes names attributes that the code must not set beside this one. Of
	// variables, the kind says which counts.
	Excludes []string

	// RequiredWith names the attribute without which the code must not set this one, such
	// as the ID that a secret key belongs to. If that one names this one as well, such as a
	// certificate and its key, variables must not give one alone either.
	RequiredWith string

	// StandsFor is for one of [Table.Variables]: the attribute that users write, whose
	// type or meaning is another.
	StandsFor string

	// Attrs makes this a nested block (at most one): a list block in
	// Terraform, a block or an object attribute in text. With the Default
	// [cty.EmptyObjectVal], it is there even if nobody writes it, so that variables fill it.
	Attrs []Attr
}

// Without returns the table without some attributes, such as those that another block has in another form.
func (t Table) Without(names ...string) Table {
	t.Attrs = slices.DeleteFunc(slices.Clone(t.Attrs), func(a Attr) bool { return slices.Contains(names, a.Name) })
	return t
}

// Attr returns the attribute called name, or false. One in a nested block is called block.name.
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
