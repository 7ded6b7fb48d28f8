package provider

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// advised is the text of an error. If the library says what is missing, it adds what
// users of the provider write about that.
func advised(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*encryption.NotConfiguredError](err); ok {
		return insert(text, e, adviseMethod(e))
	}
	if e, ok := errors.AsType[*config.VariableError](err); ok {
		return insert(text, e, adviseVariable(e))
	}
	if errors.Is(err, config.ErrCommand) {
		return insert(text, config.ErrCommand, ", or with allow_external = true")
	}
	return text
}

// insert puts advice after the text of err.
func insert(text string, err error, advice string) string {
	return strings.Replace(text, err.Error(), err.Error()+advice, 1)
}

func adviseVariable(e *config.VariableError) string {
	if e.Name == "" {
		return "; set the values of var.* in encryption_variables, in the provider block"
	}
	return fmt.Sprintf("; in the provider block, write encryption_variables = { %s = var.%[1]s }", e.Name)
}

func adviseMethod(e *encryption.NotConfiguredError) string {
	switch {
	case len(e.Methods) > 0 && len(e.Selected) == 1:
		if selected := e.Selected[0]; isText(e.Methods[0]) && strings.Contains(selected, ".") {
			return fmt.Sprintf("; in place of method = %s, write method = %s", selected,
				join(e.Methods, func(m *attr.Entry) string { return m.Address }))
		}
		return fmt.Sprintf("; in place of method = %q, set method = %s, or remove it if the provider block has a default",
			e.Selected[0], join(e.Methods, quotedAddress))
	case len(e.Methods) > 0:
		return "; add " + join(e.Methods, func(m *attr.Entry) string {
			if isText(m) {
				return fmt.Sprintf("state { method = %s }", m.Address)
			}
			return fmt.Sprintf("default { method = %q }", m.Address)
		})
	case e.ByKind:
		return fmt.Sprintf("; set method = %q on the data source; if it requires settings, set method = \"method.%[1]s.main\" there, "+
			"and add its block to the provider block%s", e.Format, syntax.Remedy("method."+e.Format))
	case e.Format != "":
		return fmt.Sprintf("; set method = \"method.%s.main\" on the data source, and add its block, with its settings, to the "+
			"provider block%s", e.Format, syntax.Remedy("method."+e.Format))
	case len(e.KeyProviders) == 0:
		return adviseKeyProvider(e.StoredKind)
	case isText(e.KeyProviders[0]):
		return fmt.Sprintf("; add method \"aes_gcm\" \"main\" { keys = %s } and state { method = method.aes_gcm.main }",
			e.KeyProviders[0].Address)
	}
	others := ""
	for _, k := range e.KeyProviders[1:] {
		others += fmt.Sprintf(", or one with keys = %q", k.Address)
	}
	return fmt.Sprintf("; add this method to the provider block%s%s", others,
		syntax.Remedy("method.aes_gcm", fmt.Sprintf("keys = %q", e.KeyProviders[0].Address)))
}

// adviseKeyProvider is for a file whose metadata names a key provider of this kind. The
// file may come from anywhere, so only a kind that there is gets into the advice.
func adviseKeyProvider(kind string) string {
	known := func(b encryption.Block[encryption.KeyProvider]) bool { return b.Name == kind }
	switch {
	case kind == "age":
		return "; add its key provider, with the file of your identity, to the provider block" +
			syntax.Remedy("key_provider.age", `identity_files = ["key.txt"]`)
	case kind == "pbkdf2" || !slices.ContainsFunc(builtin.Registry().KeyProviders, known):
		return "; add its key provider to the provider block, such as" + aKeyProvider
	}
	return "; add its key provider, with its settings, to the provider block" + syntax.Remedy("key_provider."+kind)
}

// aKeyProvider is the one to begin with.
var aKeyProvider = syntax.Remedy("key_provider.pbkdf2", "passphrase = var.passphrase")

func quotedAddress(entry *attr.Entry) string { return strconv.Quote(entry.Address) }

// isText reports whether users write the entry in OpenTofu's text, and not in a
// block of the provider.
func isText(entry *attr.Entry) bool { return entry.Pos.Line > 0 }

// join lists what to choose from.
func join[T any](choices []T, text func(T) string) string {
	out := make([]string, len(choices))
	for i, c := range choices {
		out[i] = text(c)
	}
	return strings.Join(out, " or ")
}
