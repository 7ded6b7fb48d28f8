// Package entries decodes the entries of a configuration: key providers, methods, sources and
// credentials. It determines which values the environment may set.
//
// These words have one meaning here:
//
//   - entry: a block as the user wrote it, before it is decoded.
//   - setting: one attribute as written, by the configuration or by a layer of TF_ENCRYPTION.
//   - given: a setting with the attribute that it sets, and its path in the entry.
//   - layer: settings that are merged over others; here, TF_ENCRYPTION. A layered entry has a
//     setting from TF_ENCRYPTION.
//   - scope: the values that the environment may give an entry.
//   - group: attributes that the environment fills together or not at all. A group is closed if a
//     setting sets one of them.
//   - handed: passed to a client or a program; used of secrets.
//   - oddity: a probable mistake in a text. An error names it as a possible cause.
package entries

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// KeyProviderAttrs returns the attributes that every key provider has in addition to the attributes
// in its table.
func KeyProviderAttrs() []attr.Attr {
	return []attr.Attr{
		{
			Name: "encrypted_metadata_alias",
			Doc: "The name under which this key provider's metadata is stored inside encrypted files. Defaults to the " +
				"address of the key provider, such as `key_provider.pbkdf2.main`.",
			Type:     cty.String,
			Harmless: "It is a name in the files, by which metadata is found.",
		},
		{
			Name: "exportable",
			Doc: "Whether `statecrypt_derived_key` may derive keys for other uses from this key provider. " +
				"Defaults to `false`.",
			Type:    cty.Bool,
			Default: cty.False,
		},
	}
}

// FileMethodAttrs returns the attributes that every method for whole files has in addition to the
// attributes in its table.
func FileMethodAttrs() []attr.Attr {
	return []attr.Attr{{
		Name: "then", Type: cty.String, Form: attr.Method,
		Harmless: "It says what opens the plaintext of this method, which no secret of this entry goes to.",
		Doc: "The address of the method that opens what is inside, such as `method.aes_gcm.main`, for files that were " +
			"encrypted twice. Defaults to none: inside is the plaintext.",
	}}
}

// UnknownKind returns the error for an entry of an unknown kind. The error lists the kinds in
// tables. The parameter what is "key_provider", "method" or "backend".
func UnknownKind(address, what, kind string, pos attr.Pos, tables []attr.Table) error {
	names, meant := make([]string, len(tables)), ""
	for i, t := range tables {
		names[i] = t.Name
		if slices.Contains(t.OtherNames, strings.ToLower(kind)) {
			meant = fmt.Sprintf(". Did you mean %q?", t.Name)
		}
	}
	return &attr.Error{Address: address, Pos: pos, Err: fmt.Errorf("there is no %s of type %q here; choose one of: %s%s",
		strings.ReplaceAll(what, "_", " "), kind, strings.Join(names, ", "), cmp.Or(meant, syntax.Suggest(kind, names)))}
}

// KeyProviders returns the attributes of an entry that name a key provider, in the order of the
// table. It leaves out absent and unknown values.
func KeyProviders(v attr.Values) []Given {
	isOther := func(g Given) bool { return g.Form != attr.KeyProvider || g.Address() == "" }
	return slices.DeleteFunc(slices.Clone(attributes(v)), isOther)
}

// Address returns the text of an attribute that holds an address, or "" if the attribute is absent.
func (g Given) Address() string { return textOf(g.Value) }
