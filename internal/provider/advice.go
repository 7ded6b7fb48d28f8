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
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/missing"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// advised is the text of an error. If the library says what is missing, it adds what
// users of the provider write about that.
func advised(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*missing.Method](err); ok {
		return insert(text, e, adviseMethod(e))
	}
	if e, ok := errors.AsType[*missing.Variable](err); ok {
		return insert(text, e, adviseVariable(e))
	}
	if errors.Is(err, attr.ErrCommand) {
		return insert(text, attr.ErrCommand, ", or with allow_external = true")
	}
	return text
}

// insert puts advice after the text of err.
func insert(text string, err error, advice string) string {
	return strings.Replace(text, err.Error(), err.Error()+advice, 1)
}

func adviseVariable(e *missing.Variable) string {
	if e.Name == "" {
		return "; set the values of var.* in encryption_variables, in the provider block"
	}
	return fmt.Sprintf("; in the provider block, write encryption_variables = { %s = var.%[1]s }", e.Name)
}

func adviseMethod(e *missing.Method) string {
	switch {
	case len(e.Methods) > 0 && len(e.Selected) == 1:
		if selected := e.Selected[0]; e.InText && strings.Contains(selected, ".") {
			return fmt.Sprintf("; in place of method = %s, write method = %s", selected,
				strings.Join(e.Methods, " or "))
		}
		return fmt.Sprintf("; in place of method = %q, set method = %s, or remove it if the provider block has a default",
			e.Selected[0], join(e.Methods, strconv.Quote))
	case len(e.Methods) > 0:
		return "; add " + join(e.Methods, func(method string) string {
			if e.InText {
				return fmt.Sprintf("state { method = %s }", method)
			}
			return fmt.Sprintf("default { method = %q }", method)
		})
	case e.ByKind:
		return fmt.Sprintf("; set method = %q on the data source; if it requires settings, set method = \"method.%[1]s.main\" there, "+
			"and add its block to the provider block%s", e.Format, syntax.Remedy("method."+e.Format))
	case e.Format != "":
		return fmt.Sprintf("; set method = \"method.%s.main\" on the data source, and add its block, with its settings, to the "+
			"provider block%s", e.Format, syntax.Remedy("method."+e.Format))
	case len(e.KeyProviders) == 0:
		return adviseKeyProvider(e.StoredKind)
	case e.InText:
		return fmt.Sprintf("; add method \"aes_gcm\" \"main\" { keys = %s } and state { method = method.aes_gcm.main }",
			e.KeyProviders[0])
	}
	others := ""
	for _, k := range e.KeyProviders[1:] {
		others += fmt.Sprintf(", or one with keys = %q", k)
	}
	return fmt.Sprintf("; add this method to the provider block%s%s", others,
		syntax.Remedy("method.aes_gcm", fmt.Sprintf("keys = %q", e.KeyProviders[0])))
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

// join lists what to choose from.
func join(choices []string, text func(string) string) string {
	out := make([]string, len(choices))
	for i, c := range choices {
		out[i] = text(c)
	}
	return strings.Join(out, " or ")
}
