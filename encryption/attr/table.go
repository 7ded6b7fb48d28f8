// Package attr declares the attributes of key providers, methods, sources and
// credentials, holds them as the user wrote them, and decodes them.
package attr

import "github.com/zclconf/go-cty/cty"

// Table declares one kind of key provider, method, source or credentials: its
// name and its attributes. It is the only declaration: Terraform block schemas,
// the decoding of OpenTofu's text, documentation and environment variable names
// all come from it.
type Table struct {
	Name  string // the kind, such as "pbkdf2"
	Doc   string // Markdown, one paragraph
	Attrs []Attr
}

// Attr is one attribute of a [Table].
type Attr struct {
	Name string // as users write it, such as "passphrase"
	Doc  string // Markdown, a sentence or two

	// Type is what the value is converted to. It is unset when Attrs is set.
	// Lists, maps and the primitive types are supported.
	Type cty.Type

	Required  bool      // neither settings, environment nor default give a value: an error
	Sensitive bool      // values never appear in errors; errors point at the block
	Default   cty.Value // cty.NilVal when an absent attribute stays null

	// Env names environment variables; the first that is set and not empty
	// fills an absent attribute.
	Env []string

	// Secret says that the value names a secret without being one, such as the
	// file that holds it. What is Sensitive is a secret anyway.
	Secret bool

	// Local says that the secret is used in this process only and never sent.
	Local bool

	// Place says that the value decides where secrets are sent: an address, an
	// endpoint, a host.
	Place bool

	// Guard says that the value decides how secrets are protected on their way:
	// a proxy, a certificate authority, whether TLS is used or verified.
	Guard bool

	// Safe are the values of a Place or a Guard that protect more than its absence
	// does. They do no harm wherever they come from.
	Safe []string

	// Group names attributes that belong together, such as the file of a
	// certificate and that of its key: the environment fills all that are
	// absent, or, if the user set one of them, none. False does not count as set.
	Group string

	// Follows names a group that this attribute belongs to without closing it:
	// it is filled only if the user set nothing of the group.
	Follows string

	// Within names the attribute for the file that this secret is an entry of,
	// such as a profile. Whoever names that file brings the secret, so a
	// variable may name it beside this one.
	Within string

	// Reference says that the value is the address of a key provider: a string
	// in a Terraform block; a bare reference, a string or a literal key object
	// in text. Type is cty.String.
	Reference bool

	// Method says that the value is the address of a method, written in the
	// same ways, but never as a literal. Type is cty.String.
	Method bool

	// Command says that the value is a program, with its arguments, that will
	// be run.
	Command bool

	// Attrs makes this a nested block (at most one): a list block in
	// Terraform, a block or an object attribute in text.
	Attrs []Attr
}

// Attr returns the attribute called name, or false.
func (t Table) Attr(name string) (Attr, bool) { return find(t.Attrs, name) }

func find(attrs []Attr, name string) (Attr, bool) {
	for _, a := range attrs {
		if a.Name == name {
			return a, true
		}
	}
	return Attr{}, false
}

// Unencrypted is the address of the built-in method that reads plaintext, and
// the kind of the methods that do so under another name.
const Unencrypted = "unencrypted"
